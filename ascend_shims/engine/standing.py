"""Where gaps and patches stand: read from the live bindings, with a reason."""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

import msgspec

from ..plan import PlannedGap, PlannedPatch
from ..states import State
from .choose import Missing, Waiting
from .layers import SlotState
from .slot import ABSENT, Slot
from .table import spec_of
from .wrappers import Mark, peel

__all__ = [
    "PatchStanding",
    "Standing",
    "adopted",
    "at_rest",
    "combined",
    "fate",
    "in_place",
    "not_there",
]


class PatchStanding(msgspec.Struct, frozen=True):
    """Where one patch stands right now."""

    patch: PlannedPatch
    state: State
    reason: str
    target: str | None
    """The candidate that was chosen, where that can be told."""


class Standing(msgspec.Struct, frozen=True):
    """Where one gap stands right now."""

    planned: PlannedGap
    state: State
    reason: str
    patches: tuple[PatchStanding, ...]


def fate(state: SlotState) -> State:
    """Whether a slot of ours is as we left it, and if not, what happened."""
    if state.is_live:
        return State.APPLIED
    if spec_of(state.slot) is not state.spec or _was_taken_away(state):
        return State.LOST
    return State.BURIED


def _was_taken_away(state: SlotState) -> bool:
    """Whether the slot holds upstream's own value again, by somebody else's doing.

    A foreign patch that was there before ours takes ours along when it leaves.
    """
    value, slot = state.slot.read(), state.slot
    if value is state.base:
        return True
    function = peel(value)
    if type(function) is not FunctionType or "__wrapped__" in function.__dict__:
        return False
    where = getattr(sys.modules.get(slot.module), "__file__", None)
    defined = f"{function.__module__}:{function.__qualname__}"
    return defined == slot.target and function.__code__.co_filename == where


def in_place(
    planned: PlannedPatch, chosen: Slot, state: SlotState | None
) -> PatchStanding:
    """The standing of a patch whose target exists.

    `state` is of the slot that it went to, which `chosen` may merely refer to.
    """
    target = chosen.target
    if state is None:
        reason = f"{target} was loaded past our import hook; call apply() again"
        return PatchStanding(planned, State.LOST, reason, target)
    value = chosen.read()
    if value is state.visible:
        return PatchStanding(planned, State.APPLIED, target, target)
    if chosen.key == state.slot.key and fate(state) is State.LOST:
        module = state.slot.module
        reason = f"{module} was reloaded; call apply() again"
        if spec_of(state.slot) is state.spec:
            reason = f"somebody put upstream's own {target} back; call apply() again"
        return PatchStanding(planned, State.LOST, reason, target)
    reason = f"{target} was patched on top of ours by {who_made(value)}"
    return PatchStanding(planned, State.BURIED, reason, target)


def not_there(planned: PlannedPatch, chosen: Waiting | Missing) -> PatchStanding:
    """The standing of a patch whose target is not loaded, or does not exist."""
    if isinstance(chosen, Missing):
        return PatchStanding(planned, State.MISSING_TARGET, chosen.reason, None)
    return PatchStanding(planned, State.PENDING, chosen.reason, chosen.target)


def adopted(planned: PlannedPatch, mark: Mark, live: Mark | None) -> PatchStanding:
    """The standing of a patch that another copy of the toolkit has applied."""
    if live is None:
        reason = f"{mark.toolkit} had applied it and does no longer"
        return PatchStanding(planned, State.LOST, reason, mark.target)
    reason = f"applied by another copy of the toolkit, {mark.toolkit}"
    return PatchStanding(planned, State.APPLIED, reason, mark.target)


def at_rest(planned: PlannedGap, reached: bool, beneath: Slot | None) -> Standing:
    """The standing of a gap that is not in the engine's hands.

    `reached` tells whether any plan was reached in this process, `beneath` where
    a layer of the gap had to stay, inert, because of a foreign patch on top.
    """
    if planned.state is not None:
        reason = planned.reason
        if beneath is not None:
            reason += (
                f"; {beneath.target} keeps its layer, which passes straight through, "
                f"beneath {who_made(beneath.read())}"
            )
        return Standing(planned, planned.state, reason, ())
    if not reached:
        return Standing(planned, State.PENDING, "applies when upstream is imported", ())
    return Standing(planned, State.REVERTED, "given up to another copy", ())


def _is_idle(one: PatchStanding) -> bool:
    """Whether this patch waits for a module that may never be needed here."""
    return one.patch.patch.lazy and one.state is State.PENDING


def who_made(raw: Any) -> str:
    """A foreign slot value in words: its name and where it comes from."""
    if raw is ABSENT:
        return "somebody who deleted it"
    value = peel(raw)
    kind = type(value)
    name = getattr(value, "__qualname__", kind.__qualname__)
    code = getattr(value, "__code__", None)
    # functools.wraps copies the module's name; the code knows its file.
    where = getattr(code, "co_filename", getattr(value, "__module__", kind.__module__))
    return f"{name} of {where}"


def combined(planned: PlannedGap, patches: tuple[PatchStanding, ...]) -> Standing:
    """The standing of a gap from that of its patches."""
    return Standing(planned, *_combined(planned, patches), patches)


def _combined(
    planned: PlannedGap, patches: tuple[PatchStanding, ...]
) -> tuple[State, str]:
    states = {one.state for one in patches}
    for fault in (State.LOST, State.BURIED):
        if fault in states:
            return fault, next(one.reason for one in patches if one.state is fault)
    # What companions bring comes and goes with the gap and says nothing of its own.
    patches = tuple(one for one in patches if one.patch.companion is None)
    found = [one for one in patches if one.state is not State.MISSING_TARGET]
    needed = [one for one in found if not _is_idle(one)]
    found = needed or found
    states = {one.state for one in found}
    if states == {State.APPLIED}:
        adopted = [one.reason for one in found if one.reason.startswith("applied by")]
        return State.APPLIED, adopted[0] if adopted else planned.reason
    waiting = [one.reason for one in found if one.state is State.PENDING]
    if states == {State.PENDING}:
        return State.PENDING, waiting[0]
    if not found:
        return State.MISSING_TARGET, patches[0].reason
    return State.PARTIAL, f"{len(found) - len(waiting)} of {len(found)}; {waiting[0]}"
