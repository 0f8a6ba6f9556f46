"""What the registry says of each row of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ..registry.model import Companion, Condition, Gap, Registry
from ..registry.model import Patch as Spelled
from .model import Cell, Entry, Patch, Sign, Standing, Thing

__all__ = ["entry"]


def entry(
    registry: Registry,
    row: str,
    report: dict[str, Any] | None,
    cells: tuple[Cell, ...],
    things: tuple[Thing, ...],
) -> Entry:
    """The row of a gap, of a companion, or of what nobody but us watches.

    `report` is the gap's part of a report on a new process, if there is one.
    """
    if row in registry:
        return _gap(registry, registry[row], report, cells, things)
    for companion in registry.companions:
        if companion.id == row:
            return _companion(companion, cells, things)
    return Entry(
        id=row,
        sort="watch",
        title="Watched without a patch",
        status="watched",
        kind="watch",
        why="Relied on by the registry's `watch` or a watch file.",
        remove_when="",
        facts=(),
        patches=(),
        probe=(),
        here=None,
        cells=cells,
        things=things,
    )


def _gap(
    registry: Registry,
    gap: Gap,
    report: dict[str, Any] | None,
    cells: tuple[Cell, ...],
    things: tuple[Thing, ...],
) -> Entry:
    reported = report["patches"] if report else []
    return Entry(
        id=gap.id,
        sort="gap",
        title=gap.title,
        status=gap.status,
        kind=gap.kind,
        why=_line(gap.why),
        remove_when=_line(gap.remove_when),
        facts=tuple(_facts(registry, gap)),
        patches=_patches(gap.patches, reported),
        probe=tuple(
            Sign(sign.says, sign.package, tuple(map(_condition, sign.all)))
            for sign in gap.removal_probe
        ),
        here=Standing.of(report) if report else None,
        cells=cells,
        things=things,
    )


def _companion(
    companion: Companion, cells: tuple[Cell, ...], things: tuple[Thing, ...]
) -> Entry:
    goes_with = companion.goes_with.replace("-", " ")
    return Entry(
        id=companion.id,
        sort="companion",
        title=f"Goes with {goes_with}",
        status="companion",
        kind="companion",
        why=_line(companion.why),
        remove_when="",
        facts=(("Goes with", (goes_with,)),),
        patches=_patches(companion.patches, ()),
        probe=(),
        here=None,
        cells=cells,
        things=things,
    )


def _facts(registry: Registry, gap: Gap) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What there is to say, in the order of reading."""
    yield "Gate", (_ranges(gap.versions) or "every release",)
    needs = [*(["a device"] if gap.needs.device else []), *gap.needs.gaps]
    companions = [one.id for one in registry.companions_of(gap)]
    several = (
        ("Needs", needs + [f"our patches of {other}" for other in gap.needs.patched]),
        ("Lies above", gap.after),
        ("Takes along", companions),
        ("Provided by, where installed", [one.symbol for one in gap.provided_by]),
        ("Downstream closes it in", gap.downstream),
        ("References", gap.references),
    )
    if gap.default == "off":
        yield "Default", ("off",)
    if gap.unpatched:
        yield "No patches", (_line(gap.unpatched),)
    if gap.traced:
        yield "Traced by torch.compile", (_line(gap.traced),)
    for name, values in several:
        if values:
            yield name, tuple(values)


def _patches(
    spelled: Sequence[Spelled], reported: Sequence[dict[str, Any]]
) -> tuple[Patch, ...]:
    """Each patch with what a new process makes of it.

    A report has the gap's own patches first, and in the same order.
    """
    found = []
    for position, patch in enumerate(spelled):
        mine = reported[position] if position < len(reported) else None
        # Of a single one there is nothing to choose, and it may not be there.
        several = patch.candidates if len(patch.candidates) > 1 else ()
        target = mine["target"] if mine else None
        found.append(
            Patch(
                candidates=patch.candidates,
                kind=patch.kind,
                replacement=patch.replacement,
                gate=_ranges(patch.versions),
                notes=tuple(_notes(patch)),
                chosen=target if target in several else None,
                here=Standing.of(mine) if mine else None,
            )
        )
    return tuple(found)


def _notes(patch: Spelled) -> Iterator[str]:
    if patch.scope == "binding":
        yield "this binding only"
    if patch.lazy:
        yield "where upstream imports it"
    if patch.waits_for:
        yield f"after {patch.waits_for}"
    if patch.swap_is_safe:
        yield f"may be swapped: {_line(patch.swap_is_safe)}"


def _condition(condition: Condition) -> str:
    """A condition in one line, in the words of the registry."""
    said = [
        f"{key} {_pattern(value)}"
        for key, value in msgspec.structs.asdict(condition).items()
        if key != "symbol" and value is not None
    ]
    return f"{' or '.join(condition.candidates)}: {', '.join(said)}"


def _pattern(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else " or ".join(value)


def _ranges(ranges: Mapping[str, str]) -> str:
    return ", ".join(f"{package} {range_}" for package, range_ in ranges.items())


def _line(text: str) -> str:
    return " ".join(text.split())
