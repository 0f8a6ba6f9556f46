"""What a registry relies on upstream, as one flat list.

Each patch relies on its target, in the way that its kind says, and on what its
`relies_on` names. `watch` entries and lines of a watch file rely on their symbol
without there being a patch. A gap's removal probe is an entry for each package that
it asks about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from ..environment.versions import Fit, fit, parse
from ..files import read_piped
from ..registry.document import compose
from ..registry.model import Companion, Gap, Patch, Registry, Sign
from ..registry.reading import read
from .contract import How, Reliance, RelianceError
from .facts.signature import Shape
from .ours import Ours, Replacements

__all__ = ["UNPATCHED", "Role", "Watched", "Way", "from_file", "from_registry"]

Way: TypeAlias = How | Literal["removal_probe"]
Role: TypeAlias = Literal["gap", "companion", "watch"]

UNPATCHED = "watch"
"""What stands in the place of a gap's id where there is none."""

_HOW_OF_KIND: Mapping[str, How] = {
    "wrap": "wraps_function",
    "decorate": "wraps_function",
    "replace": "replaces_function",
}


@dataclass(frozen=True)
class Watched:
    """One thing that is relied on, and where we say so."""

    gap: str
    """Id of the gap, or companion; `watch` where there is none."""
    how: Way
    candidates: tuple[str, ...]
    """Symbols, of which the first that exists is meant; of a removal probe all
    that it asks about."""
    line: int
    """Of the entry in its file, 1-based."""
    file: str
    ranges: tuple[Mapping[str, str], ...] = ()
    """Releases that the patch is for, each mapping from package to range."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """Releases that the gap claims."""
    ours: Ours | None = None
    """What stands in the symbol's place, or was copied from it."""
    by_keyword: bool = False
    """Of `calls`: optional arguments are passed by keyword."""
    calls: tuple[Shape, ...] = ()
    """Of `calls`: how our module calls it, as far as its text shows."""
    is_copy: bool = False
    """`ours` carries the symbol's body, or takes the place of it."""
    skipped: int = 0
    """Leading parameters of `ours` that are no arguments: the `call` of a wrapper, and
    before it what a companion's is told of its gap."""
    probe: tuple[Sign, ...] = ()
    """Of a removal probe: its signs in one package."""
    landed: bool = False
    """The gap has landed, so that its probe has to hold."""
    role: Role = "gap"
    """What `gap` is the name of."""

    @property
    def package(self) -> str:
        """The top-level package that it is about."""
        return self.candidates[-1].partition(":")[0].partition(".")[0]

    @property
    def key(self) -> str:
        """Everything here that a verdict depends on, besides the two releases."""
        signature = self.ours.signature if self.ours else None
        called = (self.by_keyword, self.calls, signature, self.skipped, self.is_copy)
        return repr((self.how, self.candidates, called, self.probe, self.landed))

    def is_for(self, version: str | None) -> bool:
        """Whether it is meant for a release, as far as its own range says.

        Of the gap's claim only the lower end counts: a release beyond the upper end
        is just what a check is about.
        """
        package = self.package
        if _is_below(version, self.claims.get(package, "")):
            return False
        mine = [ranges[package] for ranges in self.ranges if package in ranges]
        return all(_fit(version, one) is not Fit.OUTSIDE for one in mine)

    @property
    def said_ranges(self) -> str:
        """The releases that it is meant for, as somebody wrote them."""
        ranges = [self.claims, *self.ranges]
        written = [one[self.package] for one in ranges if one.get(self.package)]
        return f"{self.package} {','.join(dict.fromkeys(written)) or '(any)'}"

    def is_claimed(self, version: str | None) -> bool:
        """Whether the gap claims a release, so that it may be a baseline."""
        claim = self.claims.get(self.package)
        inside = claim is None or _fit(version, claim) is not Fit.OUTSIDE
        return inside and self.is_for(version)

    def reliances(self) -> Iterator[Reliance]:
        """Of each candidate; a removal probe relies on nothing."""
        if self.how != "removal_probe":
            for symbol in self.candidates:
                yield Reliance(symbol, self.how, self.by_keyword)


_fit = lru_cache(maxsize=1024)(fit)
"""There are many entries, and few ranges and releases."""


@lru_cache(maxsize=1024)
def _is_below(version: str | None, range_: str) -> bool:
    """Whether a release is older than everything in a range."""
    release = parse(version)
    lower = [s for s in SpecifierSet(range_) if s.operator in (">=", ">", "~=")]
    return release is not None and any(release < Version(s.version) for s in lower)


def from_registry(registry: Registry, path: Path) -> list[Watched]:
    """Everything that the registry in `path` relies on, in its order."""
    document = compose(read(path), str(path))

    def line(*place: str | int) -> int:
        return document.mark(place, key=False, renamed={})[0]

    found = []
    for g, gap in enumerate(registry.gaps):
        ours = Replacements(registry.package, gap.module)
        mine = []
        for p, patch in enumerate(gap.patches):
            place = ("gaps", g, "patches", p)
            mine += _of_patch(gap, patch, ours, line, place, str(path))
        found += _once(mine)
        if gap.removal_probe and gap.status != "retired":
            found += _of_probe(gap, line("gaps", g, "removal_probe"), str(path))
    for c, companion in enumerate(registry.companions):
        ours = Replacements(registry.package, companion.module)
        for p, patch in enumerate(companion.patches):
            place = ("companions", c, "patches", p)
            found += _of_patch(companion, patch, ours, line, place, str(path))
    for w, reliance in enumerate(registry.watch):
        at = line("watch", w)
        ranges = (reliance.versions,)
        found.append(
            Watched(
                UNPATCHED,
                reliance.how,
                (reliance.symbol,),
                at,
                str(path),
                ranges,
                by_keyword=reliance.by_keyword,
                role="watch",
            )
        )
    return found


def _of_patch(
    gap: Gap | Companion,
    patch: Patch,
    ours: Replacements,
    line: Callable[..., int],
    place: tuple[str | int, ...],
    file: str,
) -> list[Watched]:
    found = []
    # A companion serves no releases but those of the gaps that have it.
    claims = gap.versions if isinstance(gap, Gap) else {}
    filled = 1 if isinstance(gap, Gap) else 3
    role: Role = "gap" if isinstance(gap, Gap) else "companion"
    how = _HOW_OF_KIND.get(patch.kind)
    if how is not None:
        if patch.swap_is_safe:
            how = "replaces_class_binding"
        found.append(
            Watched(
                gap.id,
                how,
                patch.candidates,
                line(*place),
                file,
                (patch.versions,),
                claims,
                # What `decorate` puts there is made at run time.
                None if patch.kind == "decorate" else ours.named(patch.replacement),
                is_copy=patch.kind == "replace",
                skipped=filled if patch.kind == "wrap" else 0,
                role=role,
            )
        )
    for number, reliance in enumerate(patch.relies_on):
        found.append(
            Watched(
                gap.id,
                reliance.how,
                (reliance.symbol,),
                line(*place, "relies_on", number),
                file,
                (patch.versions, reliance.versions),
                claims,
                ours.named(reliance.copy) if reliance.copy else None,
                by_keyword=reliance.by_keyword,
                calls=ours.calls(_last(reliance.symbol))
                if reliance.how == "calls"
                else (),
                is_copy=reliance.copy is not None,
                role=role,
            )
        )
    return found


def _last(symbol: str) -> str:
    return symbol.rpartition(":")[2].rpartition(".")[2]


def _of_probe(gap: Gap, line: int, file: str) -> list[Watched]:
    """An entry for each package, since a release is one of one package."""
    signs: dict[str, list[Sign]] = {}
    for sign in gap.removal_probe:
        signs.setdefault(sign.package, []).append(sign)
    found = []
    for mine in signs.values():
        symbols = (s for sign in mine for c in sign.all for s in c.candidates)
        found.append(
            Watched(
                gap.id,
                "removal_probe",
                tuple(dict.fromkeys(symbols)),
                line,
                file,
                claims=gap.versions,
                probe=tuple(mine),
                landed=gap.status == "landed",
            )
        )
    return found


def _once(found: Iterable[Watched]) -> list[Watched]:
    """Without repetitions: an anchor in the file may be used many times."""
    kept: dict[tuple[str, str], Watched] = {}
    for one in found:
        kept.setdefault((one.key, repr(one.ranges)), one)
    return list(kept.values())


class _Row(msgspec.Struct):
    """One line of a watch file. Further keys are the writer's own."""

    symbol: str
    how: str
    gap: str = UNPATCHED
    versions: dict[str, str] = {}
    by_keyword: bool = False


def from_file(path: Path) -> list[Watched]:
    """The reliances of a watch file: a JSON object a line, `symbol` and `how`.

    Raises `RelianceError` for a line that is not one, with its number.
    """
    try:
        lines = read_piped(path).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RelianceError(f"{path} is no text of JSON lines: {error}") from error
    found = []
    for number, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        try:
            row = msgspec.json.decode(text, type=_Row)
            reliance = Reliance(row.symbol, row.how, row.by_keyword)  # type: ignore[arg-type]
            for range_ in row.versions.values():
                SpecifierSet(range_)
        except (ValueError, RelianceError, RecursionError) as error:
            raise RelianceError(
                f"{path}:{number}: {error}; write "
                '{"symbol": "package.module:Qual.name", "how": "calls"}'
            ) from error
        found.append(
            Watched(
                row.gap,
                reliance.how,
                (reliance.symbol,),
                number,
                str(path),
                (row.versions,),
                by_keyword=row.by_keyword,
                role="watch",
            )
        )
    return found
