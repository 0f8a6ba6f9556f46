"""What a registry relies on upstream, as one flat list.

Each patch relies on its target, in the way that its kind says, and on what its
`relies_on` names. `watch` entries and lines of a watch file rely on their symbol
without there being a patch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.specifiers import SpecifierSet

from ..environment.versions import Fit, fit_all
from ..registry.document import compose, read
from ..registry.model import Gap, Patch, Registry
from .contract import How, Reliance, RelianceError

__all__ = ["Watched", "from_file", "from_registry"]

_HOW_OF_KIND: Mapping[str, How] = {
    "wrap": "wraps_function",
    "decorate": "wraps_function",
    "replace": "replaces_function",
}


@dataclass(frozen=True)
class Watched:
    """One thing that is relied on, and where we say so."""

    gap: str
    """Id of the gap; `watch` where there is none."""
    how: How
    candidates: tuple[str, ...]
    """Symbols, of which the first that exists is meant."""
    line: int
    """Of the entry in its file, 1-based."""
    file: str
    ranges: tuple[Mapping[str, str], ...] = ()
    """Releases that the patch is for, each mapping from package to range."""
    claims: Mapping[str, str] = field(default_factory=dict)
    """Releases that the gap claims."""

    @property
    def package(self) -> str:
        """The top-level package that it is about."""
        return self.candidates[-1].partition(".")[0]

    def is_for(self, version: str | None) -> bool:
        """Whether the patch is meant for a release, as far as its own range says.

        The upper end of the gap's claim does not count: a new release is just
        what a check is about.
        """
        versions = {self.package: version}
        mine = [{self.package: r[self.package]} for r in self.ranges if self._in(r)]
        return all(fit_all(versions, one) is not Fit.OUTSIDE for one in mine)

    def is_claimed(self, version: str | None) -> bool:
        """Whether the gap claims a release, so that it may be a baseline."""
        claims = {p: r for p, r in self.claims.items() if p == self.package}
        inside = fit_all({self.package: version}, claims) is not Fit.OUTSIDE
        return inside and self.is_for(version)

    def _in(self, ranges: Mapping[str, str]) -> bool:
        return self.package in ranges

    def reliances(self) -> Iterator[Reliance]:
        for symbol in self.candidates:
            yield Reliance(symbol, self.how)


def from_registry(registry: Registry, path: Path) -> list[Watched]:
    """Everything that the registry in `path` relies on, in its order."""
    document = compose(read(path), str(path))

    def line(*place: str | int) -> int:
        return document.mark(place, key=False, renamed={})[0]

    found = []
    for g, gap in enumerate(registry.gaps):
        for p, patch in enumerate(gap.patches):
            place = ("gaps", g, "patches", p)
            found += _of_patch(gap, patch, line, place, str(path))
    for w, reliance in enumerate(registry.watch):
        at = line("watch", w)
        ranges = (reliance.versions,)
        found.append(
            Watched("watch", reliance.how, (reliance.symbol,), at, str(path), ranges)
        )
    return found


def _of_patch(
    gap: Gap, patch: Patch, line: object, place: tuple[str | int, ...], file: str
) -> list[Watched]:
    assert callable(line)
    found = []
    how = _HOW_OF_KIND.get(patch.kind)
    if how is not None:
        if patch.swap_is_safe:
            how = "replaces_class_binding"
        at = line(*place)
        found.append(
            Watched(
                gap.id,
                how,
                patch.candidates,
                at,
                file,
                (patch.versions,),
                gap.versions,
            )
        )
    for number, reliance in enumerate(patch.relies_on):
        at = line(*place, "relies_on", number)
        ranges = (patch.versions, reliance.versions)
        found.append(
            Watched(
                gap.id, reliance.how, (reliance.symbol,), at, file, ranges, gap.versions
            )
        )
    return _once(found)


def _once(found: Iterable[Watched]) -> list[Watched]:
    """Without repetitions: an anchor in the file may be used many times."""
    kept: dict[tuple[object, ...], Watched] = {}
    for one in found:
        kept.setdefault((one.gap, one.how, one.candidates), one)
    return list(kept.values())


def from_file(path: Path) -> list[Watched]:
    """The reliances of a watch file: a JSON object a line, `symbol` and `how`.

    Raises `RelianceError` for a line that is not one, with its number.
    """
    found = []
    for number, text in enumerate(path.read_text("utf-8").splitlines(), start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
            reliance = Reliance(row["symbol"], row["how"])
            ranges = row.get("versions", {})
            for range_ in ranges.values():
                SpecifierSet(range_)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RelianceError(
                f"{path}:{number}: {error}; write "
                '{"symbol": "package.module:Qual.name", "how": "calls"}'
            ) from error
        found.append(
            Watched(
                row.get("gap", "watch"),
                reliance.how,
                (reliance.symbol,),
                number,
                str(path),
                (ranges,),
            )
        )
    return found
