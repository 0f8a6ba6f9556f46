"""The engine: brings the bindings of this process to what a plan says.

    engine.reach(plan)      apply what is wanted, take back what is not
    engine.standing(...)    where a gap stands, read from the live bindings

Going from one plan to the next is the only operation there is: to revert a gap
is to reach a plan in which it is not wanted.

Nothing is imported while the lock is held, because whoever imports holds an
import lock and may come here for ours.
"""

from __future__ import annotations

import importlib
import logging
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from ..plan import Plan, PlannedGap, PlannedPatch
from ..states import State
from .choose import Missing, choose, exists, home
from .contract import BrokenContractError
from .hooks import Hooks
from .layers import Layer
from .slot import (
    ImmutableOwnerError,
    MissingTargetError,
    Slot,
    is_initialising,
    resolve,
    split,
)
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
from .table import ConflictError, RestoreError, Table
from .wrappers import Mark, NotWrappableError, mark_of, peel

__all__ = ["Engine"]

log = logging.getLogger("ascend_shims")

_STATE_OF_ERROR = (
    (MissingTargetError, State.MISSING_TARGET),
    (BrokenContractError, State.BROKEN_CONTRACT),
    (NotWrappableError, State.BROKEN_CONTRACT),
    (ImmutableOwnerError, State.BROKEN_CONTRACT),
    (ConflictError, State.CONFLICT),
)


@dataclass
class _Fault:
    state: State
    reason: str


@dataclass
class _Run:
    """What is known of one wanted gap in the course of reaching a plan."""

    planned: PlannedGap
    fault: _Fault | None = None
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
            self._plan = plan
            leaving = [gap for gap in self._runs if not _wants(plan, gap)]
            self._runs = {
                planned.gap.id: self._runs.get(planned.gap.id) or _Run(planned)
                for planned in plan.wanted
            }
            for run, planned in zip(self._runs.values(), plan.wanted, strict=True):
                run.planned, run.fault = planned, None
            self._table.skip = (
                "ascend_shims",
                plan.registry.package.partition(".")[0],
            )
            self._hooks.watch(_modules(plan))
            errors = self._take_back(reversed(leaving))
        self._lay(plan, frozenset())
        if errors:
            raise RestoreError("; ".join(errors))

    def _take_back(self, gaps: Iterator[str]) -> list[str]:
        errors = []
        for gap in gaps:
            try:
                self._table.remove(gap)
            except RestoreError as error:
                errors.append(str(error))
        self._settle()
        return errors

    def _settle(self) -> None:
        self._table.tidy()
        self._stuck += self._table.settle()

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
            for run, layers, fault in prepared:
                self._lay_gap(run, layers, fault)
            self._settle()

    def _prepared(
        self, run: _Run, plan: Plan, executed: frozenset[str]
    ) -> tuple[list[tuple[Slot, Layer]], _Fault | None]:
        """The layers of a gap whose slots exist now, or why it cannot be applied."""
        pairs: list[tuple[Slot, Layer]] = []
        missing: list[str] = []
        try:
            for planned in run.planned.passing:
                chosen = choose(planned.patch, executed)
                if isinstance(chosen, Missing):
                    if planned.gate == "open":
                        return [], _Fault(State.MISSING_TARGET, chosen.reason)
                    missing.append(chosen.reason)
                elif isinstance(chosen, Slot):
                    if planned.gate == "by-contract" and not exists(chosen):
                        missing.append(f"{chosen.target} does not exist")
                        continue
                    layer = self._layer(run.planned, planned, plan)
                    pairs.append((chosen, layer))
            if missing and len(missing) == len(run.planned.passing):
                return [], _Fault(State.MISSING_TARGET, "; ".join(missing))
            _check_reliances(run.planned, executed)
        except Exception as error:  # noqa: BLE001 - kept and reported
            return [], _fault_of(error)
        return pairs, None

    def _layer(self, gap: PlannedGap, planned: PlannedPatch, plan: Plan) -> Layer:
        module = importlib.import_module(f"{plan.registry.package}.{gap.gap.module}")
        name = planned.patch.replacement
        try:
            replacement = vars(module)[name]
        except KeyError:
            raise BrokenContractError(
                f"{module.__name__} has no {name}, which the registry names as "
                f"the replacement for {planned.patch.candidates[-1]}"
            ) from None
        return Layer(
            gap=gap.gap.id,
            order=(gap.position, planned.position),
            patch=planned.patch,
            replacement=replacement,
            said=f"{module.__name__}.{name}",
            mark=self._mark,
        )

    def _mark(self, wears: Any, gap: str, target: str) -> Mark:
        return Mark(gap, target, self._toolkit, self.give_up, wears)

    def _lay_gap(
        self, run: _Run, pairs: list[tuple[Slot, Layer]], fault: _Fault | None
    ) -> None:
        gap = run.planned.gap.id
        if self._runs.get(gap) is not run:
            return
        if fault is None:
            try:
                self._table.add(list(self._additions(run, pairs)))
            except Exception as error:  # noqa: BLE001 - kept and reported
                fault = _fault_of(error)
        if fault is None:
            return
        run.fault = fault
        log.warning("%s: %s: %s", gap, fault.state, fault.reason)
        try:
            self._table.remove(gap)
        except RestoreError as error:
            run.fault = _Fault(State.FAILED, f"{fault.reason}; then {error}")

    def _additions(
        self, run: _Run, pairs: list[tuple[Slot, Layer]]
    ) -> Iterator[tuple[Slot, Layer]]:
        """The layers that are not in force yet, in whatever form."""
        gap = run.planned.gap.id
        for chosen, layer in pairs:
            slot = self._landing(run, chosen, layer)
            mark = self._foreign_mark(slot, gap)
            if mark is not None:
                run.adopted[chosen.target] = mark
                continue
            run.adopted.pop(chosen.target, None)
            state = self._table.state_at(slot, gap)
            if state is not None and fate(state) is State.LOST:
                self._table.supersede(gap, state)
                state = None
            if state is None:
                yield slot, layer

    def _landing(self, run: _Run, chosen: Slot, layer: Layer) -> Slot:
        known = run.landing.get(chosen.target)
        if known is not None:
            state = self._table.state_at(known, run.planned.gap.id)
            if state is not None and state.is_live:
                return known
        slot = chosen if layer.is_binding else home(chosen)
        run.landing[chosen.target] = slot
        return slot

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
            self._settle()

    # The import hook

    def _module_executed(self, module: str) -> None:
        plan = self._plan
        if plan is None:
            return
        try:
            self._lay(plan, frozenset({module}))
        except Exception:
            # An import must not fail because of us, and must not hide it either.
            log.exception("could not patch %s after its import", module)
        if plan.switches.strict:
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
                return at_rest(planned, reached=self._plan is not None)
            if run.fault is not None:
                return Standing(planned, run.fault.state, run.fault.reason, ())
            patches = tuple(self._patch_standing(run, one) for one in planned.passing)
        return combined(planned, patches)

    def _patch_standing(self, run: _Run, planned: PlannedPatch) -> PatchStanding:
        chosen = choose(planned.patch, frozenset())
        if not isinstance(chosen, Slot):
            return not_there(planned, chosen)
        mark = run.adopted.get(chosen.target)
        if mark is not None:
            return adopted(planned, mark, self._foreign_mark(chosen, mark.gap))
        landing = run.landing.get(chosen.target, chosen)
        state = self._table.state_at(landing, run.planned.gap.id)
        return in_place(planned, chosen.target, state)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is applied, waiting or failed."""
        return not self._runs

    @property
    def rebound(self) -> list[str]:
        """References elsewhere that were moved along, `module:name`."""
        with self._lock:
            return self._table.rebound

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


def _wants(plan: Plan, gap: str) -> bool:
    return any(planned.gap.id == gap for planned in plan.wanted)


def _modules_of(planned: PlannedGap) -> set[str]:
    return {
        split(target)[0]
        for patch in planned.passing
        for target in patch.patch.candidates
    }


def _modules(plan: Plan) -> frozenset[str]:
    return frozenset(m for planned in plan.wanted for m in _modules_of(planned))


def _fault_of(error: Exception) -> _Fault:
    for kind, state in _STATE_OF_ERROR:
        if isinstance(error, kind):
            return _Fault(state, str(error))
    return _Fault(State.FAILED, f"{type(error).__name__}: {error}")


def _check_reliances(planned: PlannedGap, executed: frozenset[str]) -> None:
    """Raise `BrokenContractError` for a relied-on symbol that a loaded module lacks."""
    for one in planned.passing:
        for reliance in one.patch.relies_on:
            module = sys.modules.get(split(reliance.symbol)[0])
            # Attributes may be set by instances only; source tells, not we.
            unknowable = reliance.how == "reads_attribute" or reliance.versions
            if unknowable or not isinstance(module, ModuleType):
                continue
            if is_initialising(module) and module.__name__ not in executed:
                continue
            try:
                found = exists(resolve(reliance.symbol))
            except MissingTargetError:
                found = False
            if not found:
                raise BrokenContractError(
                    f"{one.patch.replacement} relies on {reliance.symbol} "
                    f"({reliance.how}), which is gone"
                )
