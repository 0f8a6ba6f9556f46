"""The facts of all files put together: names followed from file to file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .found import Found, Gate
from .helpers import instances
from .inherited import relied_on
from .names import Names
from .raw import FileFacts, Raw, Setting
from .undoing import undone

__all__ = ["put_together"]

_ROUNDS = 4
"""Files that import files that import files, each under conditions."""


def put_together(
    files: Sequence[FileFacts], setting: Setting, aside: Sequence[FileFacts] = ()
) -> tuple[list[Found], Mapping[str, tuple[str, ...]]]:
    """Everything found, in order, and upstream names that are imported by name.

    Args:
        aside: other files of the same code, of which nothing is told.
    """
    names = Names([*files, *aside], setting)
    gates = _gates_of_files(files)
    found: list[Found] = []
    made = instances(files, names, aside)
    for facts in files:
        path, more = facts.source.path, gates.get(facts.source.module, ())
        raws = [_followed(raw, names) for raw in (*facts.raws, *made.get(path, ()))]
        rewritten = _rewritten(facts)
        kept = [_rewriting(raw, rewritten) for raw in raws if raw is not None]
        mine = [_found(path, raw, more, names) for raw in undone(kept, facts.restoring)]
        found += _either(mine, facts.either)
    for source, raw in relied_on(files, names, aside):
        one = _found(source.path, raw, gates.get(source.module, ()), names)
        found.append(replace(one, sure=raw.form == "subclass"))
    return _once(found), _imports(files, names)


def _followed(raw: Raw, names: Names) -> Raw | None:
    """A name that leads through the scanned code is what it leads to."""
    if not raw.own:
        return raw if not raw.names or names.is_foreign(raw.names) else None
    # Of what is changed, the last name is the module's or class's own.
    owner = names.follow(raw.names[:-1])
    if owner is None:
        return None
    return replace(raw, names=(*owner, raw.names[-1]), own=False)


def _rewritten(facts: FileFacts) -> set[int]:
    """Lines that read a text that is run: there, or by a function that gets it."""
    given = {line for line, function in facts.read_by if function in facts.executes}
    return facts.rewritten | given


def _rewriting(raw: Raw, rewritten: set[int]) -> Raw:
    if raw.form == "source-read" and raw.line in rewritten:
        return replace(raw, form="source-text")
    return raw


def _found(path: str, raw: Raw, gates: tuple[Gate, ...], names: Names) -> Found:
    return Found(
        path=path,
        line=raw.line,
        form=raw.form,
        how=raw.how,
        names=raw.names,
        target=names.target(raw.names),
        unresolved=raw.unresolved or _untold(raw),
        gates=tuple(dict.fromkeys((*gates, *raw.gates))),
        undone_at=raw.undone_at,
        within=raw.place.function,
        replacement=raw.replacement,
        ours=raw.ours,
        comment=raw.comment,
        adds=raw.adds,
        restores_nothing=raw.restores_nothing,
    )


def _either(
    found: Sequence[Found], several: Iterable[tuple[tuple[str, ...], tuple[str, ...]]]
) -> list[Found]:
    """One patch of the first place that exists, where an import has a second one."""
    kept = list(found)
    for first, second in several:
        size = len(first)
        for one in [f for f in kept if f.names[:size] == first]:
            other = next(
                (
                    f
                    for f in kept
                    if (f.line, f.form) == (one.line, one.form)
                    and f.names == (*second, *one.names[size:])
                ),
                None,
            )
            if other is not None and other.target is not None:
                kept.remove(other)
                candidates = (*one.candidates, other.target)
                kept[kept.index(one)] = replace(one, candidates=candidates)
    return kept


def _untold(raw: Raw) -> str:
    """Why a statement has no target, where nothing else was said of it."""
    if len(raw.names) == 1:
        return f"the whole module `{raw.names[0]}`"
    return "" if raw.names else "what it changes is not written out"


def _gates_of_files(files: Sequence[FileFacts]) -> dict[str, tuple[Gate, ...]]:
    """Conditions under which a file is imported, wherever it is."""
    modules = {facts.source.module for facts in files}
    sites: defaultdict[str, list[tuple[str, tuple[Gate, ...]]]] = defaultdict(list)
    for facts in files:
        for wanted, gates in facts.wanted:
            if wanted in modules and wanted != facts.source.module:
                sites[wanted].append((facts.source.module, gates))
    found: dict[str, tuple[Gate, ...]] = {}
    for _ in range(_ROUNDS):
        found = {
            module: _common([(*found.get(at, ()), *gates) for at, gates in all_])
            for module, all_ in sites.items()
        }
    # That its import may fail is no condition of the code's own.
    return {
        module: tuple(g for g in gates if g.kind in ("version", "other", "never"))
        for module, gates in found.items()
    }


def _common(several: list[tuple[Gate, ...]]) -> tuple[Gate, ...]:
    first, *rest = several
    return tuple(g for g in dict.fromkeys(first) if all(g in one for one in rest))


def _once(found: Iterable[Found]) -> list[Found]:
    """Each once, in the order of files and lines."""
    kept: dict[tuple[object, ...], Found] = {}
    for one in found:
        kept.setdefault((one.path, one.line, one.form, one.names, one.unresolved), one)
    return sorted(kept.values(), key=lambda f: (f.path, f.line))


def _imports(files: Sequence[FileFacts], names: Names) -> Mapping[str, tuple[str, ...]]:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for facts in files:
        for parts, line in facts.imports:
            target = names.target(parts)
            if target is not None:
                places[target].append(f"{facts.source.path}:{line}")
    return {target: tuple(all_) for target, all_ in places.items()}
