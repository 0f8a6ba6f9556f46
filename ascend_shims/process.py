"""This process's one engine, its switches, and what it tells its children.

The only place with process-wide state. Everything that the public functions do
goes through the `Process` here.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Set
from pathlib import Path

from . import __file__ as _package_file
from . import __version__
from .engine.engine import Engine
from .engine.replacements import import_patches
from .environment import read_environment
from .plan import REVERT, Plan, make_plan
from .processes.responder import Responder
from .processes.role import own_role
from .registry import load
from .registry.model import Registry
from .report import GapReport, Report, UnappliedError, make_report
from .states import State
from .switches import SwitchError, Switches, read_switches

__all__ = ["Process", "the_process"]

log = logging.getLogger("ascend_shims")

_SUSPENDED = "disabled()"
"""Who says that a gap is off inside a `disabled()` block."""

_RAY = "VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY"
"""vLLM's own variable: prefixes of the variables that its Ray workers are given."""


class _Exports:
    """What we changed in `os.environ`, so that it can be put back exactly."""

    def __init__(self) -> None:
        self._found: dict[str, str | None] = {}
        self._said: dict[str, str | None] = {}

    def _yield(self) -> None:
        """Let go of what somebody else has set since: that is theirs."""
        for name, said in list(self._said.items()):
            if os.environ.get(name) != said:
                del self._said[name], self._found[name]

    def as_found(self) -> dict[str, str]:
        """The environment as it would be without us."""
        self._yield()
        environ = dict(os.environ)
        for name, value in self._found.items():
            _set(environ, name, value)
        return environ

    def clear(self) -> None:
        self._yield()
        for name, value in self._found.items():
            _set(os.environ, name, value)
        self._found.clear()
        self._said.clear()

    def say(self, base: Switches, switches: Switches) -> None:
        """Make the environment say `switches`, touching only what differs."""
        found = self.as_found()
        wanted = {name: found.get(name) for name in self._found}
        if switches != base:
            said = switches.as_environment()
            before = base.as_environment()
            for name in {*said, *before}:
                if said.get(name) != before.get(name):
                    wanted[name] = said.get(name)
        prefixes = [p for p in found.get(_RAY, "").split(",") if p.strip()]
        if "ASCEND_SHIMS" not in map(str.strip, prefixes):
            wanted[_RAY] = ",".join([*prefixes, "ASCEND_SHIMS"])
        for name, value in wanted.items():
            self._found.setdefault(name, found.get(name))
            self._said[name] = value
            _set(os.environ, name, value)


def _set(
    environ: dict[str, str] | os._Environ[str], name: str, value: str | None
) -> None:
    if value is None:
        environ.pop(name, None)
    else:
        environ[name] = value


class Process:
    """The state of ascend-shims in this process."""

    def __init__(self) -> None:
        toolkit = f"{__version__} of {Path(_package_file).parent}"
        self._engine = Engine(toolkit)
        self._responder = Responder(lambda: self.status().as_dict())
        self._exports = _Exports()
        self._lock = threading.RLock()
        self._base: Switches = Switches()
        self._plan: Plan | None = None
        self._suspensions = Counter[str]()
        """How many `disabled()` blocks a gap is off in."""
        self._decided_here = False
        """Whether the program itself has called `apply()` or `revert()`."""
        self._follows_forks = False

    def plan(self, switches: Switches) -> Plan:
        """What `switches` come to in this process. Touches nothing.

        Raises `RegistryError` where the registry cannot be used.
        """
        registry = load(switches.registry)
        environment = read_environment(
            _packages(registry), assume=switches.assume, device=switches.device
        )
        return make_plan(registry, environment, switches)

    def apply(
        self,
        *,
        only: Iterable[str] | None,
        disable: Iterable[str],
        strict: bool | None,
        registry: Path | None,
        decided_here: bool = True,
    ) -> Report:
        with self._lock:
            base = read_switches(self._exports.as_found())
        narrowed = base.narrowed(
            only=only,
            disable=disable,
            strict=strict,
            registry=registry,
            said_by="apply()",
        )
        plan = self.plan(narrowed)
        _refuse_unknown(plan.registry, only, disable)
        for complaint in (*base.complaints, *base.unknown(_ids(plan.registry))):
            warnings.warn(complaint, stacklevel=3)
        import_patches(plan)
        with self._lock:
            self._decided_here = decided_here
            self._base = base
            self._reach(plan)
        report = self.status()
        if narrowed.strict:
            unapplied = [gap for gap in report.gaps if _is_missed(gap, narrowed)]
            if unapplied:
                raise UnappliedError(report, unapplied)
        return report

    def start(self) -> None:
        """What the vLLM plugin does: apply what the environment says.

        A program that has decided for itself is left alone.
        """
        if not self._decided_here:
            self.apply(
                only=None, disable=(), strict=None, registry=None, decided_here=False
            )

    def _reach(self, plan: Plan, *, reverting: bool = False) -> None:
        self._plan = plan
        try:
            self._engine.reach(plan)
        finally:
            if self._engine.is_idle:
                self._responder.stop()
            else:
                self._follow_forks()
                self._responder.start()
            # That nothing is applied may be a choice, which children must know;
            # after a revert the environment is as it was.
            reverting |= any(planned.state is State.REVERTED for planned in plan.gaps)
            if self._engine.is_idle and (reverting or plan.switches == self._base):
                self._exports.clear()
            else:
                self._exports.say(self._base, plan.switches)

    def revert(self, gaps: tuple[str, ...]) -> Report:
        with self._lock:
            self._decided_here = True
            if self._plan is not None:
                plan = self._plan
                _refuse_unknown(plan.registry, gaps, ())
                held = {p.gap.id for p in plan.wanted} | _suspended(plan)
                self._narrow(plan, held & set(gaps or held), REVERT)
            elif gaps:
                _refuse_unknown(self._idle_plan().registry, gaps, ())
        return self.status()

    def switch_off(self, gaps: tuple[str, ...]) -> Callable[[], None]:
        """Take `gaps` out of force; the result puts those back that were."""
        with self._lock:
            plan = self._plan or self._idle_plan()
            _refuse_unknown(plan.registry, gaps, ())
            if self._plan is None:
                return lambda: None
            held = {p.gap.id for p in plan.wanted} | _suspended(plan)
            leaving = held & set(gaps) if gaps else held
            self._suspensions.update(leaving)
            self._narrow(plan, leaving, _SUSPENDED)

        def back() -> None:
            with self._lock:
                self._suspensions.subtract(leaving)
                current = self._plan
                if current is None:
                    return
                over = {gap for gap in leaving if not self._suspensions[gap]}
                switches = current.switches.widened(over & _suspended(current))
                self._reach(make_plan(current.registry, current.environment, switches))

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

    def status(self) -> Report:
        """Where everything stands now, read from the live bindings."""
        return self.report_on(self._plan or self._idle_plan())

    def report_on(self, plan: Plan) -> Report:
        """Where the gaps of `plan` stand in this process."""
        return make_report(
            plan,
            [self._engine.standing(planned) for planned in plan.gaps],
            process={"pid": os.getpid(), "role": own_role()},
            rebound=self._engine.rebound,
            stale=self._engine.stale(),
        )

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


def _packages(registry: Registry) -> list[str]:
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
