"""Classes of the scanned code that derive from upstream's, through however many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..registry.model import How
from .files import Source
from .found import Form
from .names import Names
from .raw import ClassInfo, FileFacts, Place, Raw

__all__ = ["relied_on"]

_DEEP = 16


def relied_on(
    files: Sequence[FileFacts], names: Names, aside: Sequence[FileFacts] = ()
) -> Iterator[tuple[Source, Raw]]:
    """What is relied on, and in which file: bases, and members that may be theirs.

    Which members upstream's class has is for its text to say.
    """
    classes = {i.names: i for facts in (*aside, *files) for i in facts.classes}
    for facts in files:
        for info in facts.classes:
            bases = list(dict.fromkeys(_upstream(info, classes, names, 0)))
            for base in bases:
                for raw in _of_class(info, base, classes, names):
                    yield facts.source, raw


def _upstream(
    info: ClassInfo,
    classes: dict[tuple[str, ...], ClassInfo],
    names: Names,
    deep: int,
) -> Iterator[tuple[str, ...]]:
    """The upstream classes that a class derives from, in its order."""
    if deep > _DEEP:
        return
    for base in info.bases:
        known = classes.get(base) or classes.get(names.own(base))
        if known is not None:
            if known is not info:
                yield from _upstream(known, classes, names, deep + 1)
            continue
        target = names.follow(base)
        if target is not None and names.is_upstream(target):
            yield target


def _of_class(
    info: ClassInfo,
    base: tuple[str, ...],
    classes: dict[tuple[str, ...], ClassInfo],
    names: Names,
) -> Iterator[Raw]:
    place = Place(info.names[-1])
    how: How
    direct = any(names.follow(one) == base for one in info.bases)
    makes = any(name == "__init__" for name, _, _ in info.methods)
    if direct:
        how = "subclass_init_signature" if makes else "imports_name"
        yield Raw(info.line, "subclass", how, base, place, info.gates)
    for name, line, ours in info.methods:
        if name != "__init__":
            yield Raw(
                line,
                "override",
                "overrides_method",
                (*base, name),
                place,
                info.gates,
                ours=ours,
            )
    for name, line in info.values:
        yield Raw(line, "override", "reads_attribute", (*base, name), place, info.gates)
    defined = _defined(info, classes, names, 0)
    for asked in info.asks:
        if asked.name in defined:
            continue
        how = "calls" if asked.is_call else "reads_attribute"
        form: Form = "private-member"
        yield Raw(
            asked.line,
            form,
            how,
            (*base, asked.name),
            place,
            info.gates,
        )


def _defined(
    info: ClassInfo,
    classes: dict[tuple[str, ...], ClassInfo],
    names: Names,
    deep: int,
) -> set[str]:
    """What a class and the scanned code's own bases of it define."""
    found = set(info.defines)
    if deep > _DEEP:
        return found
    for base in info.bases:
        known = classes.get(base) or classes.get(names.own(base))
        if known is not None and known is not info:
            found |= _defined(known, classes, names, deep + 1)
    return found
