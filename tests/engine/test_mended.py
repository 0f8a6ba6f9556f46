"""What an error or an interruption in the middle leaves, one way of each kind.

`test_every_step.py` goes through every step; this is what can be asked at any time.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ascend_shims.engine import engine as engines
from ascend_shims.engine.slot import Slot
from ascend_shims.engine.table import RestoreError, Table
from ascend_shims.states import State

from .world import P, World

UP = """
    def f(x): return x
    def g(x): return x
    def h(x): return x
"""
INTERRUPTED = "interrupted (KeyboardInterrupt)"


@pytest.fixture
def interrupted_write(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has Ctrl-C come at a write of a slot: the first, the second…"""
    write = Slot.write

    def at(number: int) -> None:
        left = [number]

        def writing(slot: Slot, value: Any) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
            write(slot, value)

        monkeypatch.setattr(Slot, "write", writing)

    return at


@pytest.mark.parametrize("at", [1, 2, 3])
def test_all_gaps_are_applied_together_or_none_is(
    world: World, interrupted_write: Callable[[int], None], at: int
) -> None:
    world.upstream(UP, b="").gap("one", P("a:f"), P("a:g"))
    world.gap("two", P("a:h"), P("a:f", "plus_one")).gap("off", P("a:g", "plus_one"))
    world.gap("waits", P("b:later"))
    a = world.import_()
    stock = a.f, a.g, a.h
    world.current = plan = world.plan(disable=frozenset({"off"}))
    interrupted_write(at)
    with pytest.raises(KeyboardInterrupt):
        world.engine.reach(plan)
    for gap in ("one", "two"):
        assert world.state(gap) is State.FAILED
        assert world.reason(gap) == INTERRUPTED
    assert world.state("waits") is State.PENDING
    assert world.state("off") is State.OFF
    assert (a.f, a.g, a.h) == stock
    world.apply(off=["off"])
    assert (a.f(1), a.g(1), a.h(1)) == (11, 10, 10)


def test_a_slot_of_several_gaps_is_written_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.upstream(UP).gap("one", P("a:f"), P("a:g")).gap("two", P("a:f", "plus_one"))
    a = world.import_()
    written = []
    write = Slot.write

    def writing(slot: Slot, value: Any) -> None:
        written.append(slot.name)
        write(slot, value)

    monkeypatch.setattr(Slot, "write", writing)
    world.apply()
    assert written == ["f", "g"]
    assert (a.f(1), a.g(1)) == (11, 10)


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_where_one_cannot_be_applied_each_is_as_a_whole_or_not_at_all(
    world: World, interrupted_write: Callable[[int], None], at: int
) -> None:
    world.upstream(UP, b="").gap("one", P("a:f"), P("a:g"))
    world.gap("two", P("a:h"), P("a:f", "plus_one")).gap("off", P("a:g", "plus_one"))
    world.gap("waits", P("b:later"))
    code = "def takes_nothing(call, /): return call(1)"
    world.gap("broken", P("a:h", "takes_nothing"), code=code)
    a = world.import_()
    stock = a.f, a.g, a.h
    world.current = plan = world.plan(disable=frozenset({"off"}))
    interrupted_write(at)
    with pytest.raises(KeyboardInterrupt):
        world.engine.reach(plan)
    one, two = world.state("one"), world.state("two")
    assert one is (State.APPLIED if at > 2 else State.FAILED)
    assert two is State.FAILED
    assert world.reason("two") == INTERRUPTED
    assert world.state("waits") is State.PENDING
    assert world.state("off") is State.OFF
    assert (a.f(1), a.g(1), a.h(1)) == ((10, 10, 1) if at > 2 else (1, 1, 1))
    assert world.state("broken") is State.FAILED
    world.revert()
    assert (a.f, a.g, a.h) == stock
    world.apply(off=["off"])
    assert (a.f(1), a.g(1), a.h(1)) == (11, 10, 10)
    assert world.state("broken") is State.BROKEN_CONTRACT


def test_what_was_to_leave_has_left_though_the_change_was_interrupted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.upstream(UP).gap("one", P("a:f")).gap("two", P("a:g"))
    a = world.import_()
    world.apply(only=["one"])
    raised = []
    remove = Table.remove

    def removing(table: Table, gap: str) -> None:
        if not raised:
            raised.append(gap)
            raise KeyboardInterrupt
        remove(table, gap)

    monkeypatch.setattr(Table, "remove", removing)
    world.current = world.plan(only=frozenset({"two"}))
    with pytest.raises(KeyboardInterrupt):
        world.engine.reach(world.current)
    assert raised == ["one"]
    assert (a.f(1), a.g(1)) == (1, 1)
    assert world.states() == {"one": State.OFF, "two": State.FAILED}
    assert world.reason("two") == INTERRUPTED


def test_a_plan_that_could_not_be_taken_up_is_taken_up_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.upstream(UP).gap("one", P("a:f")).gap("two", P("a:g"))
    a = world.import_()
    world.apply(only=["one"])
    take_up, raised = engines.Engine._take_up, []

    def taking(engine: engines.Engine, plan: Any) -> None:
        if not raised:
            raised.append(plan)
            raise KeyboardInterrupt
        take_up(engine, plan)

    monkeypatch.setattr(engines.Engine, "_take_up", taking)
    world.current = world.plan(only=frozenset({"two"}))
    with pytest.raises(KeyboardInterrupt):
        world.engine.reach(world.current)
    assert world.states() == {"one": State.OFF, "two": State.FAILED}
    assert (a.f(1), a.g(1)) == (1, 1)


def test_a_gap_of_which_nothing_can_be_told_is_not_in_force(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.upstream(UP).gap("one", P("a:f"))
    a = world.import_()
    world.apply()
    told: list[int] = []
    choose = engines.choose

    def choosing(patch: Any, executed: Any) -> Any:
        told.append(1)
        if len(told) <= 2:
            raise KeyboardInterrupt if len(told) == 1 else ValueError("unknowable")
        return choose(patch, executed)

    monkeypatch.setattr(engines, "choose", choosing)
    with pytest.raises(KeyboardInterrupt):
        world.engine.reach(world.current)  # type: ignore[arg-type]
    assert (world.state(), world.reason()) == (State.FAILED, INTERRUPTED)
    assert a.f(1) == 1


def test_by_contract_what_is_not_there_is_not_torn(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release that tells nothing: of two candidates that may be missing one is."""
    world.version = "dev"
    world.upstream(UP)
    fields = {"versions": {"UP": ">=0.28"}}
    world.gap("one", P("a:f", **fields), P("a:gone", **fields))
    a = world.import_()
    world.apply()
    assert (world.state(), a.f(1)) == (State.APPLIED, 10)
    monkeypatch.setattr(Table, "queue_all", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.engine.reach(world.current)  # type: ignore[arg-type]
    monkeypatch.undo()
    assert (world.state(), a.f(1)) == (State.APPLIED, 10)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def failing_lay(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Errors that are raised, one each, when a module has been executed."""
    errors: list[BaseException] = []
    lay = engines.Engine._lay

    def laying(engine: engines.Engine, plan: Any, executed: frozenset[str]) -> None:
        if executed and errors:
            raise errors.pop()
        lay(engine, plan, executed)

    monkeypatch.setattr(engines.Engine, "_lay", laying)
    return errors


def test_an_error_in_the_hook_is_told_and_the_import_goes_on(
    world: World,
    failing_lay: list[BaseException],
    caplog: pytest.LogCaptureFixture,
) -> None:
    world.upstream(UP, b="def f(x): return x\n")
    world.gap("one", P("a:f")).gap("two", P("b:f"))
    a = world.import_()
    world.apply()
    failing_lay.append(ValueError("no luck"))
    with caplog.at_level(logging.ERROR, "ascend_shims"):
        b = world.import_("b")
    assert [one.getMessage() for one in caplog.records] == [
        f"could not patch {world.up}.b after its import"
    ]
    assert world.states() == {"one": State.APPLIED, "two": State.FAILED}
    assert world.reason("two") == "ValueError: no luck"
    assert (a.f(1), b.f(1)) == (10, 1)


def test_an_interruption_in_the_hook_fails_the_import_and_the_gap_goes_on_waiting(
    world: World, failing_lay: list[BaseException]
) -> None:
    world.upstream(UP, b="def f(x): return x\n")
    world.gap("one", P("a:f")).gap("two", P("b:f"))
    a = world.import_()
    world.apply()
    failing_lay.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        world.import_("b")
    assert f"{world.up}.b" not in sys.modules
    assert world.states() == {"one": State.APPLIED, "two": State.PENDING}
    assert world.import_("b").f(1) == 10
    assert world.state("two") is State.APPLIED
    assert a.f(1) == 10


def test_an_interruption_at_a_reload_leaves_the_gap_lost(
    world: World, failing_lay: list[BaseException]
) -> None:
    world.upstream(UP).gap("one", P("a:f"))
    a = world.import_()
    world.apply()
    failing_lay.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        importlib.reload(a)
    assert world.state() is State.LOST
    assert world.reason() == f"{world.up}.a was reloaded; call apply() again"
    assert a.f(1) == 1
    world.apply()
    assert a.f(1) == 10


def test_a_gap_that_is_given_up_leaves_though_it_was_interrupted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.upstream(UP).gap("one", P("a:f")).gap("two", P("a:g"))
    a = world.import_()
    world.apply()
    monkeypatch.setattr(Table, "tidy", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.engine.give_up("one")
    monkeypatch.undo()
    world.engine.reach(world.plan(only=frozenset({"two"})))
    assert (a.f(1), a.g(1)) == (1, 10)


def test_what_could_not_be_given_up_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.upstream(UP).gap("one", P("a:f"), P("a:g"))
    world.import_()
    world.apply()

    def refuse(slot: Slot, value: Any) -> None:
        raise TypeError("frozen")

    monkeypatch.setattr(Slot, "write", refuse)
    with pytest.raises(RestoreError) as caught:
        world.engine.give_up("one")
    monkeypatch.undo()
    assert world.unspelled(str(caught.value)).split("; ")[:2] == [
        "UP.a:f could not be put back (frozen)",
        "UP.a:g could not be put back (frozen)",
    ]
