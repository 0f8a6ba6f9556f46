"""A failure at each step of ours leaves every gap either fully applied or not at all.

Each scenario is run again and again: the failure comes at its first step, at its
second, and so on until none is left, as an error, as Ctrl-C, as `MemoryError` and as
an exit (the last two kinds, and a `revert()` that follows at once, only with
`ASCEND_SHIMS_SOAK=1`). Afterwards every namespace is what the gaps that are said to be
applied make of it, in the order of its names; and the next `apply()` or `revert()`
works.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from ascend_shims.engine.table import RestoreError
from ascend_shims.engine.wrappers import mark_of, peel
from ascend_shims.processes.address import listening
from ascend_shims.states import State

from .quick import QuickProcess, narrow
from .steps import KINDS, Steps
from .world import P, World

SOAK = os.environ.get("ASCEND_SHIMS_SOAK") == "1"

UPSTREAM = {
    "a": """
        def f(x=1): return x
        def g(x=1): return x
        def k(x=1): return x
        class Base:
            def n(self, x=1): return x
        class C(Base):
            def m(self, x=1): return x
            @staticmethod
            def s(x=1): return x
            def last(self, x=1): return x
        end = 1
    """,
    "b": """
        from UP.a import f
        h = f
        end = 1
    """,
    "late": """
        from UP.a import f, k
        def l(x=1): return x
        end = 1
    """,
}
USER = """
    from UP.a import f, C
    bound = C().m
    taken = C.s
    class Kept:
        kept = f
    end = 1
"""

GAPS = {
    "one": (P("a:f"), P("a:C.m")),
    "two": (P("a:f", "plus_one"), P("a:Base.n", "plus_one"), P("late:l")),
    "three": (P("b:h", "plus_one", scope="binding"), P("a:g")),
    "four": (P("a:C.n"), P("a:C.s"), P("late:f", "plus_one", scope="binding")),
    "five": (P("a:added", "new", kind="add"), P("a:C.last", "through", kind="wrap")),
    "broken": (P("a:k"), P("a:gone")),
}
CODE = {"five": "def new(x=1): return x + 5\n"}
LOADED = ("one", "two", "three", "four", "five")
EFFECTS: dict[str, Callable[[int], int]] = {
    "times_ten": lambda x: 10 * x,
    "plus_one": lambda x: 1 + x,
    "through": lambda x: x,
}


class Scene:
    """One process, its upstream, and what can be seen of both."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        world.upstream(**UPSTREAM)
        world.write(f"{world.prefix}_user.py", USER)
        for gap, patches in GAPS.items():
            world.gap(gap, *patches, code=CODE.get(gap, ""))
        mine = [world.up, *(f"{world.up}.{name}" for name in UPSTREAM)]
        mine.append(f"{world.prefix}_user")

        def modules() -> list[ModuleType]:
            return [sys.modules[name] for name in mine if name in sys.modules]

        narrow(monkeypatch, modules)
        self.steps = Steps(monkeypatch)
        self.process = QuickProcess(world)
        self.process._follows_forks = True
        self.steps.lock(self.process)
        for name in ("a", "b"):
            world.import_(name)
        self.user = importlib.import_module(f"{world.prefix}_user")
        self.meta_path = sys.meta_path
        # The name of the phase that a test is in is among what pytest sets.
        monkeypatch.delenv("PYTEST_CURRENT_TEST")
        self.before = world.snapshot()
        self.names = {owner: [n for n, _ in v] for owner, v in self.before.held.items()}

    # What is done

    def apply(self, **options: Any) -> None:
        call: dict[str, Any] = {
            "only": None,
            "disable": (),
            "strict": None,
            "registry": None,
        }
        self.process.apply(**{**call, **options})

    def revert(self, *gaps: str) -> None:
        self.process.revert(gaps)

    def import_late(self) -> None:
        self.world.import_("late")

    def disabled(self) -> None:
        back = self.process.switch_off(("one", "three"))
        back()

    def without_late(self) -> None:
        """As it was when nothing was imported late."""
        sys.modules.pop(f"{self.world.up}.late", None)
        vars(sys.modules[self.world.up]).pop("late", None)

    # What is seen

    @property
    def late(self) -> Any:
        return sys.modules.get(f"{self.world.up}.late")

    def laid(self, raw: Any, stock: Any) -> tuple[str, ...]:
        """The gaps whose wrappers are in a raw value, from the bottom up."""
        found: list[str] = []
        value = peel(raw)
        while (mark := mark_of(value)) is not None:
            found.insert(0, mark.gap)
            value = value.__wrapped__
        assert stock is None or value is stock, f"{value} and not {stock}"
        return tuple(found)

    def slots(self) -> dict[str, tuple[Any, str]]:
        """Where layers may lie now, by the registry's spelling."""
        a, b = self.world.import_("a"), self.world.import_("b")
        found: dict[str, tuple[Any, str]] = {
            "a:f": (a, "f"),
            "a:g": (a, "g"),
            "a:C.m": (a.C, "m"),
            "a:C.n": (a.C, "n"),
            "a:C.s": (a.C, "s"),
            "a:C.last": (a.C, "last"),
            "a:Base.n": (a.Base, "n"),
            "a:added": (a, "added"),
            "b:h": (b, "h"),
        }
        if self.late:
            found["late:l"] = self.late, "l"
            found["late:f"] = self.late, "f"
        return found

    def present(self) -> dict[str, set[bool]]:
        """By gap: whether its layer is there, over all places where it may be."""
        found: dict[str, set[bool]] = {gap: set() for gap in LOADED}
        f = self.world.import_("a").f
        for slot, (owner, name) in self.slots().items():
            raw = vars(owner).get(name)
            here = self.laid(raw, None) if raw is not None else ()
            if slot == "a:added":
                here = ("five",) if raw is not None else ()
            for gap in LOADED:
                if any(str(patch.target) == slot for patch in GAPS[gap]):
                    found[gap].add(gap in here)
                else:
                    # `h` and `late.f` stand over what `a.f` is now.
                    through = slot in ("b:h", "late:f") and gap in self.laid(f, None)
                    assert (gap in here) == through, f"{gap} in {slot}"
        return found

    def check(self) -> dict[str, bool]:
        """Every gap is whole or not there; what is called and seen goes with it."""
        present = self.present()
        assert all(len(seen) == 1 for seen in present.values()), present
        on = {gap: seen.pop() for gap, seen in present.items()}
        self.check_references()
        self.check_values(on)
        self.check_names(on)
        return on

    def check_references(self) -> None:
        a, b, user = self.world.import_("a"), self.world.import_("b"), self.user
        assert b.f is a.f
        assert user.f is a.f
        assert vars(user.Kept)["kept"] is a.f
        assert user.bound.__func__ is vars(a.C)["m"]
        assert user.taken is peel(vars(a.C)["s"])
        assert self.laid(a.k, None) == ()
        if self.late:
            assert self.late.k is a.k

    def check_values(self, on: dict[str, bool]) -> None:
        """What is called is what the layers that are there make of it."""
        a, b, user = self.world.import_("a"), self.world.import_("b"), self.user

        def value(slot: str, base: int = 1) -> int:
            for gap in LOADED:
                for patch in GAPS[gap]:
                    if on[gap] and str(patch.target) == slot:
                        base = EFFECTS[patch.replacement](base)
            return base

        assert a.f() == b.f() == user.f() == user.Kept.kept() == value("a:f")
        assert a.g() == value("a:g")
        assert a.C().m() == user.bound() == value("a:C.m")
        assert a.Base().n() == value("a:Base.n")
        assert a.C().n() == value("a:C.n", value("a:Base.n"))
        assert a.C.s() == a.C().s() == user.taken() == value("a:C.s")
        assert b.h() == value("b:h", value("a:f"))
        assert not on["five"] or a.added() == 6
        if self.late:
            assert self.late.l() == value("late:l")
            assert self.late.f() == value("late:f", value("a:f"))

    def check_names(self, on: dict[str, bool]) -> None:
        expected = {owner: list(names) for owner, names in self.names.items()}
        up = self.world.up
        if on["four"]:
            expected[f"{up}.a:C"].append("n")
        if on["five"]:
            expected[f"{up}.a"].append("added")
        for owner, values in self.world.snapshot().held.items():
            if owner in expected and owner != up:
                assert [name for name, _ in values] == expected[owner], owner

    def check_states(self, on: dict[str, bool]) -> None:
        report = self.process.status()
        whole = State.APPLIED if self.late else State.PARTIAL
        for gap in LOADED:
            state = report.state(gap)
            applied = whole if gap in ("two", "four") else State.APPLIED
            assert (state is applied) == on[gap], f"{gap} is {state}: {report[gap]}"
        assert report.state("broken") is not State.APPLIED

    def check_applied(self) -> None:
        on = self.check()
        assert set(on.values()) == {True}
        self.check_states(on)
        assert self.process.status().state("broken") is State.MISSING_TARGET
        assert os.getpid() in listening()
        assert "ASCEND_SHIMS" in os.environ["VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY"]

    def check_pristine(self) -> None:
        self.without_late()
        os.environ.pop("PYTEST_CURRENT_TEST", None)
        assert self.before.differences(self.world.snapshot()) == []
        assert sys.meta_path is self.meta_path
        assert self.process._engine.rebound == []
        assert os.getpid() not in listening()


@dataclass(frozen=True)
class Scenario:
    """What is there before, and what is done while something fails."""

    before: Callable[[Scene], None]
    act: Callable[[Scene], None]


def nothing(_: Scene) -> None:
    pass


def applied(scene: Scene) -> None:
    scene.apply()


def applied_late(scene: Scene) -> None:
    scene.apply()
    scene.import_late()


def others(scene: Scene) -> None:
    scene.apply(only=["three", "four"])


SCENARIOS = {
    "apply": Scenario(nothing, lambda s: s.apply()),
    "apply when all is loaded": Scenario(Scene.import_late, lambda s: s.apply()),
    "apply again": Scenario(applied, lambda s: s.apply()),
    "import": Scenario(applied, Scene.import_late),
    "revert": Scenario(applied_late, lambda s: s.revert()),
    "revert one": Scenario(applied_late, lambda s: s.revert("one", "four")),
    "apply others": Scenario(others, lambda s: s.apply(disable=["three"])),
    "a block without": Scenario(applied_late, Scene.disabled),
}


@pytest.fixture
def scene(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[Scene]:
    for name in [n for n in os.environ if n.startswith(("ASCEND_SHIMS", "VLLM_"))]:
        monkeypatch.delenv(name)
    caplog.set_level(logging.CRITICAL)
    made = Scene(world, monkeypatch)
    yield made
    made.steps.disarm()
    made.revert()


@pytest.mark.parametrize("then", ["apply", "revert"] if SOAK else ["apply"])
@pytest.mark.parametrize(
    "error", KINDS if SOAK else KINDS[:2], ids=lambda kind: kind.__name__
)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_failure_at_each_step(
    name: str, error: type[BaseException], then: str, scene: Scene
) -> None:
    scenario = SCENARIOS[name]
    at = 0
    while True:
        at += 1
        scenario.before(scene)
        scene.steps.arm(at, error)
        with contextlib.suppress(error, RestoreError, ImportError):
            scenario.act(scene)
        scene.steps.disarm()
        where = f"{name}: {error.__name__} in step {at}, {scene.steps.raised}"
        try:
            scene.check_states(scene.check())
            if then == "apply":
                scene.apply()
                scene.check_applied()
            scene.revert()
            scene.check_pristine()
        except BaseException as problem:
            problem.add_note(where)
            raise
        if scene.steps.raised is None:
            break
    assert at > 25
