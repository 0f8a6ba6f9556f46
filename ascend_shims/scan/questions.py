"""What nobody asks of a patch.

`exists-nowhere`: its target is in no release of those compared; asked too of what is
tried though none of them has it. `gate-never-true`: its
conditions can never be met, or by none of them. `reason-gone`: it is for releases older
than all of them, or what it patches is gone for good. `contested`: another file patches
the same. `never-restored`: the context manager around it does not put it back.
`bound-by-name`: other modules hold what it replaces under a name of their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from os.path import realpath

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from ..environment.versions import Fit, fit, parse
from ..registry.ranges import can_match
from ..upstream.facts.resolve import Definition, in_module
from ..upstream.tree import Tree
from .found import Found, Question, Scanned
from .presence import is_guarded, place_of
from .releases import Compared

__all__ = ["ask"]

_SHOWN = 3


def ask(
    scanned: Scanned, compared: Compared | None = None, *, upstream: bool = False
) -> tuple[Question, ...]:
    """All questions, in the order of what was found.

    Args:
        upstream: look through all of upstream for names that hold what is replaced.
    """
    found: list[Question] = [
        *_never(scanned.patches, compared),
        *_contested(scanned.patches, compared),
        *_unrestored(scanned.patches),
        *_bound(scanned, compared if upstream else None),
    ]
    if compared is not None:
        found += _nowhere(compared)
        found += _gone(compared)
    return tuple(sorted(found, key=lambda q: (q.found.path, q.found.line, q.kind)))


def _never(patches: Iterable[Found], compared: Compared | None) -> Iterator[Question]:
    for one in patches:
        never = next((g for g in one.gates if g.kind == "never"), None)
        if never is not None:
            said = f"`{never.text}` is never true"
            yield Question("gate-never-true", one, said)
            continue
        for package, range_ in one.ranges.items():
            if not can_match(SpecifierSet(range_)):
                said = f"no {package} is in `{range_}`, the conditions taken together"
                yield Question("gate-never-true", one, said)
            elif compared is not None and package == compared.package:
                yield from _outside(one, range_, compared)


def _outside(one: Found, range_: str, compared: Compared) -> Iterator[Question]:
    """Of a gate that none of the releases meets, nor the baseline."""
    versions = _versions(compared)
    known = [v for v in map(parse, versions) if v is not None]
    if not compared.is_judged or not known:
        return
    if any(fit(v, range_) is not Fit.OUTSIDE for v in versions):
        return
    first, last = min(known), max(known)
    between = f"{compared.package} {first}"
    if first != last:
        between = f"{between} to {last}"
    if _is_past(range_, first):
        said = f"it is for {compared.package} {range_}, older than all of {between}"
        yield Question("reason-gone", one, said)
    else:
        yield Question("gate-never-true", one, f"none of {between} is in `{range_}`")


def _is_past(range_: str, oldest: Version) -> bool:
    """Whether everything in a range is older than a release."""
    return not can_match(SpecifierSet(range_) & SpecifierSet(f">={oldest}"))


def _contested(
    patches: Sequence[Found], compared: Compared | None
) -> Iterator[Question]:
    trees = compared.trees if compared is not None else ()
    by_name: defaultdict[str, list[Found]] = defaultdict(list)
    for one in patches:
        told = bool(one.names) and one.form != "table" and not one.undone_at
        if told and _may_run(one, compared):
            by_name[place_of(one.target or ".".join(one.names), trees)].append(one)
    for several in by_name.values():
        seen: set[tuple[str, str | None]] = set()
        for earlier, later in combinations(several, 2):
            # A file may be reached by two names.
            alike = realpath(earlier.path) == realpath(later.path)
            if alike or (later.path, later.target) in seen:
                continue
            if not _may_meet(earlier, later):
                continue
            seen.add((later.path, later.target))
            place = f"{earlier.path}:{earlier.line}"
            said = f"`{later.target}` is patched by another file too: {place}"
            yield Question("contested", later, said, (place,))


def _may_run(one: Found, compared: Compared | None) -> bool:
    """Whether its conditions can hold, in one of the releases where there are some."""
    if any(gate.kind == "never" for gate in one.gates):
        return False
    for package, range_ in one.ranges.items():
        if not can_match(SpecifierSet(range_)):
            return False
        if compared is None or not compared.is_judged or package != compared.package:
            continue
        if all(fit(v, range_) is Fit.OUTSIDE for v in _versions(compared)):
            return False
    return True


def _versions(compared: Compared) -> tuple[str | None, ...]:
    """Of the releases, and of the baseline where that has one."""
    first = compared.baseline
    return compared.versions if first is None else (first, *compared.versions)


def _may_meet(one: Found, other: Found) -> bool:
    """Whether the conditions of both can hold at once, as far as can be told."""
    for package, range_ in one.ranges.items():
        more = other.ranges.get(package)
        if more and not can_match(SpecifierSet(range_) & SpecifierSet(more)):
            return False
    texts = {gate.text for gate in one.gates}
    opposite = {f"not {text}" for text in texts} | {f"not ({text})" for text in texts}
    mine = {gate.text for gate in other.gates}
    return not (mine & opposite) and not any(
        f"not {text}" in texts or f"not ({text})" in texts for text in mine
    )


def _unrestored(patches: Iterable[Found]) -> Iterator[Question]:
    for one in patches:
        if one.restores_nothing:
            said = f"{one.restores_nothing}, and `{one.target}` stays as it left it"
            yield Question("never-restored", one, said)


def _nowhere(compared: Compared) -> Iterator[Question]:
    releases = compared.labels
    one_or_all = (
        releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"
    )
    baseline = compared.checked[0].baseline
    for one in sorted(compared.nowhere, key=lambda f: (f.path, f.line)):
        where = one_or_all
        if baseline not in releases:
            where = f"{baseline} nor {one_or_all}"
        said = f"`{one.target}` is in neither {where}"
        if baseline in releases:
            said = f"`{one.target}` is not in {where}"
        why = "what relies on it fails there"
        if is_guarded(one):
            why = "what is tried here always fails"
        if one.is_patch:
            why = "nothing reads it there, unless it is a name of your own"
        yield Question("exists-nowhere", one, f"{said}: {why}")


def _gone(compared: Compared) -> Iterator[Question]:
    """Of a target that is gone for good, without a successor."""
    if len(compared.labels) < 2:
        return
    for one, verdicts in compared.verdicts.items():
        if not one.is_patch or not verdicts or verdicts[-1] is None:
            continue
        lost = [v is not None and _is_removed(v.breakage, v.moved_to) for v in verdicts]
        if lost[-1] and not lost[0]:
            since = compared.labels[lost.index(True)]
            said = f"`{one.target}` is gone since {since} and has no successor"
            yield Question("reason-gone", one, said)


def _is_removed(breakage: str | None, moved_to: str | None) -> bool:
    return breakage in ("removed", "attribute-removed") and moved_to is None


# Names that hold what is replaced ----------------------------------------------------


def _bound(scanned: Scanned, compared: Compared | None) -> Iterator[Question]:
    patched: defaultdict[str, list[Found]] = defaultdict(list)
    for one in scanned.patches:
        if _is_binding(one):
            assert one.target is not None
            patched[one.target].append(one)
    everywhere = _importers(patched, compared) if compared is not None else {}
    for target, several in patched.items():
        mine = [
            place
            for place in scanned.imports.get(target, ())
            if place.rpartition(":")[0] not in {one.path for one in several}
        ]
        others = [name for name in everywhere.get(target, ()) if name not in patched]
        places = (*mine, *others)
        if places:
            more = len(places) - _SHOWN
            shown = ", ".join(places[:_SHOWN]) + (
                f" and {more} more" if more > 0 else ""
            )
            said = (
                f"`{target}` is imported by name in {shown}, which may keep the old one"
            )
            yield Question("bound-by-name", several[0], said, places)


def _is_binding(one: Found) -> bool:
    """A name of a module, which others may have imported by name."""
    if one.target is None or one.undone_at == -1 or one.adds:
        return False
    if one.form in ("table", "sys-modules", "delete", "source-text"):
        return False
    return "." not in one.target.partition(":")[2]


def _importers(
    patched: Mapping[str, Sequence[Found]], compared: Compared
) -> Mapping[str, tuple[str, ...]]:
    """Modules of the newest release that import a name of another one by name."""
    tree = compared.trees[-1]
    found = {}
    for target in patched:
        if target.partition(".")[0] == compared.package:
            names = tuple(_holding(tree, target))
            if names:
                found[target] = names
    return found


def _holding(tree: Tree, target: str) -> Iterator[str]:
    home, _, name = target.partition(":")
    definition = in_module(tree, home, name)
    if definition is None:
        return
    for module in tree.parsed(tree.mentions(name)):
        if module.name == home:
            continue
        for bound, bindings in module.scope.names.items():
            from_there = any(
                b.kind == "from"
                and b.original == name
                and b.condition != "typing"
                and _leads(tree, module.absolute(b.module, b.level), name, definition)
                for b in bindings
            )
            if from_there:
                yield f"{module.name}:{bound}"


def _leads(tree: Tree, module: str, name: str, definition: Definition) -> bool:
    found = in_module(tree, module, name)
    return found is not None and found.key == definition.key
