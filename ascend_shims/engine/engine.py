"""The engine: brings the bindings of this process to what a plan says.

    engine.reach(plan)      apply what is wanted, take back what is not
    engine.standing(...)    where a gap stands, read from the live bindings

Going from one plan to the next is the only operation there is: to revert a gap
is to reach a plan in which it is not wanted.

Nothing is imported while the lock is held, because whoever imports holds an
import lock and may come here for ours.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..plan import Plan, PlannedGap, PlannedPatch
from ..states import State
from .choose import Missing, choose, exists
from .contract import BrokenContractError
from .faults import Fault, fault_of
from .hooks import Hooks
from .layers import Layer, SlotState
from .reliances import check_reliances
from .replacements import replacement_of
from .slot import Slot, split
from .standing import (
    PatchStanding,
    Standing,
    adopted,
    at_rest,
    combined,
    fate,
    in_place,
    not_there,
)
from .table import RestoreError, Table, spec_of
from .wrappers import Mark, mark_of, peel

__all__ = ["Engine"]

log = logging.getLogger("ascend_shims")


@dataclass
class _Run:
    """What is known of one wanted gap in the course of reaching a plan."""

    planned: PlannedGap
    fault: Fault | None = None
    landing: dict[str, Slot] = field(default_factory=dict)
    """By target: the slot that the patch went to, often the target's own."""
    adopted: dict[str, Mark] = field(default_factory=dict)
    """Targets that another copy of the toolkit has patched for the same gap."""


class Engine:
    """One process's patches."""

    def __init__(self, toolkit: str) -> None:
        self._toolkit = toolkit
        self._lock = threading.RLock()
        self._table = Table()
        self._hooks = Hooks(self._module_executed)
        self._plan: Plan | None = None
        self._runs: dict[str, _Run] = {}
        self._stuck: list[str] = []

    # Reaching a plan

    def reach(self, plan: Plan) -> None:
        """Apply what `plan` wants and take back everything else.

        A gap that cannot be applied is rolled back, others go on. Raises
        `RestoreError`, after doing all the rest, where something could not be
        taken back.
        """
        with self._lock:
            staying = _staying(self._runs, self._plan, plan)
            leaving = [r for gap, r in self._runs.items() if gap not in staying]
            self._plan = plan
            self._runs = {
                planned.gap.id: staying.get(planned.gap.id) or _Run(planned)
                for planned in plan.wanted
            }
            for run, planned in zip(self._runs.values(), plan.wanted, strict=True):
                run.planned, run.fault = planned, None
            self._table.upstreams = plan.registry.upstreams
            self._table.references.skip = (
                "ascend_shims",
                plan.registry.package.partition(".")[0],
            )
            self._hooks.watch(_modules(plan))
            for run in reversed(leaving):
                self._table.remove(run.planned.gap.id)
            errors = self._settle()
        errors += _ask_back(leaving)
        self._lay(plan, frozenset())
        if errors:
            raise RestoreError("; ".join(errors))

    def _settle(self) -> list[str]:
        """Finish the changes made. Returns what still holds something of ours."""
        for _ in range(2):
            refused = self._table.tidy()
            stuck = self._table.settle()
            if not (refused or stuck or self._table.is_dirty):
                break
            # What could not be done at once may well succeed now.
        self._stuck = [one.text for one in stuck]
        return refused + [f"{one.text} still holds it" for one in stuck if one.ours]

    def _lay(self, plan: Plan, executed: frozenset[str]) -> None:
        """Apply as much of `plan` as is loaded. Imports the patches it needs."""
        prepared = [
            (run, *self._prepared(run, plan, executed))
            for run in list(self._runs.values())
            if run.fault is None
        ]
        with self._lock:
            if self._plan is not plan:
                # Another thread reached for another plan meanwhile; it stands.
                return
            unreadable = self._forget_lost(reaching=not executed)
            for run, layers, fault in prepared:
                self._lay_gap(run, layers, fault or unreadable.get(run.planned.gap.id))
            if not executed:
                self._table.queue_all()
            self._settle()

    def _prepared(
        self, run: _Run, plan: Plan, executed: frozenset[str]
    ) -> tuple[list[tuple[Slot, Layer]], Fault | None]:
        """The layers of a gap whose slots exist now, or why it cannot be applied."""
        pairs: list[tuple[Slot, Layer]] = []
        missing: list[str] = []
        try:
            for planned in run.planned.passing:
                chosen = choose(planned.patch, executed)
                if isinstance(chosen, Missing):
                    if planned.gate == "open":
                        return [], Fault(State.MISSING_TARGET, chosen.reason)
                    missing.append(chosen.reason)
                elif isinstance(chosen, Slot):
                    if planned.gate == "by-contract" and not exists(chosen):
                        missing.append(f"{chosen.target} does not exist")
                        continue
                    layer = self._layer(run.planned, planned, plan)
                    pairs.append((chosen, layer))
            if missing and len(missing) == len(run.planned.passing):
                return [], Fault(State.MISSING_TARGET, "; ".join(missing))
            check_reliances(run.planned, executed)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - kept and reported
            return [], fault_of(error)
        return pairs, None

    def _layer(self, gap: PlannedGap, planned: PlannedPatch, plan: Plan) -> Layer:
        replacement, said = replacement_of(plan, gap, planned.patch)
        return Layer(
            gap=gap.gap.id,
            order=(gap.position, planned.position),
            patch=planned.patch,
            replacement=replacement,
            said=said,
            mark=self._mark,
        )

    def _mark(self, wears: Any, gap: str, target: str) -> Mark:
        return Mark(gap, target, self._toolkit, self.give_up, wears)

    def _lay_gap(
        self, run: _Run, pairs: list[tuple[Slot, Layer]], fault: Fault | None
    ) -> None:
        gap = run.planned.gap.id
        if self._runs.get(gap) is not run:
            return
        if fault is None:
            try:
                self._table.add(list(self._additions(run, pairs)))
            except Exception as error:  # noqa: BLE001 - kept and reported
                fault = fault_of(error)
        if fault is None:
            return
        run.fault = fault
        log.warning("%s: %s: %s", gap, fault.state, fault.reason)
        self._table.remove(gap)
        refused = self._table.tidy()
        if refused:
            reason = "; ".join([fault.reason, *refused])
            run.fault = Fault(State.FAILED, reason)

    def _additions(
        self, run: _Run, pairs: list[tuple[Slot, Layer]]
    ) -> Iterator[tuple[Slot, Layer]]:
        """The layers that are not in force yet, in whatever form."""
        gap = run.planned.gap.id
        for chosen, layer in pairs:
            if self._state_for(run, chosen) is not None:
                continue
            slot = chosen if layer.is_binding else self._table.home(chosen)
            mark = self._foreign_mark(slot, gap)
            if mark is not None:
                run.adopted[chosen.target] = mark
                continue
            run.adopted.pop(chosen.target, None)
            run.landing[chosen.target] = slot
            yield slot, layer

    def _forget_lost(self, *, reaching: bool) -> dict[str, Fault]:
        """Let go of the slots that a reload, or somebody else, has emptied.

        What somebody put back on purpose is patched anew when the user asks for
        it, not when some module happens to be imported. Returns the gaps of which
        that cannot be told.
        """
        unreadable: dict[str, Fault] = {}
        forgotten = False
        for state in self._table.states:
            try:
                lost = fate(state) is State.LOST
            except Exception as error:  # noqa: BLE001 - kept and reported
                gaps = [layer.gap for layer in state.layers]
                unreadable.update(dict.fromkeys(gaps, fault_of(error)))
                continue
            if lost and (reaching or spec_of(state.slot) is not state.spec):
                self._table.supersede(state)
                forgotten = True
        if forgotten:
            self._settle()
        return unreadable

    def _state_for(self, run: _Run, chosen: Slot) -> SlotState | None:
        """What we know of the slot that the patch on `chosen` went to.

        That is another slot where `chosen` only refers to its value; a reload may
        have ended that.
        """
        gap = run.planned.gap.id
        landed = run.landing.get(chosen.target, chosen)
        state = self._table.state_at(landed, gap)
        if state is None or landed.key == chosen.key:
            return state
        if chosen.read() is state.visible:
            return state
        if self._table.references.has_moved(chosen):
            return state
        return self._table.state_at(chosen, gap)

    def _foreign_mark(self, slot: Slot, gap: str) -> Mark | None:
        """The mark of another copy of this toolkit that has patched `slot`."""
        value, seen = slot.read(), set[int]()
        while id(value) not in seen:
            seen.add(id(value))
            mark = mark_of(value)
            if mark is not None and mark.gap == gap and mark.revert != self.give_up:
                return mark
            value = getattr(peel(value), "__wrapped__", value)
        return None

    def give_up(self, gap: str) -> None:
        """Take back one gap because another copy of the toolkit asks for it."""
        with self._lock:
            self._runs.pop(gap, None)
            self._table.remove(gap)
            errors = self._settle()
        if errors:
            raise RestoreError("; ".join(errors))

    # The import hook

    def _module_executed(self, module: str) -> None:
        # Another thread may reach for another plan meanwhile. For it the module is
        # still being imported, so what that plan wants here is up to us, too.
        while (plan := self._plan) is not None:
            try:
                self._lay(plan, frozenset({module}))
            except Exception:
                # An import must not fail because of us, nor hide that.
                log.exception("could not patch %s after its import", module)
            if self._plan is plan:
                break
        if plan is not None and plan.switches.strict:
            self._raise_faults(module)

    def _raise_faults(self, module: str) -> None:
        for run in self._runs.values():
            if run.fault is not None and module in _modules_of(run.planned):
                raise BrokenContractError(
                    f"{run.planned.gap.id}: {run.fault.state}: {run.fault.reason} "
                    "(ASCEND_SHIMS_STRICT is set)"
                )

    # Where things stand

    def standing(self, planned: PlannedGap) -> Standing:
        """Where a gap stands, read from the live bindings."""
        with self._lock:
            run = self._runs.get(planned.gap.id)
            if run is None or planned.state is not None:
                reached = self._plan is not None
                return at_rest(planned, reached, self._table.aside(planned.gap.id))
            if run.fault is not None:
                return Standing(planned, run.fault.state, run.fault.reason, ())
            patches = tuple(self._patch_standing(run, one) for one in planned.passing)
        return combined(planned, patches)

    def _patch_standing(self, run: _Run, planned: PlannedPatch) -> PatchStanding:
        chosen = choose(planned.patch, frozenset())
        if not isinstance(chosen, Slot):
            return not_there(planned, chosen)
        if planned.gate == "by-contract" and not exists(chosen):
            return not_there(planned, Missing(f"{chosen.target} does not exist"))
        mark = run.adopted.get(chosen.target)
        if mark is not None:
            return adopted(planned, mark, self._foreign_mark(chosen, mark.gap))
        return in_place(planned, chosen, self._state_for(run, chosen))

    @property
    def is_idle(self) -> bool:
        """Whether nothing is applied, waiting or failed."""
        return not self._runs

    @property
    def rebound(self) -> list[str]:
        """References elsewhere that were moved along, `module:name`."""
        with self._lock:
            return self._table.references.names

    def stale(self) -> list[str]:
        """References that hold an unpatched value, and what they are."""
        with self._lock:
            return [*self._stuck, *self._table.stale()]

    # Forking

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        # The thread that held the lock does not exist here; nobody else does.
        self._lock = threading.RLock()


def _staying(runs: dict[str, _Run], before: Plan | None, plan: Plan) -> dict[str, _Run]:
    """The gaps that `plan` wants in the very form in which they are applied."""
    if before is None or before.registry.package != plan.registry.package:
        return {}
    return {
        planned.gap.id: run
        for planned in plan.wanted
        if (run := runs.get(planned.gap.id)) is not None
        and _form(run.planned) == _form(planned)
    }


def _form(planned: PlannedGap) -> tuple[object, ...]:
    gates = tuple((p.position, p.gate) for p in planned.passing)
    return planned.gap, planned.position, gates


def _ask_back(leaving: Iterable[_Run]) -> list[str]:
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


def _modules_of(planned: PlannedGap) -> set[str]:
    return {
        split(target)[0]
        for patch in planned.passing
        for target in patch.patch.candidates
    }


def _modules(plan: Plan) -> frozenset[str]:
    return frozenset(m for planned in plan.wanted for m in _modules_of(planned))
