"""What is said of a slot by what it holds, case by case."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from ascend_shims.engine.choose import Missing, Waiting
from ascend_shims.engine.faults import Fault, fault_of
from ascend_shims.engine.slot import ABSENT, Slot
from ascend_shims.engine.standing import adopted, at_rest, not_there, who_made
from ascend_shims.engine.wrappers import Mark
from ascend_shims.plan import PlannedGap, PlannedPatch
from ascend_shims.states import State

from .world import P, World


def plain(x: int) -> int:
    return x


class Callable_:
    def __call__(self) -> None: ...


class Bare:
    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        raise AttributeError(name)


@functools.wraps(len)
def wrapped() -> None: ...


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (ABSENT, "somebody who deleted it"),
        (plain, f"plain of {__file__}"),
        (staticmethod(plain), f"plain of {__file__}"),
        # What functools.wraps has copied does not hide the file that the code is in.
        (wrapped, f"len of {__file__}"),
        (len, "len of builtins"),
        (Callable_, f"Callable_ of {__name__}"),
        (Callable_(), f"Callable_ of {__name__}"),
        (Bare(), f"Bare of {__name__}"),
        (5, "int of builtins"),
    ],
    ids=[
        "deleted",
        "function",
        "static",
        "wrapped",
        "builtin",
        "class",
        "object",
        "silent",
        "number",
    ],
)
def test_who_made_a_foreign_value(raw: Any, said: str) -> None:
    assert who_made(raw) == said


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (KeyboardInterrupt(), Fault(State.FAILED, "interrupted (KeyboardInterrupt)")),
        (GeneratorExit("x"), Fault(State.FAILED, "interrupted (GeneratorExit)")),
        (SystemExit(3), Fault(State.FAILED, "SystemExit: 3")),
        (ValueError("no"), Fault(State.FAILED, "ValueError: no")),
    ],
    ids=["Ctrl-C", "the end of a generator", "an exit", "an error"],
)
def test_what_an_error_says_of_a_gap(error: BaseException, fault: Fault) -> None:
    assert fault_of(error) == fault


@pytest.fixture
def planned(world: World) -> PlannedGap:
    world.upstream("def f(x): return x\n").gap("one", P("a:f"))
    return world.plan()["one"]


@pytest.fixture
def patch(planned: PlannedGap) -> PlannedPatch:
    return planned.passing[0]


def test_a_patch_whose_target_is_not_there(patch: PlannedPatch) -> None:
    missing = not_there(patch, Missing("m:f does not exist"))
    assert (missing.patch, missing.state) == (patch, State.MISSING_TARGET)
    assert (missing.reason, missing.target) == ("m:f does not exist", None)
    waiting = not_there(patch, Waiting("m:f", "m is not loaded"))
    assert (waiting.patch, waiting.state) == (patch, State.PENDING)
    assert (waiting.reason, waiting.target) == ("m is not loaded", "m:f")


def test_a_patch_of_another_copy(patch: PlannedPatch) -> None:
    mark = Mark("one", "m:f", "2.0 of /elsewhere", lambda _: None, lambda: None)
    there = adopted(patch, mark, mark)
    assert (there.patch, there.state, there.target) == (patch, State.APPLIED, "m:f")
    assert there.reason == "applied by another copy of the toolkit, 2.0 of /elsewhere"
    gone = adopted(patch, mark, None)
    assert (gone.patch, gone.state, gone.target) == (patch, State.LOST, "m:f")
    assert gone.reason == "2.0 of /elsewhere had applied it and does no longer"


def test_a_gap_that_nobody_has_in_hand(world: World, planned: PlannedGap) -> None:
    given = at_rest(planned, True, None)
    assert (given.planned, given.patches) == (planned, ())
    assert (given.state, given.reason) == (State.REVERTED, "given up to another copy")
    fresh = at_rest(planned, False, None)
    assert (fresh.state, fresh.reason) == (
        State.PENDING,
        "applies when upstream is imported",
    )
    off = world.plan(disable=frozenset({"one"}))["one"]
    module = world.import_()
    beneath = at_rest(off, True, Slot(module, "f", "m:f"))
    assert beneath.state is State.OFF
    assert beneath.reason == (
        f"{off.reason}; m:f keeps its layer, which passes straight through, "
        f"beneath f of {module.__file__}"
    )
