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
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..plan import Plan, PlannedGap, PlannedPatch
from ..states import State
from .choose import Missing, choose, exists
from .faults import Fault, fault_of
from .hooks import Hooks
from .layers import Layer, SlotState
from .reliances import check_reliances
from .replacements import replacement_of
from .runs import Run, ask_back, modules, of_another_copy, raise_faults, staying
from .slot import Slot, is_initialising
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
from .wrappers import Mark, foreign_mark

__all__ = ["Engine"]

log = logging.getLogger("ascend_shims")


class Engine:
    """One process's patches."""

    def __init__(self, toolkit: str, given_up: Callable[[], object] = list) -> None:
        self._toolkit = toolkit
        self._given_up = given_up
        self._lock = threading.RLock()
        self._table = Table()
        self._hooks = Hooks(self._module_executed)
        self._plan: Plan | None = None
        self._runs: dict[str, Run] = {}
        self._leaving: list[Run] = []
        """Gaps that are to be taken back, and are not yet."""
        self._stuck: list[str] = []

    # Reaching a plan

    def reach(self, plan: Plan) -> None:
        """Apply what `plan` wants and take back everything else.

        A gap that cannot be applied is rolled back, others go on. Raises
        `RestoreError`, after doing all the rest, where something could not be
        taken back.
        """
        leaving: list[Run] = []
        try:
            with self._lock:
                self._take_up(plan)
                errors = self._begin(plan, leaving)
            errors += ask_back(leaving)
            self._lay(plan, frozenset())
        except BaseException as error:
            self._mend(plan, error, leaving=leaving)
            raise
        if errors:
            raise RestoreError("; ".join(errors))

    def _take_up(self, plan: Plan) -> None:
        """Make `plan` what is to be reached. Touches nothing."""
        kept = staying(self._runs, self._plan, plan)
        self._leaving += [run for gap, run in self._runs.items() if gap not in kept]
        self._plan = plan
        self._runs = {
            planned.gap.id: kept.get(planned.gap.id) or Run(planned)
            for planned in plan.wanted
        }
        for run, planned in zip(self._runs.values(), plan.wanted, strict=True):
            run.planned, run.fault = planned, None
        self._table.upstreams = plan.registry.upstreams
        roots = [package.partition(".")[0] for package in plan.registry.packages]
        self._table.references.skip = tuple(dict.fromkeys(["ascend_shims", *roots]))

    def _begin(self, plan: Plan, left: list[Run]) -> list[str]:
        """Watch for what `plan` waits for, and take back what it does not want.

        Adds the gaps that have left to `left`; returns what still holds something of
        theirs.
        """
        self._hooks.watch(modules(plan))
        while self._leaving:
            self._table.remove(self._leaving[-1].planned.gap.id)
            left.append(self._leaving.pop())
        return self._settle()

    def _mend(
        self,
        plan: Plan,
        error: BaseException,
        *,
        leaving: list[Run] | None = None,
        executed: frozenset[str] = frozenset(),
    ) -> None:
        """Go to the end of what `error` came into the middle of.

        A gap that is not in place as a whole then has failed; nothing of it stays.
        """
        with self._lock:
            if self._plan is not plan and leaving is not None:
                self._take_up(plan)
            left: list[Run] = [] if leaving is None else leaving
            self._begin(self._plan or plan, left)
            for run in self._runs.values():
                if run.fault is None and self._is_torn(run, executed):
                    run.fault = fault_of(error)
                if run.fault is not None:
                    self._table.remove(run.planned.gap.id)
            self._settle()
        ask_back(left)

    def _is_torn(self, run: Run, executed: frozenset[str]) -> bool:
        """Whether a patch could be in force and is not, or whether that is unknown."""
        try:
            return any(
                isinstance(chosen := choose(one.patch, executed), Slot)
                and chosen.target not in run.adopted
                and (one.gate == "open" or exists(chosen))
                and self._state_for(run, chosen) is None
                for one in run.planned.passing
            )
        except Exception:  # noqa: BLE001 - what came before says more
            return True

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
            current = [
                (run, layers, fault or unreadable.get(run.planned.gap.id))
                for run, layers, fault in prepared
                if self._runs.get(run.planned.gap.id) is run
            ]
            whole = [(run, layers) for run, layers, fault in current if fault is None]
            together = self._lay_together(whole)
            for run, layers, fault in current:
                if fault is not None or not together:
                    self._lay_gap(run, layers, fault)
            if not executed:
                self._table.queue_all()
            self._settle()

    def _prepared(
        self, run: Run, plan: Plan, executed: frozenset[str]
    ) -> tuple[list[tuple[Slot, Layer]], Fault | None]:
        """The layers of a gap whose slots exist now, or why it cannot be applied."""
        pairs: list[tuple[Slot, Layer]] = []
        missing: list[str] = []
        try:
            for planned in run.planned.passing:
                chosen = choose(planned.patch, executed)
                own = planned.companion is None
                if isinstance(chosen, Missing):
                    if planned.gate == "open":
                        return [], Fault(State.MISSING_TARGET, chosen.reason)
                    missing += [chosen.reason] * own
                elif isinstance(chosen, Slot):
                    if planned.gate == "by-contract" and not exists(chosen):
                        missing += [f"{chosen.target} does not exist"] * own
                        continue
                    layer = self._layer(run.planned, planned, plan)
                    pairs.append((chosen, layer))
            if missing and len(missing) == run.planned.count_own:
                return [], Fault(State.MISSING_TARGET, "; ".join(missing))
            check_reliances(run.planned, executed)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - kept and reported
            return [], fault_of(error)
        return pairs, None

    def _layer(self, gap: PlannedGap, planned: PlannedPatch, plan: Plan) -> Layer:
        replacement, said = replacement_of(plan, gap, planned)
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

    def _lay_together(self, gaps: list[tuple[Run, list[tuple[Slot, Layer]]]]) -> bool:
        """Apply all of these, or none: then they are tried one by one.

        A slot that several gaps patch is folded and written once.
        """
        try:
            self._table.add(
                [one for run, pairs in gaps for one in self._additions(run, pairs)]
            )
        except Exception:  # noqa: BLE001 - raised again by the one that it is about
            return False
        return True

    def _lay_gap(
        self, run: Run, pairs: list[tuple[Slot, Layer]], fault: Fault | None
    ) -> None:
        gap = run.planned.gap.id
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
        self, run: Run, pairs: list[tuple[Slot, Layer]]
    ) -> Iterator[tuple[Slot, Layer]]:
        """The layers that are not in force yet, in whatever form."""
        gap = run.planned.gap.id
        for chosen, layer in pairs:
            if self._state_for(run, chosen) is not None:
                continue
            slot = chosen if layer.is_binding else self._table.home(chosen)
            mark = foreign_mark(slot.read(), gap, self.give_up)
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

    def _state_for(self, run: Run, chosen: Slot) -> SlotState | None:
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

    def give_up(self, gap: str) -> None:
        """Take back one gap because another copy of the toolkit asks for it."""
        with self._lock:
            self._runs.pop(gap, None)
            try:
                self._table.remove(gap)
                errors = self._settle()
            except BaseException:
                self._table.remove(gap)
                self._settle()
                raise
        if self.is_idle:
            self._hooks.watch(frozenset())
            self._given_up()
        if errors:
            raise RestoreError("; ".join(errors))

    # The import hook

    def _module_executed(self, module: str) -> None:
        # Another thread may reach for another plan meanwhile. For it the module is
        # still being imported, so what that plan wants here is up to us, too.
        while (plan := self._plan) is not None:
            executed = frozenset({module})
            try:
                self._lay(plan, executed)
            except Exception as error:
                self._mend(plan, error, executed=executed)
                # An import must not fail because of us, nor hide that.
                log.exception("could not patch %s after its import", module)
            except BaseException as error:
                # The import fails. A module that was being imported is gone then, and
                # what waits for it goes on waiting; one that was reloaded stays.
                gone = is_initialising(sys.modules[module])
                self._mend(plan, error, executed=frozenset() if gone else executed)
                raise
            if self._plan is plan:
                break
        if plan is not None and plan.switches.strict:
            raise_faults(self._runs.values(), module)

    # Where things stand

    def standing(self, planned: PlannedGap) -> Standing:
        """Where a gap stands, read from the live bindings."""
        with self._lock:
            run = self._runs.get(planned.gap.id)
            if run is None and self._plan is None:
                run = of_another_copy(planned, self.give_up)
            if run is None or planned.state is not None:
                reached = self._plan is not None
                return at_rest(planned, reached, self._table.aside(planned.gap.id))
            if run.fault is not None:
                return Standing(planned, run.fault.state, run.fault.reason, ())
            patches = tuple(self._patch_standing(run, one) for one in planned.passing)
        return combined(planned, patches)

    def _patch_standing(self, run: Run, planned: PlannedPatch) -> PatchStanding:
        chosen = choose(planned.patch, frozenset())
        if not isinstance(chosen, Slot):
            return not_there(planned, chosen)
        if planned.gate == "by-contract" and not exists(chosen):
            return not_there(planned, Missing(f"{chosen.target} does not exist"))
        mark = run.adopted.get(chosen.target)
        if mark is not None:
            live = foreign_mark(chosen.read(), mark.gap, self.give_up)
            return adopted(planned, mark, live)
        return in_place(planned, chosen, self._state_for(run, chosen))

    def rest(self) -> None:
        """Be as before the first plan, where nothing is applied."""
        with self._lock:
            if self.is_idle:
                self._plan = None

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
