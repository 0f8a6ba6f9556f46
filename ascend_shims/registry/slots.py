"""The rule that no two patches fight over one slot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from .gates import Ranges, meeting, reach
from .outline import Finding, Outline, OutlinedGap, OutlinedPatch, Text
from .problems import shown

__all__ = ["conflicts"]


class _Claim(msgspec.Struct, frozen=True):
    """One patch as a contender for one slot."""

    gap: OutlinedGap
    patch: OutlinedPatch
    target: Text
    ranges: Ranges


def conflicts(outline: Outline) -> Iterator[tuple[Finding, OutlinedPatch]]:
    """Each patch that fights with an earlier one, and that earlier one.

    Layers on a slot need an order that the registry declares: `after`, in either
    direction and through other gaps, or ranges that never meet.
    """
    claims: defaultdict[str, list[_Claim]] = defaultdict(list)
    for claim in _claims(outline):
        claims[claim.target.value].append(claim)
    beneath = _beneath(outline)
    for contenders in claims.values():
        for index, later in enumerate(contenders):
            for earlier in contenders[:index]:
                finding = _conflict(earlier, later, beneath)
                if finding:
                    yield finding, earlier.patch
                    break


def _claims(outline: Outline) -> Iterator[_Claim]:
    for gap in outline.gaps:
        for patch in gap.patches:
            ranges = reach(gap, patch)
            if ranges is None:
                continue
            for target in {text.value: text for text in patch.targets}.values():
                yield _Claim(gap, patch, target, ranges)


def _conflict(
    earlier: _Claim, later: _Claim, beneath: dict[str, set[str]]
) -> Finding | None:
    a, b = earlier.gap, later.gap
    if a.id is None or b.id is None or not (a.after_is_sound and b.after_is_sound):
        return None
    same_gap = a.place == b.place
    if not same_gap and a.id.value == b.id.value:
        # That two have one id is told; which is meant, nobody knows.
        return None
    if not same_gap and _is_ordered(a.id.value, b.id.value, beneath):
        return None
    where = meeting(earlier.ranges, later.ranges)
    if where is None:
        return None
    target = shown(later.target.value)
    if same_gap:
        return Finding(
            later.target.place,
            f"`{target}` is patched twice on {where}",
            "make it one patch, or let their `versions` never meet",
        )
    return Finding(
        later.target.place,
        f"`{target}` is patched by `{a.name}` too on {where}, without an order",
        f"say which lies beneath, for example `after: [{a.name}]` in `{b.name}`",
    )


def _is_ordered(a: str, b: str, beneath: dict[str, set[str]]) -> bool:
    return a in beneath.get(b, ()) or b in beneath.get(a, ())


def _beneath(outline: Outline) -> dict[str, set[str]]:
    """For each gap, all gaps that `after` puts under it, directly or not."""
    direct: defaultdict[str, set[str]] = defaultdict(set)
    for gap in outline.gaps:
        if gap.id:
            direct[gap.id.value].update(text.value for text in gap.after)
    found: dict[str, set[str]] = {}
    for gap_id in list(direct):
        reached: set[str] = set()
        waiting = list(direct[gap_id])
        while waiting:
            other = waiting.pop()
            if other not in reached:
                reached.add(other)
                waiting.extend(direct.get(other, ()))
        found[gap_id] = reached
    return found
