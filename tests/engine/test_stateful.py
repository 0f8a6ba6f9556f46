"""Anything in any order, against a simple model.

Gaps come and go, modules are imported, reloaded and imported anew, others patch
the same places and leave again, reads and writes fail or are interrupted, threads
apply and revert at once. The model knows, for each slot, which layers and foreign
patches lie on each other. Whatever happened, the
calls give what the model says, and in the end every namespace holds the very
objects, in the order, that it had when its code had just been run.

At least 1,000 steps; with `ASCEND_SHIMS_SOAK=1` at least 20,000.
"""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import importlib
import os
import shutil
import sys
import tempfile
import threading
import unittest.mock
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import MethodType, ModuleType
from typing import Any

import pytest
import wrapt
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ascend_shims.engine import aliases
from ascend_shims.engine.table import RestoreError
from ascend_shims.environment import Device, Distribution, Environment
from ascend_shims.plan import Plan, make_plan
from ascend_shims.process import Process
from ascend_shims.report import Report, make_report
from ascend_shims.states import State
from ascend_shims.switches import Switches

from ..fresh import LONG
from .failing import Failure, InjectedError
from .quick import narrow
from .world import P, World

SOAK = os.environ.get("ASCEND_SHIMS_SOAK") == "1"
LEAST = 20_000 if SOAK else 1_000
"""Steps that are made."""

UPSTREAM = {
    "a": """
        def f(x=1): return x
        def g(x=1): return x
        class Base:
            def n(self, x=1): return x
        class C(Base):
            def m(self, x=1): return x
            @staticmethod
            def s(x=1): return x
        __import__("RECORD").record(globals())
    """,
    "b": """
        from UP.a import f
        h = f
        __import__("RECORD").record(globals())
    """,
}
USER = """
    from UP.a import f, C
    bound = C().m
    taken = C.s
    class Kept:
        kept = f
    __import__("RECORD").record(globals())
"""

GAPS = ("one", "two", "three", "four")
PATCHES = {
    "one": (P("a:f"), P("a:C.m")),
    "two": (P("a:f", "plus_one"), P("a:Base.n", "plus_one")),
    "three": (P("b:h", "plus_one", scope="binding"), P("a:g")),
    "four": (P("a:C.n"), P("a:C.s")),
}
LAYERS: dict[str, dict[str, Callable[[int], int]]] = {}
"""By slot and gap: what the layer makes of a result."""
for _gap, _patches in PATCHES.items():
    for _patch in _patches:
        _effect = {"times_ten": lambda x: 10 * x, "plus_one": lambda x: 1 + x}
        LAYERS.setdefault(str(_patch.target), {})[_gap] = _effect[_patch.replacement]

FOREIGN_SLOTS = ("a:f", "a:g", "a:C.m", "a:C.s", "a:Base.n", "b:h")


class QuickProcess(Process):
    """A process whose plan needs no file, and whose report no look at the heap."""

    def __init__(self, world: World, failure: Failure) -> None:
        super().__init__()
        self.world, self.failure = world, failure

    def plan(self, switches: Switches) -> Plan:
        up = self.world.up
        found = {up: Distribution(up, "0.28.0", origin="assumed")}
        here = Environment(sys.executable, found, Device("sim", "a test"))
        return make_plan(self.world.registry, here, switches)

    def report_on(self, plan: Plan) -> Report:
        # What fails is to fail while a plan is reached.
        self.failure.at = None
        standings = [self._engine.standing(planned) for planned in plan.gaps]
        return make_report(
            plan, standings, process={"pid": 1, "role": "main"}, rebound=[], stale=[]
        )

    @property
    def on(self) -> set[str]:
        return {p.gap.id for p in self._plan.wanted} if self._plan else set()


@dataclass
class Foreign:
    """Somebody else's patch, and how it leaves."""

    effect: Callable[[int], int]
    leave: Callable[[], None]


@dataclass
class Stack:
    """What lies on one slot: our layers, then a foreign patch, then layers, ..."""

    effects: dict[str, Callable[[int], int]]
    segments: list[set[str]] = field(default_factory=lambda: [set()])
    foreign: list[Foreign] = field(default_factory=list)
    had: list[bool] = field(default_factory=list)
    """By foreign patch: whether a layer of ours lay right beneath it."""
    lost: set[str] = field(default_factory=set)
    """Layers that went when a foreign patch beneath them left."""
    comes_back: str = ""
    """When they do: `always`, when a plan is `reached`, or never."""

    def reach(self, on: set[str], *, reaching: bool) -> None:
        """What bringing the slot to `on` makes of it."""
        self.lost &= on
        if self.comes_back == "always" or (reaching and self.comes_back == "reached"):
            self.segments[-1] |= self.lost
            self.lost = set()
        for segment in self.segments:
            segment &= on
        present = self.lost.union(*self.segments)
        self.segments[-1] |= (on & self.effects.keys()) - present

    def forget(self) -> None:
        """The module was executed anew: what lay here passes straight through."""
        self.segments, self.foreign, self.had = [set()], [], []
        self.lost = set()

    def leave(self, on: set[str]) -> None:
        """The slot of a module that was replaced: layers only leave it."""
        self.segments[-1] &= on

    def push(self, foreign: Foreign) -> None:
        self.foreign.append(foreign)
        self.had.append(bool(self.segments[-1]))
        self.segments.append(set())

    def pop(self, *, own: bool) -> None:
        """`own`: upstream's own value in the slot can be told for what it is."""
        self.foreign.pop().leave()
        self.lost |= self.segments.pop()
        self.comes_back = "reached" if own and not self.foreign else ""
        if self.had.pop():
            self.comes_back = "always"

    def value(self, value: int) -> int:
        for index, segment in enumerate(self.segments):
            if index:
                value = self.foreign[index - 1].effect(value)
            for gap in sorted(segment, key=GAPS.index):
                value = self.effects[gap](value)
        return value


@dataclass
class Recorded:
    """A namespace as its code left it, before anybody could touch it."""

    owner: Any
    items: list[tuple[str, Any]]

    def differences(self) -> list[str]:
        now = list(vars(self.owner).items())
        made = ("__dict__", "__weakref__", "__spec__", "__loader__", "__cached__")
        names, others = [n for n, _ in self.items], [n for n, _ in now]
        if names != others:
            return [f"{self.owner}: {names} became {others}"]
        return [
            f"{self.owner}.{name}: {old} became {new}"
            for (name, old), (_, new) in zip(self.items, now, strict=True)
            if name not in made and not _same(old, new)
        ]


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, MethodType):
        return bool(old == new)
    return old is new


class Recorder(ModuleType):
    """Imported by the made-up modules as the last thing they do."""

    def __init__(self, world: World) -> None:
        super().__init__(f"{world.prefix}_record")
        self.world = world
        self.found: dict[int, Recorded] = {}
        self.latest: dict[str, Any] = {}
        """What `a` holds, by name, as its code left it."""

    def record(self, values: dict[str, Any]) -> None:
        module = sys.modules[values["__name__"]]
        items = list(values.items())
        if module.__name__ == f"{self.world.up}.a":
            self.latest = dict(items)
            self.latest.update({f"C.{k}": v for k, v in vars(values["C"]).items()})
        else:
            items = [(name, self._stock(name, value)) for name, value in items]
        self.found[id(values)] = Recorded(module, items)
        for value in values.values():
            if isinstance(value, type) and value.__module__ == module.__name__:
                own = [(n, self._stock(n, v)) for n, v in vars(value).items()]
                self.found[id(value)] = Recorded(value, own)

    def _stock(self, name: str, value: Any) -> Any:
        """What a name that was imported would hold without us."""
        stock = {
            "f": self.latest["f"],
            "h": self.latest["f"],
            "kept": self.latest["f"],
            "taken": self.latest["C.s"].__func__,
        }
        if name == "bound":
            return MethodType(self.latest["C.m"], value.__self__)
        return stock.get(name, value)


ERRORS = (InjectedError, MemoryError, KeyboardInterrupt, SystemExit)


def _apply(process: Process, **options: Any) -> None:
    process.apply(
        **{"only": None, "disable": (), **options}, strict=None, registry=None
    )


ACTS: dict[str, Callable[[Process], object]] = {
    "apply": _apply,
    "apply one": lambda process: _apply(process, only=["one"]),
    "apply without": lambda process: _apply(process, disable=["one", "three"]),
    "revert": lambda process: process.revert(()),
    "revert two": lambda process: process.revert(("two",)),
    "a block": lambda process: process.switch_off(("one", "four"))(),
    "status": lambda process: process.status(),
}
"""What threads do at once."""


class Machine(RuleBasedStateMachine):
    """One history."""

    steps = 0
    """All that were made, in every history."""

    @initialize()
    def begin(self) -> None:
        # What is counted after each rule is counted after this one as well.
        Machine.steps -= 1
        self.context = pytest.MonkeyPatch()
        self.root = Path(tempfile.mkdtemp())
        self.context.syspath_prepend(self.root)
        self.context.setattr(sys, "dont_write_bytecode", True)
        for name in [n for n in os.environ if n.startswith("ASCEND_SHIMS")]:
            self.context.delenv(name)
        self.world = World(self.root)
        self.recorder = Recorder(self.world)
        sys.modules[self.recorder.__name__] = self.recorder
        sources = {
            name: code.replace("RECORD", self.recorder.__name__)
            for name, code in UPSTREAM.items()
        }
        self.world.upstream(**sources)
        self.user = f"{self.world.prefix}_module"
        self.world.write(
            f"{self.user}.py", USER.replace("RECORD", self.recorder.__name__)
        )
        for gap, patches in PATCHES.items():
            self.world.gap(gap, *patches)
        look, mine = aliases._modules, (self.world.up, self.world.prefix)
        narrow(self.context, lambda: [m for m in look() if m.__name__.startswith(mine)])
        self.failure = Failure(self.context)
        self.process = QuickProcess(self.world, self.failure)
        self.meta_path = list(sys.meta_path)
        self.environ = dict(os.environ)
        self.stacks = {slot: Stack(effects) for slot, effects in LAYERS.items()}
        self.faulty: set[str] = set()
        self.blocks: list[tuple[Callable[[], None], bool]] = []
        self.modules: dict[str, Any] = {}
        self.source: dict[str, Stack] = {}
        """What lies on the function that a module imported by name."""
        self.replaced: list[Stack] = []
        """What lies on slots of modules that were imported anew since."""
        self.kept: list[tuple[Any, Stack]] = []
        self.in_step = True
        """Whether `b.h`, without its layers, is the function that `b` imported."""

    # Ours

    def reached(self, *, reaching: bool = True) -> None:
        """The engine was at work: what is wanted and has no fault is in place."""
        on = self.process.on - self.faulty
        for slot, stack in self.stacks.items():
            if slot.partition(":")[0] in self.modules:
                stack.reach(on, reaching=reaching)
        for stack in self.replaced:
            stack.leave(on)
        if reaching and not self.stacks["b:h"].foreign:
            self.in_step = True

    @rule(
        only=st.none() | st.sets(st.sampled_from(GAPS)),
        disable=st.sets(st.sampled_from(GAPS), max_size=2),
    )
    def apply(self, only: set[str] | None, disable: set[str]) -> None:
        self.process.apply(only=only, disable=disable, strict=None, registry=None)
        assert self.process.on == (set(GAPS) if only is None else only) - disable
        self.faulty = set()
        self.reached()

    @contextlib.contextmanager
    def failing(self, at: int, error: type[BaseException]) -> Iterator[None]:
        """One of the reads and writes inside fails, if there are so many."""
        self.failure.count()
        self.failure.at, self.failure.error = at, error
        # What cannot be read cannot be said to be back; it is told, and all the
        # rest is done.
        try:
            with contextlib.suppress(RestoreError, error):
                yield
        finally:
            self.failure.at = None

    @property
    def calm(self) -> bool:
        """Whether nobody else has patched anything, and nothing was lost to that.

        Where layers lie on each other in the end does not depend then on the way there;
        nor on slots of replaced modules, to which a layer never comes back.
        """
        troubled = any(one.foreign or one.lost for one in self.stacks.values())
        return not troubled and not any(any(one.segments) for one in self.replaced)

    def settled(self) -> None:
        """What was on before is applied, whatever came in between."""
        if self.process._plan is not None:
            self.apply(only=self.process.on, disable=set())

    @rule(at=st.integers(1, 60), error=st.sampled_from([InjectedError, MemoryError]))
    def apply_with_a_failure(self, at: int, error: type[Exception]) -> None:
        with self.failing(at, error):
            self.process.apply(only=None, disable=(), strict=None, registry=None)
        report = self.process.status()
        self.faulty = {g.id for g in report.gaps if g.state is State.FAILED}
        self.reached()

    @precondition(lambda self: self.calm)
    @rule(at=st.integers(1, 60), error=st.sampled_from([KeyboardInterrupt, SystemExit]))
    def apply_with_an_interrupt(self, at: int, error: type[BaseException]) -> None:
        with self.failing(at, error):
            self.process.apply(only=None, disable=(), strict=None, registry=None)
        self.apply(only=None, disable=set())

    @precondition(lambda self: self.calm)
    @rule(
        gaps=st.sets(st.sampled_from(GAPS), max_size=2),
        at=st.integers(1, 60),
        error=st.sampled_from(ERRORS),
    )
    def revert_with_a_failure(
        self, gaps: set[str], at: int, error: type[BaseException]
    ) -> None:
        before = self.process.on
        with self.failing(at, error):
            self.process.revert(tuple(gaps))
        self.process.revert(tuple(gaps))
        assert self.process.on == (before - gaps if gaps else set())
        self.faulty = set()
        self.reached()

    @precondition(lambda self: self.calm)
    @rule(
        gap=st.sampled_from(GAPS), at=st.integers(1, 90), error=st.sampled_from(ERRORS)
    )
    def a_block_with_a_failure(
        self, gap: str, at: int, error: type[BaseException]
    ) -> None:
        before = self.process.on
        with self.failing(at, error):
            self.process.switch_off((gap,))()
        # A block around this one may have the gap off as well.
        assert self.process.on in (before, before - {gap} if self.blocks else before)
        self.settled()

    @precondition(lambda self: self.calm)
    @rule(
        module=st.sampled_from(["a", "b", "user"]),
        at=st.integers(1, 60),
        error=st.sampled_from([InjectedError, MemoryError]),
    )
    def import_with_a_failure(
        self, module: str, at: int, error: type[Exception]
    ) -> None:
        with self.failing(at, error):
            self.import_(module)
        self.settled()

    @precondition(lambda self: self.calm)
    @rule(
        threads=st.lists(
            st.lists(st.sampled_from(sorted(ACTS)), min_size=1, max_size=3),
            min_size=2,
            max_size=3,
        ),
        then=st.sets(st.sampled_from(GAPS)),
    )
    def at_once(self, threads: list[list[str]], then: set[str]) -> None:
        """Several threads, none of which may wait for ever.

        Which one comes last is up to chance, so it is said what to end with.
        """
        faults: list[BaseException] = []

        def work(acts: list[str]) -> None:
            try:
                for act in acts:
                    ACTS[act](self.process)
            except BaseException as error:
                faults.append(error)
                raise

        started = [
            threading.Thread(target=work, args=(a,), daemon=True) for a in threads
        ]
        for one in started:
            one.start()
        for one in started:
            one.join(LONG)
        if any(one.is_alive() for one in started):
            faulthandler.dump_traceback(all_threads=True)
            raise AssertionError("a deadlock")
        assert faults == []
        self.apply(only=then, disable=set())

    @rule(gaps=st.sets(st.sampled_from(GAPS), max_size=2))
    def revert(self, gaps: set[str]) -> None:
        before = self.process.on
        self.process.revert(tuple(gaps))
        assert self.process.on == (before - gaps if gaps else set())
        self.faulty = set()
        self.reached()

    @rule(gap=st.sampled_from(GAPS))
    def enter_disabled(self, gap: str) -> None:
        before, planned = self.process.on, self.process._plan is not None
        self.blocks.append((self.process.switch_off((gap,)), planned))
        assert self.process.on == before - {gap}
        if planned:
            self.faulty = set()
            self.reached()

    @precondition(lambda self: self.blocks)
    @rule()
    def leave_disabled(self) -> None:
        leave, planned = self.blocks.pop()
        leave()
        if planned:
            self.faulty = set()
            self.reached()

    # Modules

    def fresh(self, module: str, *, reloaded: bool = False) -> None:
        """The module was run (again): its slots hold what its code says."""
        for slot in [s for s in self.stacks if s.partition(":")[0] == module]:
            if reloaded:
                self.stacks[slot].forget()
            else:
                self.replaced.append(self.stacks[slot])
            self.stacks[slot] = Stack(LAYERS[slot])
        if module != "a":
            self.source[module] = self.stacks["a:f"]
        if module == "b":
            self.in_step = True

    def out_of_sight(self, module: str, *, reloaded: bool) -> None:
        """What no loaded module leads to any more keeps what it took by name."""
        old = self.modules[module]
        classes = [v for v in vars(old).values() if isinstance(v, type)]
        for owner in classes if reloaded else [vars(old), *classes]:
            if module != "a":
                self.recorder.found.pop(id(owner), None)

    def executed(self, module: str) -> None:
        """It was run, and the engine told of it if it waits for it."""
        watched = {"a": set(GAPS), "b": {"three"}, "user": set()}
        if watched[module] & self.process.on:
            self.reached(reaching=False)

    def no_foreign(self, *slots: str) -> bool:
        return not any(self.stacks[slot].foreign for slot in slots)

    def may_import(self, module: str) -> bool:
        # Who imports a foreign patch by name keeps it; that is not ours to mend.
        taken = {"a": (), "b": ("a:f",), "user": ("a:f", "a:C.m", "a:C.s")}
        return self.no_foreign(*taken[module]) and not any(
            self.stacks[slot].lost for slot in taken[module]
        )

    def name_of(self, module: str) -> str:
        return self.user if module == "user" else f"{self.world.up}.{module}"

    @rule(module=st.sampled_from(["a", "b", "user"]))
    def import_(self, module: str) -> None:
        if module in self.modules or not self.may_import(module):
            return
        for name in dict.fromkeys(["a", module]):
            if name not in self.modules:
                self.modules[name] = importlib.import_module(self.name_of(name))
                self.fresh(name)
                self.executed(name)

    @rule(module=st.sampled_from(["a", "b", "user"]))
    def reload(self, module: str) -> None:
        if module in self.modules and self.may_import(module):
            for slot in [s for s in FOREIGN_SLOTS if self.stacks[s].foreign]:
                # A class that a foreign patch never leaves: nobody can find it.
                if slot.startswith(f"{module}:"):
                    self.recorder.found.pop(id(self.owner_of(slot)[0]), None)
            self.out_of_sight(module, reloaded=True)
            importlib.reload(self.modules[module])
            self.fresh(module, reloaded=True)
            self.executed(module)

    @rule(module=st.sampled_from(["a", "b", "user"]))
    def import_anew(self, module: str) -> None:
        if module in self.modules and self.may_import(module):
            slots = [s for s in FOREIGN_SLOTS if s.partition(":")[0] == module]
            if not self.no_foreign(*slots):
                return
            self.out_of_sight(module, reloaded=False)
            name = self.name_of(module)
            del sys.modules[name]
            self.modules[module] = importlib.import_module(name)
            self.fresh(module)
            self.executed(module)

    # Others

    def owner_of(self, slot: str) -> tuple[Any, str]:
        module, _, qualname = slot.partition(":")
        *path, name = qualname.split(".")
        owner: Any = self.modules[module]
        for part in path:
            owner = getattr(owner, part)
        return owner, name

    @rule(
        slot=st.sampled_from(FOREIGN_SLOTS),
        kind=st.sampled_from(["plain", "wraps", "wrapt", "mock", "monkeypatch"]),
    )
    def foreign(self, slot: str, kind: str) -> None:
        stack = self.stacks[slot]
        if slot.partition(":")[0] not in self.modules or len(stack.foreign) > 2:
            return
        if stack.lost:
            return
        if slot == "b:h":
            self.in_step = False
        owner, name = self.owner_of(slot)
        if kind == "mock":
            # One of its own: two places that hold one object are one thing to us.
            seven = make_seven()
            new = staticmethod(seven) if slot == "a:C.s" else seven
            patcher = unittest.mock.patch.object(owner, name, new)
            patcher.start()
            stack.push(Foreign(lambda _: -7, patcher.stop))
            return
        raw = vars(owner)[name]
        inner = raw.__func__ if isinstance(raw, staticmethod) else raw
        wrapper = WRAPPERS[kind](inner)
        new = staticmethod(wrapper) if inner is not raw else wrapper
        if kind == "monkeypatch":
            context = pytest.MonkeyPatch()
            context.setattr(owner, name, new)
            stack.push(Foreign(lambda x: -x, context.undo))
            return
        setattr(owner, name, new)
        stack.push(Foreign(lambda x: -x, lambda: setattr(owner, name, raw)))

    @rule(slot=st.sampled_from(FOREIGN_SLOTS))
    def foreign_leaves(self, slot: str) -> None:
        if self.stacks[slot].foreign:
            self.stacks[slot].pop(own=slot != "b:h")

    @rule()
    def keep_a_reference(self) -> None:
        """Somebody takes the function as it is and holds on to it."""
        stack = self.stacks["a:f"]
        clean = not (stack.foreign or stack.lost)
        if "a" in self.modules and stack.segments[0] and clean:
            self.kept.append((self.modules["a"].f, stack))

    # What must hold

    @invariant()
    def counted(self) -> None:
        Machine.steps += hasattr(self, "modules")

    @invariant()
    def calls_give_what_the_model_says(self) -> None:
        if not hasattr(self, "modules") or "a" not in self.modules:
            return
        a = self.modules["a"]
        value = {slot: stack.value(1) for slot, stack in self.stacks.items()}
        value["a:C.n"] = self.stacks["a:C.n"].value(value["a:Base.n"])
        got = {
            "a:f": a.f(),
            "a:g": a.g(),
            "a:C.m": a.C().m(),
            "a:C.s": a.C.s(),
            "a:Base.n": a.Base().n(),
            "a:C.n": a.C().n(),
        }
        assert got["a:C.s"] == a.C().s()
        assert got == {slot: value[slot] for slot in got}
        f = self.stacks["a:f"]
        if f.foreign or f.lost:
            return
        for module, names in (("b", ("f",)), ("user", ("f", "Kept.kept"))):
            if module in self.modules:
                expected = self.source[module].value(1)
                for name in names:
                    found = functools.reduce(
                        getattr, name.split("."), self.modules[module]
                    )
                    assert found() == expected, (module, name)
        if "b" in self.modules and self.in_step:
            base = self.source["b"].value(1)
            assert self.modules["b"].h() == self.stacks["b:h"].value(base)
        for kept, source in self.kept:
            assert kept() == source.value(1)

    @invariant()
    def status_says_what_the_model_says(self) -> None:
        if not hasattr(self, "process"):
            return
        report = self.process.status()
        for gap in GAPS:
            state = report.state(gap)
            if gap not in self.process.on:
                known = self.process._plan is not None
                assert state in (
                    {State.OFF, State.REVERTED} if known else {State.PENDING}
                )
                continue
            if gap in self.faulty:
                assert state is State.FAILED
                continue
            slots = [str(patch.target) for patch in PATCHES[gap]]
            if any(self.stacks[slot].lost for slot in slots):
                continue
            patches = {self.patch_state(gap, slot) for slot in slots}
            expected = State.BURIED if State.BURIED in patches else State.PARTIAL
            assert state is (patches.pop() if len(patches) == 1 else expected), gap

    def patch_state(self, gap: str, slot: str) -> State:
        if slot.partition(":")[0] not in self.modules:
            return State.PENDING
        on_top = gap in self.stacks[slot].segments[-1]
        return State.APPLIED if on_top else State.BURIED

    def teardown(self) -> None:
        if not hasattr(self, "process"):
            return
        try:
            self.end()
        finally:
            self.process.revert(())
            mine = (self.world.up, self.world.package, self.world.prefix)
            for name in [n for n in sys.modules if n.startswith(mine)]:
                del sys.modules[name]
            self.context.undo()
            shutil.rmtree(self.root)

    def end(self) -> None:
        """Everything is taken back and everybody leaves, in either order."""
        if len(self.replaced) % 2:
            self.process.revert(())
        for stack in self.stacks.values():
            while stack.foreign:
                stack.pop(own=False)
        for leave, _ in reversed(self.blocks):
            leave()
        self.process.revert(())
        left = [d for one in self.recorder.found.values() for d in one.differences()]
        assert not left, left
        assert sys.meta_path == self.meta_path
        assert dict(os.environ) == self.environ
        assert self.process._engine.rebound == []
        for kept, _ in self.kept:
            assert kept() == 1


def make_seven() -> Callable[..., int]:
    return lambda *_: -7


def plain(inner: Any) -> Any:
    def foreign(*args: Any) -> Any:
        return -inner(*args)

    return foreign


def wraps(inner: Any) -> Any:
    return functools.wraps(inner)(plain(inner))


def wrapped(inner: Any) -> Any:
    return wrapt.FunctionWrapper(inner, lambda w, _, args, kw: -w(*args, **kw))


WRAPPERS = {
    "plain": plain,
    "wraps": wraps,
    "wrapt": wrapped,
    "monkeypatch": wraps,
}


def test_anything_in_any_order() -> None:
    Machine.steps = 0
    for _ in range(5):
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=500 if SOAK else 40,
                stateful_step_count=50,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        if Machine.steps >= LEAST:
            break
    print(f"{Machine.steps} steps")
    assert Machine.steps >= LEAST
