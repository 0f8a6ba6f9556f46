"""Whether what is changed is ever put back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .raw import Place, Raw

__all__ = ["undone"]


def undone(raws: Sequence[Raw], restoring: Iterable[tuple[int, Place]]) -> list[Raw]:
    """The patches of one file, each with the line that puts it back.

    Statements that put something back are no patches of their own, unless nothing
    here changes what they put back.
    """
    generic = list(restoring)
    changed = {raw.names for raw in raws if not raw.restores}
    back: dict[tuple[str, ...], list[Raw]] = {}
    for raw in raws:
        removes = raw.form == "delete" and (raw.place.cleaning or raw.place.leaving)
        if raw.names and (raw.restores or removes):
            back.setdefault(raw.names, []).append(raw)
    found = []
    for raw in raws:
        putting_back = raw in back.get(raw.names, ())
        if putting_back and raw.names in changed and raw.form != "delete":
            continue
        if putting_back:
            found.append(raw)
            continue
        ends = back.get(raw.names, [])
        line = raw.undone_at or _line(raw, ends) or _unknown(raw, generic)
        what = _wrong(raw, ends, line, raws)
        found.append(replace(raw, undone_at=line, restores_nothing=what))
    return found


def _line(raw: Raw, ends: list[Raw]) -> int:
    """Where it is put back: in the same function, if it is there."""
    near = [end for end in ends if end.place.function == raw.place.function]
    return min((end.line for end in near or ends), default=0)


def _unknown(raw: Raw, generic: list[tuple[int, Place]]) -> int:
    """A loop over what was kept, in the same class or function, may put it back."""
    top = raw.place.qualname.split(".")[0]
    for line, place in generic:
        if top == place.qualname.split(".")[0]:
            return line
    return 0


def _wrong(raw: Raw, ends: list[Raw], line: int, raws: Sequence[Raw]) -> str:
    """What is wrong with the context manager around, if anything."""
    place = raw.place
    if not place.manager or place.leaving or place.cleaning:
        return ""
    if line == 0:
        others = [
            one.line
            for one in raws
            if one.names == raw.names
            and one.place.manager == place.manager
            and one.place.leaving
        ]
        if others:
            return f"`{place.manager}` leaves something else there, line {others[0]}"
        return f"`{place.manager}` never puts it back"
    mine = [end for end in ends if end.place.manager == place.manager]
    handling = [end for end in mine if _handles(end, raw)]
    quietly = [end for end in mine if not end.place.cleaning]
    if not mine or len(handling) + len(quietly) < len(mine):
        return ""
    if not handling:
        return f"`{place.manager}` puts it back only where nothing is raised"
    if not quietly:
        return f"`{place.manager}` puts it back only where something is raised"
    return ""


def _handles(end: Raw, raw: Raw) -> bool:
    """Whether it stands in an `except` that the patch does not stand in."""
    caught = [g for g in end.gates if g.kind == "try" and g.text.startswith("except")]
    return end.place.cleaning and any(gate not in raw.gates for gate in caught)
