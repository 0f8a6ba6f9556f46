"""The gaps that are wanted, in the course of reaching a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from ..plan import Plan, PlannedGap
from .choose import choose
from .contract import BrokenContractError
from .faults import Fault
from .slot import Slot, split
from .wrappers import Mark, foreign_mark

__all__ = ["Run", "ask_back", "modules", "of_another_copy", "raise_faults", "staying"]


class Run(msgspec.Struct):
    """What is known of one wanted gap in the course of reaching a plan."""

    planned: PlannedGap
    fault: Fault | None = None
    landing: dict[str, Slot] = msgspec.field(default_factory=dict)
    """By target: the slot that the patch went to, often the target's own."""
    adopted: dict[str, Mark] = msgspec.field(default_factory=dict)
    """Targets that another copy of the toolkit has patched for the same gap."""


def staying(runs: dict[str, Run], before: Plan | None, plan: Plan) -> dict[str, Run]:
    """The gaps that `plan` wants in the very form in which they are applied."""
    if before is None or before.registry.packages != plan.registry.packages:
        return {}
    return {
        planned.gap.id: run
        for planned in plan.wanted
        if (run := runs.get(planned.gap.id)) is not None
        and _form(run.planned) == _form(planned)
    }


def _form(planned: PlannedGap) -> tuple[object, ...]:
    gates = tuple((p.position, p.gate, p.patch) for p in planned.passing)
    return planned.gap, planned.position, gates


def of_another_copy(planned: PlannedGap, own: Callable[[str], None]) -> Run | None:
    """A gap that another copy of the toolkit has applied before this one was asked
    to; `own` is how this one is asked for a gap."""
    run = Run(planned)
    for one in planned.passing:
        chosen = choose(one.patch, frozenset())
        if isinstance(chosen, Slot):
            mark = foreign_mark(chosen.read(), planned.gap.id, own)
            run.adopted.update({chosen.target: mark} if mark else {})
    return run if run.adopted else None


def ask_back(leaving: Iterable[Run]) -> list[str]:
    """Have other copies of the toolkit take back what they had applied for us.

    Returns what they could not. The caller does not hold our lock: theirs may
    be held by a thread that waits for it.
    """
    errors = []
    for run in leaving:
        reverts = {mark.revert: mark for mark in run.adopted.values()}
        for revert, mark in reverts.items():
            try:
                revert(mark.gap)
            except Exception as error:  # noqa: BLE001 - kept and reported
                errors.append(f"{mark.toolkit}: {error}")
    return errors


def raise_faults(runs: Iterable[Run], module: str) -> None:
    """What strict makes of gaps that failed and that patch a module just imported."""
    for run in runs:
        if run.fault is not None and module in _modules_of(run.planned):
            raise BrokenContractError(
                f"{run.planned.gap.id}: {run.fault.state}: {run.fault.reason} "
                "(ASCEND_SHIMS_STRICT is set)"
            )


def _modules_of(planned: PlannedGap) -> set[str]:
    patches = [one.patch for one in planned.passing]
    found = {split(target)[0] for patch in patches for target in patch.candidates}
    return found | {patch.waits_for for patch in patches if patch.waits_for}


def modules(plan: Plan) -> frozenset[str]:
    """What to wait for, so that what `plan` wants comes into force."""
    return frozenset(m for planned in plan.wanted for m in _modules_of(planned))
