"""A second copy of the toolkit in the process: under another name, or imported anew."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ascend_shims
from ascend_shims.engine.table import RestoreError
from ascend_shims.states import State

from .world import P, World


class Copy:
    """Another copy's engine, driven like the world's own."""

    def __init__(self, world: World, engine: Any, plan: Any) -> None:
        self.world = world
        self.engine = engine
        self.make_plan = plan

    def apply(self, *only: str) -> None:
        self.current = (
            self.make_plan(only=frozenset(only)) if only else self.make_plan()
        )
        self.engine.reach(self.current)

    def revert(self) -> None:
        self.current = self.make_plan(only=frozenset())
        self.engine.reach(self.current)

    def state(self, gap: str = "one") -> str:
        return str(self.engine.standing(self.current[gap]).state)

    def reason(self, gap: str = "one") -> str:
        return str(self.engine.standing(self.current[gap]).reason)


def renamed(tmp_path: Path, name: str) -> None:
    """The package as files under another name."""
    source = Path(ascend_shims.__file__).parent
    target = tmp_path / name
    keep = ("engine", "environment", "registry", "words")
    target.mkdir()
    for file in source.glob("*.py"):
        shutil.copy(file, target / file.name)
    for folder in keep:
        shutil.copytree(
            source / folder,
            target / folder,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for file in target.rglob("*.py"):
        text = file.read_text()
        file.write_text(re.sub(r"^(from|import) ascend_shims\b", rf"\1 {name}", text))


@pytest.fixture(params=["renamed", "imported anew"])
def copy(request: pytest.FixtureRequest, world: World) -> Iterator[Copy]:
    """A copy that shares nothing with this one but the interpreter."""
    kept = {
        n: m for n, m in sys.modules.items() if n.partition(".")[0] == "ascend_shims"
    }
    name = "ascend_shims"
    if request.param == "renamed":
        name = f"{world.prefix}_toolkit"
        renamed(world.root, name)
    else:
        for module in kept:
            del sys.modules[module]
    try:
        engine = importlib.import_module(f"{name}.engine.engine")
        plan = importlib.import_module(f"{name}.plan")
        switches = importlib.import_module(f"{name}.switches")
        environment = importlib.import_module(f"{name}.environment")
    finally:
        for module in [n for n in sys.modules if n.partition(".")[0] == "ascend_shims"]:
            del sys.modules[module]
        sys.modules.update(kept)
    assert engine.Engine is not type(world.engine)

    def make_plan(**fields: Any) -> Any:
        here = environment.Environment(
            sys.executable,
            {
                world.up: environment.Distribution(
                    world.up, world.version, origin="assumed"
                )
            },
            environment.Device("sim", "a test"),
        )
        said = {"only": "a test", "mode": "a test"}
        chosen = switches.Switches(said_by=said, **fields)
        return plan.make_plan(world.registry, here, chosen)

    made = Copy(world, engine.Engine("another copy"), make_plan)
    yield made
    made.revert()


UP = """
    def f(x): return x
    class Base:
        def m(self, x): return x
    class C(Base):
        @staticmethod
        def s(x): return x
"""


@pytest.fixture
def shared(world: World) -> World:
    world.upstream(UP)
    return world.gap("one", P("a:f"), P("a:C.m"), P("a:C.s")).gap(
        "two", P("a:f", "plus_one")
    )


def values(world: World) -> tuple[int, ...]:
    a = world.import_()
    return a.f(1), a.C().m(1), a.C().s(1)


def test_two_copies_do_not_patch_twice(shared: World, copy: Copy) -> None:
    values(shared)
    before = shared.snapshot()
    shared.apply()
    copy.apply()
    assert values(shared) == (11, 10, 10)
    assert copy.state("one") == "applied"
    assert copy.reason("one") == (
        "applied by another copy of the toolkit, the toolkit of a test"
    )
    assert shared.state("one") is State.APPLIED
    shared.revert()
    assert values(shared) == (1, 1, 1)
    assert before.held == shared.snapshot().held


def test_two_copies_on_an_import_do_not_patch_twice(shared: World, copy: Copy) -> None:
    """Both wait for the module, and both are told of it."""
    shared.apply()
    copy.apply()
    assert values(shared) == (11, 10, 10)
    assert shared.state() is State.APPLIED
    assert copy.state() == "applied"


def test_either_copy_can_take_back_what_the_other_applied(
    shared: World, copy: Copy
) -> None:
    values(shared)
    before = shared.snapshot()
    shared.apply()
    copy.apply()
    copy.revert()
    assert values(shared) == (1, 1, 1)
    assert before.held == shared.snapshot().held
    assert shared.state() is State.REVERTED
    assert "given up to another copy" in shared.reason()
    shared.apply()
    assert values(shared) == (11, 10, 10)


def test_a_copy_that_comes_second_takes_over_when_the_first_leaves(
    shared: World, copy: Copy
) -> None:
    values(shared)
    shared.apply()
    copy.apply()
    shared.revert()
    assert copy.state() == "lost"
    assert copy.reason() == "the toolkit of a test had applied it and does no longer"
    copy.apply()
    assert values(shared) == (11, 10, 10)
    copy.revert()
    assert values(shared) == (1, 1, 1)


def test_copies_with_different_gaps_lie_on_each_other(
    shared: World, copy: Copy
) -> None:
    """They cannot fold together; each layer is there once, and each can leave."""
    values(shared)
    before = shared.snapshot()
    shared.apply(only=["one"])
    copy.apply("two")
    assert values(shared) == (11, 10, 10)
    assert copy.state("two") == "applied"
    copy.revert()
    assert values(shared) == (10, 10, 10)
    shared.revert()
    assert before.held == shared.snapshot().held


def test_copies_that_leave_in_the_wrong_order_are_like_foreign_patches(
    shared: World, copy: Copy
) -> None:
    values(shared)
    before = shared.snapshot()
    shared.apply(only=["one"])
    copy.apply("two")
    shared.revert()
    assert values(shared) == (2, 1, 1)
    copy.revert()
    assert values(shared) == (1, 1, 1)
    shared.revert()
    assert before.held == shared.snapshot().held


def test_what_the_other_copy_cannot_take_back_is_told(
    shared: World, copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    values(shared)
    shared.apply()
    copy.apply()
    write = type(shared.engine)._settle

    def fail(engine: Any) -> list[str]:
        write(engine)
        return ["it is stuck"]

    with monkeypatch.context() as context:
        context.setattr(type(shared.engine), "_settle", fail)
        with pytest.raises(Exception, match="the toolkit of a test: it is stuck"):
            copy.revert()
    assert RestoreError.__name__ == "RestoreError"


def test_a_copy_left_over_from_before_a_fork_or_reload_is_asked(
    shared: World, copy: Copy
) -> None:
    """Its module is gone from `sys.modules`; the mark still leads to it."""
    values(shared)
    copy.apply()
    shared.apply()
    assert values(shared) == (11, 10, 10)
    assert "another copy" in shared.reason()
    shared.revert()
    assert values(shared) == (1, 1, 1)


def test_what_another_copy_applied_is_seen_before_anything_is_asked_of_this_one(
    shared: World, copy: Copy
) -> None:
    values(shared)
    copy.apply("one")
    assert shared.current is None
    assert shared.states() == {"one": State.APPLIED, "two": State.PENDING}
    said = "applied by another copy of the toolkit, "
    assert shared.reason("one").startswith(said)
    assert len(shared.reason("one")) > len(said)
    assert shared.reason("two") == "applies when upstream is imported"
    targets = [one.target for one in shared.standing("one").patches]
    assert targets == [p.target for p in shared.registry["one"].patches]
    copy.revert()
    assert shared.states() == {"one": State.PENDING, "two": State.PENDING}
