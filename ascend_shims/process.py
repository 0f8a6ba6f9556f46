"""This process's one engine, its switches, and what it tells its children.

The only place with process-wide state. Everything that the public functions do
goes through the `Process` here.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Set
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from . import __file__ as _package_file
from . import __version__
from .coexistence import PluginHooks, providers_of
from .engine.engine import Engine
from .engine.replacements import import_patches
from .engine.standing import Standing
from .environment import read_environment
from .exports import Exports
from .observe import Observer, Summary
from .plan import REVERT, Plan, check_allowed, make_plan
from .processes.responder import Responder
from .processes.role import own_role
from .registry.found import check_found, load_all
from .registry.joined import Joined
from .registry.model import Registry
from .registry.writers import problem_of
from .report import GapReport, Report, UnappliedError, make_report
from .states import State
from .switches import SwitchError, Switches, meant, read_switches

if TYPE_CHECKING:
    from .verify.running import Verification

__all__ = ["Process", "packages_of", "the_process"]

log = logging.getLogger("ascend_shims")

_SUSPENDED = "disabled()"
"""Who says that a gap is off inside a `disabled()` block."""


class Process:
    """The state of ascend-shims in this process."""

    def __init__(self) -> None:
        toolkit = f"{__version__} of {Path(_package_file).parent}"
        self._engine = Engine(toolkit, self._given_up)
        self._responder = Responder(
            lambda: self.status().as_dict(), lambda: self._summary().as_dict()
        )
        self._observer = Observer(self._summary)
        self._exports = Exports()
        self._lock = threading.RLock()
        self._base: Switches = Switches()
        self._plan: Plan | None = None
        self._suspensions = Counter[str]()
        """How many `disabled()` blocks a gap is off in."""
        self._decided_here = False
        """Whether the program itself has called `apply()` or `revert()`."""
        self._follows_forks = False
        self._plugins = PluginHooks(self._plugin_executed)
        self._executed: set[str] = set()
        """Modules that may tell of a plugin, and that are known to have finished."""

    def plan(self, switches: Switches) -> Plan:
        """What `switches` come to in this process. Touches nothing.

        Raises `RegistryError` where the registry cannot be used, and `NotAllowedError`
        where its patches are those of a package that nobody has allowed.
        """
        registry = load_all(
            switches.registry,
            own=switches.registry_is_inherited,
            namespaces=switches.namespaces,
            allow=switches.allow,
        )
        check_allowed(registry, switches)
        environment = read_environment(
            packages_of(registry),
            assume=switches.assume,
            device=switches.device,
            providers=providers_of(registry, self._executed),
        )
        return make_plan(registry, environment, switches)

    def apply(
        self,
        *,
        only: Iterable[str] | None,
        disable: Iterable[str],
        strict: bool | None,
        registry: Path | None,
        allow: Iterable[str] = (),
        decided_here: bool = True,
    ) -> Report:
        started = time.monotonic()
        with self._lock:
            base = read_switches(self._exports.as_found())
        narrowed = base.narrowed(
            only=only,
            disable=disable,
            strict=strict,
            registry=registry,
            allow=allow,
            said_by="apply()",
        )
        plan = self.plan(narrowed)
        _refuse_unknown(plan.registry, only, disable)
        if narrowed.strict:
            check_found(plan.registry)
        complaints = [*base.complaints, *base.unknown(_ids(plan.registry))]
        if isinstance(plan.registry, Joined):
            complaints += map(str, plan.registry.unusable)
        changeable = problem_of(registry) if registry is not None else None
        if changeable:
            complaints.append(f"processes started from here refuse it: {changeable}")
        for complaint in complaints:
            warnings.warn(complaint, stacklevel=3)
        import_patches(plan)
        with self._lock:
            self._decided_here = decided_here
            self._base = base
            self._reach(plan)
        took = time.monotonic() - started
        report = self.status()
        self._observer.applied(Summary.of(report, __version__), round(took * 1000))
        if narrowed.strict:
            unapplied = [gap for gap in report.gaps if _is_missed(gap, narrowed)]
            if unapplied:
                raise UnappliedError(report, unapplied)
        return report

    def start(self) -> None:
        """What the vLLM plugin does: apply what the environment says.

        A program that has decided for itself is left alone.
        """
        if self._decided_here:
            self._observer.vllm_is_here(idle=self._is_idle)
            return
        self.apply(
            only=None, disable=(), strict=None, registry=None, decided_here=False
        )

    def _reach(self, plan: Plan, *, reverting: bool = False) -> None:
        self._plan = plan
        # Withdrawn first and installed last: the lists of finders must nest.
        # Whatever one of these raises, the others are done.
        with ExitStack() as then:
            then.callback(self._plugins.follow, plan)
            then.callback(self._tell, plan, reverting)
            then.callback(self._engine.reach, plan)
            self._plugins.withdraw()
        revised = self._revised(plan)
        if revised is not plan:
            self._reach(revised, reverting=reverting)

    def _tell(self, plan: Plan, reverting: bool) -> None:
        """Tell children, and whoever asks, what is in force."""
        idle = self._is_idle
        # That nothing is applied may be a choice, which children must know;
        # after a revert the environment is as it was.
        reverting |= any(planned.state is State.REVERTED for planned in plan.gaps)
        try:
            if idle and (reverting or plan.switches == self._base):
                self._exports.clear()
            else:
                self._exports.say(self._base, plan.switches)
        finally:
            self._observer.follow(idle=idle)
            if idle:
                self._responder.stop()
            else:
                self._follow_forks()
                self._responder.start()

    @property
    def _is_idle(self) -> bool:
        """Whether nothing is applied, waiting, failed or left to a plugin."""
        return self._engine.is_idle and not _is_left_to_plugins(self._plan)

    def _revised(self, plan: Plan) -> Plan:
        """`plan` as what plugins do now makes it; itself where nothing changed."""
        providers = providers_of(plan.registry, self._executed)
        if providers == plan.environment.providers:
            return plan
        environment = msgspec.structs.replace(plan.environment, providers=providers)
        return make_plan(plan.registry, environment, plan.switches)

    def _plugin_executed(self, module: str) -> None:
        """A class is there that tells what a plugin does better than its source."""
        self._executed.add(module)
        try:
            if self._plan is not None:
                # Before the lock is taken: this thread holds an import lock.
                import_patches(self._revised(self._plan))
            with self._lock:
                if self._plan is None:
                    return
                revised = self._revised(self._plan)
                if revised is self._plan:
                    self._plugins.follow(revised)
                else:
                    self._reach(revised)
        except Exception:
            # An import must not fail because of us, nor hide that.
            log.exception("could not revise the plan after %s was imported", module)

    def revert(self, gaps: tuple[str, ...]) -> Report:
        with self._lock:
            self._decided_here = True
            plan = self._plan or self._idle_plan()
            _refuse_unknown(plan.registry, gaps, ())
            if self._plan is None:
                plan = self._adopted(plan)
            if self._plan is not None:
                held = _held(plan)
                self._narrow(plan, meant(gaps or held, held), REVERT)
        return self.status()

    def _adopted(self, plan: Plan) -> Plan:
        """Take over, of `plan`, what another copy of the toolkit has applied here."""
        states = {p.gap.id: self._engine.standing(p).state for p in plan.wanted}
        others = {gap for gap, state in states.items() if state is not State.PENDING}
        if not others:
            return plan
        only = plan.switches.narrowed(only=others, said_by="another copy")
        taken = make_plan(plan.registry, plan.environment, only)
        self._reach(taken)
        return taken

    def _given_up(self) -> None:
        """Another copy of the toolkit has taken back all that was applied here."""
        # Who holds the lock is reaching a plan, and tells when that is done.
        if self._lock.acquire(blocking=False):
            try:
                self._plugins.withdraw()
                if self._plan is not None:
                    self._tell(self._plan, reverting=True)
            finally:
                self._lock.release()

    def switch_off(self, gaps: tuple[str, ...]) -> Callable[[], None]:
        """Take `gaps` out of force; the result puts those back that were."""
        leaving: set[str] = set()

        def back() -> None:
            with self._lock:
                self._suspensions.subtract(leaving)
                current = self._plan
                if current is None:
                    return
                over = {gap for gap in leaving if not self._suspensions[gap]}
                switches = current.switches.widened(over & _suspended(current))
                self._reach(make_plan(current.registry, current.environment, switches))

        with self._lock:
            plan = self._plan or self._idle_plan()
            _refuse_unknown(plan.registry, gaps, ())
            if self._plan is None:
                return lambda: None
            held = _held(plan)
            leaving |= meant(gaps or held, held)
            self._suspensions.update(leaving)
            try:
                self._narrow(plan, leaving, _SUSPENDED)
            except BaseException:
                # The block is not entered, so nobody will leave it.
                back()
                raise
        return back

    def remember(self) -> Callable[[], None]:
        """Where this process stands; the result goes back there."""
        with self._lock:
            plan, base, decided = self._plan, self._base, self._decided_here

        def back() -> None:
            with self._lock:
                if plan is not None:
                    self._base = base
                    self._reach(plan)
                elif self._plan is not None:
                    self._narrow(self._plan, _held(self._plan), REVERT)
                    self._engine.rest()
                    self._plan, self._base = None, base
                self._decided_here = decided

        return back

    def _narrow(self, plan: Plan, leaving: Set[str], said_by: str) -> None:
        switches = plan.switches.widened(leaving)
        switches = switches.narrowed(disable=leaving, said_by=said_by)
        self._reach(
            make_plan(plan.registry, plan.environment, switches),
            reverting=said_by == REVERT,
        )

    def _idle_plan(self) -> Plan:
        return self.plan(read_switches(self._exports.as_found()))

    @property
    def wants_some(self) -> bool:
        """Whether a gap is in force here, or waits for its modules."""
        return self._plan is not None and bool(self._plan.wanted)

    def status(self) -> Report:
        """Where everything stands now, read from the live bindings."""
        return self.report_on(self._plan or self._idle_plan())

    def _summary(self) -> Summary:
        """`status()` in a few words, without its long look for references."""
        plan = self._plan or self._idle_plan()
        process = {"pid": os.getpid(), "role": own_role()}
        standings = self._standings(plan)
        report = make_report(plan, standings, process=process, rebound=[], stale=[])
        return Summary.of(report, __version__)

    def verify(self) -> Verification:
        """What is loaded of upstream, compared with its files."""
        # Asked for seldom, and no part of what every process imports.
        from .verify.running import verify_process

        with self._lock:
            plan = self._plan or self._idle_plan()
            return verify_process(plan.registry, self.report_on(plan))

    def report_on(self, plan: Plan) -> Report:
        """Where the gaps of `plan` stand in this process."""
        return make_report(
            plan,
            self._standings(plan),
            process={"pid": os.getpid(), "role": own_role()},
            rebound=self._engine.rebound,
            stale=self._engine.stale(),
        )

    def _standings(self, plan: Plan) -> list[Standing]:
        now = self._revised(plan) if plan is self._plan else plan
        standings = []
        for planned in plan.gaps:
            standing = self._engine.standing(planned)
            if planned.left_to_a_plugin and now[planned.gap.id].wanted:
                reason = (
                    "what runs here came past our import hook and is not what the "
                    f"plugin promised ({planned.reason}); call apply() again"
                )
                standing = msgspec.structs.replace(
                    standing, state=State.LOST, reason=reason
                )
            standings.append(standing)
        return standings

    def _follow_forks(self) -> None:
        if self._follows_forks:
            return
        self._follows_forks = True
        os.register_at_fork(
            before=self._engine.before_fork,
            after_in_parent=self._engine.after_fork_in_parent,
            after_in_child=self._after_fork_in_child,
        )

    def _after_fork_in_child(self) -> None:
        self._lock = threading.RLock()
        self._engine.after_fork_in_child()
        self._responder.restart_in_child()


def _held(plan: Plan) -> set[str]:
    """The gaps that are on: in force or waiting, left to a plugin, or suspended."""
    on = (p.gap.id for p in plan.gaps if p.wanted or p.left_to_a_plugin)
    return {*on, *_suspended(plan)}


def _is_left_to_plugins(plan: Plan | None) -> bool:
    return plan is not None and any(one.left_to_a_plugin for one in plan.gaps)


def _suspended(plan: Plan) -> set[str]:
    """The gaps that are off because of `disabled()` and nothing else."""
    said_by = plan.switches.said_by
    return {gap for gap in plan.switches.disable if said_by.get(gap) == _SUSPENDED}


def _is_missed(gap: GapReport, switches: Switches) -> bool:
    """Whether strict has something to say of a gap: it is faulty, or it was asked
    for by name and cannot be had here."""
    asked = switches.only is not None and gap.id in switches.only
    kept_out = gap.state in (State.NOT_APPLICABLE, State.VERSION_SKIPPED)
    return gap.state.is_fault or (asked and kept_out)


def _ids(registry: Registry) -> list[str]:
    return [gap.id for gap in registry.gaps]


def packages_of(registry: Registry) -> list[str]:
    ranges = [gap.versions for gap in registry.gaps]
    ranges += [patch.versions for gap in registry.gaps for patch in gap.patches]
    named = [package for one in ranges for package in one]
    return list(dict.fromkeys([*registry.upstreams, *named]))


def _refuse_unknown(
    registry: Registry, only: Iterable[str] | None, disable: Iterable[str]
) -> None:
    asked = Switches().narrowed(only=only, disable=disable, said_by="the call")
    unknown = asked.unknown(_ids(registry))
    if unknown:
        raise SwitchError("; ".join(unknown))


_process: Process | None = None
_process_lock = threading.Lock()


def the_process() -> Process:
    """The one `Process` of this interpreter."""
    global _process
    # A fork may copy the lock while another thread holds it, so it is taken only
    # where there is no process yet.
    if _process is None:
        with _process_lock:
            _process = _process or Process()
    return _process
