"""From one plan to the next, whatever happens on the way."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import threading
import time
import warnings
from typing import Any

import pytest

from ascend_shims.engine.table import RestoreError
from ascend_shims.states import State

from ..fresh import LONG
from .failing import Failure, InjectedError
from .world import P, Snapshot, World

ONE_F = "def f(x): return x\n"
UP = """
    def f(x): return x
    def g(x): return x
    class Base:
        def m(self, x): return x
        def n(self, x): return x
    class C(Base):
        @staticmethod
        def s(x): return x
"""
ALIASES = """
    from UP.a import f, C
    h = f
    bound = C().m
    taken = C.s
"""


def rich(world: World) -> World:
    """Three gaps over several kinds of slots, two of them on one slot."""
    world.upstream(UP, b=ALIASES)
    world.gap("one", P("a:f"), P("a:C.m"), P("a:C.s"), P("a:Base.n"))
    world.gap("two", P("a:f", "plus_one"), P("a:new", "through", kind="add"))
    return world.gap("three", P("b:h", "plus_one", scope="binding"), P("a:g"))


def values(world: World) -> tuple[int, ...]:
    a, b = world.import_("a"), world.import_("b")
    return (
        a.f(1),
        b.f(1),
        b.h(1),
        b.bound(1),
        b.taken(1),
        a.C().m(1),
        a.C().n(1),
        a.g(1),
    )


ORDERS = list(itertools.permutations(["one", "two", "three"]))
ONE = (10, 10, 10, 1, 10, 10, 10, 1)
ALL = (11, 11, 12, 1, 10, 10, 10, 10)
STOCK = (1,) * 8


def test_everything_there_and_back(world: World) -> None:
    rich(world)
    assert values(world) == STOCK
    before = world.snapshot()
    for _ in range(3):
        world.apply(only=["one"])
        assert values(world) == ONE
        world.apply()
        assert values(world) == ALL
        world.revert()
        assert values(world) == STOCK
        assert before.differences(world.snapshot()) == []


@pytest.mark.parametrize("on", ORDERS)
@pytest.mark.parametrize("off", ORDERS)
def test_gaps_come_and_go_in_any_order(
    world: World, on: tuple[str, ...], off: tuple[str, ...]
) -> None:
    """A binding on an alias, together with patches on the definition."""
    rich(world)
    values(world)
    before = world.snapshot()
    now: set[str] = set()
    for gap in (*on, *off):
        now ^= {gap}
        world.apply(only=now)
        f = (10 if "one" in now else 1) + ("two" in now)
        a, b = world.import_("a"), world.import_("b")
        assert (a.f(1), b.f(1), b.h(1)) == (f, f, f + ("three" in now))
        assert world.stale() == []
    assert before.differences(world.snapshot()) == []


@pytest.mark.parametrize("early", [True, False])
def test_a_patch_on_an_alias_meets_one_on_the_definition(
    world: World, early: bool
) -> None:
    """Both are meant for every reference, so they are two layers of one slot."""
    world.upstream(UP, b=ALIASES)
    world.gap("one", P("b:f", "plus_one")).gap("two", P("a:f"))
    if early:
        world.apply()
    a, b = world.import_("a"), world.import_("b")
    before = None if early else world.snapshot()
    world.apply()
    assert (a.f(1), b.f(1), b.h(1)) == (20, 20, 20)
    world.apply(only=["one"])
    assert (a.f(1), b.f(1), b.h(1)) == (2, 2, 2)
    world.apply(only=["two"])
    assert (a.f(1), b.f(1), b.h(1)) == (10, 10, 10)
    world.revert()
    assert a.f is b.f is b.h
    assert before is None or before.differences(world.snapshot()) == []


def test_both_scopes_on_one_slot_are_a_conflict(world: World) -> None:
    world.upstream(UP)
    world.gap("one", P("a:f")).gap("two", P("a:f", "plus_one", scope="binding"))
    a = world.import_()
    world.apply()
    assert world.states() == {"one": State.APPLIED, "two": State.CONFLICT}
    assert "give them one scope" in world.reason("two")
    assert a.f(1) == 10


def test_a_binding_leaves_every_other_reference_stock(world: World) -> None:
    world.upstream(UP, b=ALIASES).gap("one", P("b:f", scope="binding"))
    a, b = world.import_("a"), world.import_("b")
    world.apply()
    assert (a.f(1), b.f(1), b.h(1)) == (1, 10, 1)
    assert world.stale() == []
    assert world.rebound() == []


def test_a_foreign_patch_on_an_alias_is_told(world: World) -> None:
    """The patch is in force at the definition, and not where it was meant to be."""
    world.upstream(UP, b=ALIASES).gap("one", P("b:f"))
    a, b = world.import_("a"), world.import_("b")
    world.apply()
    assert world.state() is State.APPLIED

    def theirs(_: int) -> int:
        return 7

    ours, b.f = b.f, theirs
    assert world.state() is State.BURIED
    assert "theirs of " in world.reason()
    b.f = ours
    a.f = theirs
    assert world.state() is State.APPLIED
    world.revert()
    assert a.f is theirs
    assert (b.f(1), b.h(1)) == (1, 1)


def test_what_lies_beneath_a_foreign_patch_is_told(world: World) -> None:
    world.upstream(UP).gap("one", P("a:f"))
    a = world.import_()
    world.apply()
    ours = a.f

    def theirs(x: int) -> int:
        return int(ours(x))

    a.f = theirs
    world.revert()
    assert world.state() is State.OFF
    assert f"{world.up}.a:f keeps its layer" in world.reason()
    assert "theirs of " in world.reason()
    a.f = ours
    world.revert()
    assert "keeps its layer" not in world.reason()


def test_layers_over_and_beneath_a_foreign_patch(world: World) -> None:
    """A gap that comes after the foreign patch lies over it, and leaves first."""
    world.upstream(UP)
    world.gap("one", P("a:f")).gap("two", P("a:f", "plus_one"))
    a = world.import_()
    stock = a.f
    world.apply(only=["one"])
    ours = a.f
    theirs = a.f = lambda x: -ours(x)
    world.apply()
    assert a.f(1) == -9
    assert world.states() == {"one": State.BURIED, "two": State.APPLIED}
    world.apply(only=["two"])
    assert a.f(1) == 0
    world.revert()
    assert a.f is theirs
    a.f = ours
    world.revert()
    assert a.f is stock


def test_layers_that_cannot_come_down_yet_leave_like_all_others(
    world: World, failure: Failure
) -> None:
    """A foreign patch has left between two layers, and the slot refuses for now."""
    world.upstream(UP)
    world.gap("one", P("a:f")).gap("two", P("a:f", "plus_one"))
    a = world.import_()
    stock = a.f
    world.apply(only=["two"])
    ours = a.f
    a.f = lambda x: -ours(x)
    world.apply()
    a.f = ours
    failure.names = {"f"}
    with pytest.raises(RestoreError, match="a:f could not be put back"):
        world.apply()
    assert a.f(1) == 2
    with pytest.raises(RestoreError):
        world.revert()
    assert a.f(1) == 1
    failure.names = set()
    world.revert()
    assert a.f is stock


def test_a_foreign_patch_that_leaves_leaves_ours_in_force(world: World) -> None:
    world.upstream(UP)
    world.gap("one", P("a:f")).gap("two", P("a:f", "plus_one"))
    a = world.import_()
    stock = a.f
    world.apply(only=["one"])
    ours = a.f
    a.f = lambda x: -ours(x)
    world.apply()
    a.f = ours
    assert (world.state("one"), a.f(1)) == (State.APPLIED, 10)
    world.apply()
    assert a.f(1) == 11
    assert world.states() == {"one": State.APPLIED, "two": State.APPLIED}
    world.revert()
    assert a.f is stock


@pytest.mark.parametrize("value", ["len", "copy.deepcopy", "THEIRS.patched"])
def test_what_is_not_upstreams_changes_within_upstream_only(
    world: World, value: str
) -> None:
    """A name that upstream merely imported, or that somebody else has replaced."""
    theirs = world.user("def patched(x): return x\ndef again(x): return patched(x)\n")
    value = value.replace("THEIRS", theirs.__name__)
    world.upstream(
        f"import copy, {theirs.__name__}\nf = {value}\n", b="from UP.a import f\n"
    )
    world.gap("one", P("a:f", "noted"))
    a, b = world.import_("a"), world.import_("b")
    stock = a.f
    user = world.user("from UP.a import f\n")
    before = world.snapshot()
    for _ in range(2):
        world.apply()
        assert world.state("one") is State.APPLIED
        assert a.f("") == b.f("") == ("noted", stock(""))
        assert user.f is stock
        assert (len([1]), theirs.again(1)) == (1, 1)
        assert world.stale() == []
        late = world.user("from UP.a import f\n")
        assert late.f("") == ("noted", stock(""))
        world.revert()
        assert late.f is stock
        assert before.differences(world.snapshot()) == [f"{late.__name__}: only in one"]
        del sys.modules[late.__name__]


@pytest.mark.parametrize("how", ["saved", "beneath ours"])
def test_what_somebody_took_away_is_told_and_comes_back_with_apply(
    world: World, how: str
) -> None:
    """Upstream's own function is in the slot again, and nobody asked us."""
    world.upstream(UP, b="def k(): pass\n").gap("one", P("a:f"), P("b:k", "through"))
    a = world.import_()
    stock = a.f
    if how == "saved":
        world.apply()
        a.f = stock
    else:
        a.f = lambda x: -stock(x)
        world.apply()
        assert a.f(1) == -10
        a.f = stock
    assert world.state() is State.LOST
    assert f"somebody put upstream's own {world.up}.a:f back" in world.reason()
    world.import_("b")
    assert a.f is stock, "an import is no reason to do it again"
    world.apply()
    assert (a.f(1), world.state()) == (10, State.APPLIED)
    world.revert()
    assert a.f is stock


def test_a_reference_that_was_covered_follows_with_the_next_apply(
    world: World,
) -> None:
    """A foreign patch lay on it when all others moved."""
    world.upstream(UP, b="from UP.a import f\n").gap("one", P("a:f"))
    b = world.import_("b")
    stock = b.f
    b.f = lambda x: -stock(x)
    world.apply()
    b.f = stock
    assert b.f(1) == 1
    assert world.stale() == ["UP.a:f is held by UP.b:f"]
    world.apply()
    assert b.f(1) == 10
    assert world.stale() == []
    world.revert()
    assert b.f is stock


# Faults


def snapshots(world: World) -> dict[str, Snapshot]:
    """The namespaces as they should be, pristine and with everything applied."""
    pristine = world.snapshot()
    world.apply()
    calls = values(world)
    assert calls == ALL
    world.revert()
    assert pristine.differences(world.snapshot()) == []
    return {"pristine": pristine}


def test_a_failure_at_any_access_leaves_each_gap_whole_or_out(
    world: World, failure: Failure
) -> None:
    """Each read and each write of a slot fails once, while applying and reverting."""
    rich(world)
    values(world)
    before = snapshots(world)["pristine"]
    failure.count()
    world.apply()
    applying = failure.accesses
    failure.count()
    world.revert()
    reverting = failure.accesses
    assert min(applying, reverting) > 20
    applied = {}
    for count in range(4):
        for gaps in itertools.combinations(["one", "two", "three"], count):
            world.apply(only=gaps)
            applied[frozenset(gaps)] = values(world)
            world.revert()
    for at in range(1, applying + 1):
        failure.count()
        failure.at = at
        world.apply()
        failure.at = None
        states = world.states()
        on = {gap for gap, state in states.items() if state is State.APPLIED}
        assert set(states.values()) <= {State.APPLIED, State.FAILED}, (at, states)
        assert values(world) == applied[frozenset(on)], (at, states)
        assert ("new" in vars(world.import_("a"))) == ("two" in on), at
        world.revert()
        assert before.differences(world.snapshot()) == [], at
    for at in range(1, reverting + 1):
        world.apply()
        failure.count()
        failure.at = at
        world.revert()
        failure.at = None
        assert before.differences(world.snapshot()) == [], at


def test_a_write_that_always_fails_while_reverting_hurts_nobody_else(
    world: World, failure: Failure
) -> None:
    rich(world)
    values(world)
    before = world.snapshot()
    for name in ("f", "m", "s", "n", "new", "h", "g", "taken"):
        world.apply()
        failure.names = {name}
        with pytest.raises(RestoreError):
            world.revert()
        assert values(world) == STOCK
        left = before.differences(world.snapshot())
        # What refers to the slot waits for it.
        assert all(f".{name}" in line or "['" in line for line in left), left
        failure.names = set()
        world.revert()
        assert before.differences(world.snapshot()) == []


def test_a_rollback_that_fails_is_told_and_made_good(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second write of a gap fails, and so does undoing the first."""
    world.upstream(UP).gap("one", P("a:f"), P("a:g"))
    a = world.import_()
    before = world.snapshot()
    from ascend_shims.engine.slot import Slot

    write = Slot.write
    count = itertools.count()

    def only_once(slot: Slot, value: Any) -> None:
        if next(count):
            raise InjectedError("not again")
        write(slot, value)

    with monkeypatch.context() as context:
        context.setattr(Slot, "write", only_once)
        world.apply()
    assert world.state() is State.FAILED
    assert "a:f could not be put back" in world.reason()
    assert a.f(1) == 1, "what could not be removed is a pass-through"
    world.revert()
    assert before.differences(world.snapshot()) == []


def test_a_patch_that_fails_when_it_is_laid_anew_stays_as_it_was(world: World) -> None:
    """A decorator that works once only, and another gap on its slot leaves."""
    world.upstream(UP)
    world.gap("one", P("a:f", "plus_one"))
    world.gap(
        "two",
        P("a:f", "once", kind="decorate"),
        code="""
def once(function, _used=[]):
    if _used:
        raise RuntimeError("only once")
    _used.append(1)
    return lambda x: 10 * function(x)
""",
    )
    a = world.import_()
    stock = a.f
    world.apply()
    assert a.f(1) == 20
    with pytest.raises(RestoreError, match="only once"):
        world.apply(only=["two"])
    assert a.f(1) == 10
    with pytest.raises(RestoreError, match="only once"):
        world.apply(only=["two"])
    world.revert()
    assert a.f is stock


def test_an_interrupt_leaves_nothing_half_done(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ascend_shims.engine.slot import Slot

    world.upstream(UP).gap("one", P("a:f"), P("a:g"))
    world.import_()
    before = world.snapshot()
    write = Slot.write

    def interrupted(slot: Slot, value: Any) -> None:
        if slot.name == "g":
            raise KeyboardInterrupt
        write(slot, value)

    with monkeypatch.context() as context:
        context.setattr(Slot, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            world.apply()
    assert before.held == world.snapshot().held
    assert world.state() is not State.APPLIED
    world.apply()
    assert world.state() is State.APPLIED


# Plans


def test_a_gap_whose_patches_change_is_taken_back_first(world: World) -> None:
    """The same gap in another registry, or on another version."""
    world.upstream(UP)
    world.gap(
        "one",
        P("a:f", "times_ten", versions={"UP": "<0.30"}),
        P("a:f", "plus_one", versions={"UP": ">=0.30"}),
        P("a:g", versions={"UP": "<0.30"}),
    )
    a = world.import_()
    before = world.snapshot()
    world.apply()
    assert (a.f(1), a.g(1)) == (10, 10)
    world.version = "0.31.0"
    world.apply()
    assert (a.f(1), a.g(1)) == (2, 1)
    world.revert()
    assert before.differences(world.snapshot()) == []


def test_the_order_of_layers_is_the_registry_s(world: World) -> None:
    """Also where another registry turns the order round."""
    world.upstream(UP)
    world.gap("one", P("a:f", "times_ten")).gap("two", P("a:f", "plus_one"))
    a = world.import_()
    world.apply()
    assert a.f(1) == 11
    world.gaps.reverse()
    world.apply()
    assert a.f(1) == 20


@pytest.mark.parametrize("version", ["dev", "0.1.dev1+gabc", None, "0.0.0"])
def test_a_version_that_says_nothing_leaves_it_to_the_target(
    world: World, version: str | None
) -> None:
    world.upstream(UP)
    world.gap(
        "one",
        P("a:f", versions={"UP": "<0.30"}),
        P("a:gone", versions={"UP": ">=0.30"}),
    )
    world.gap("two", P("a:gone", versions={"UP": ">=0.30"}))
    world.gap("three", P("nowhere:f", versions={"UP": ">=0.30"}))
    world.version = version  # type: ignore[assignment]
    a = world.import_()
    world.apply()
    assert (a.f(1), world.state("one")) == (10, State.APPLIED)
    assert world.state("two") is State.MISSING_TARGET
    assert world.state("three") is State.MISSING_TARGET
    patches = {one.patch.position: one.state for one in world.standing("one").patches}
    assert patches == {0: State.APPLIED, 1: State.MISSING_TARGET}


def test_the_first_candidate_that_exists_is_used(world: World) -> None:
    world.upstream("from UP.new import f\n", new="def f(x): return x\n", old="")
    world.gap("one", P(("gone:f", "old:f", "new:f")))
    world.gap("two", P(("gone:f", "old:f")))
    world.apply()
    assert world.state("one") is State.PENDING
    assert f"{world.up}.new is not imported yet" in world.reason("one")
    a = world.import_("a")
    assert (a.f(1), world.state("one")) == (10, State.APPLIED)
    assert world.standing("one").patches[0].target == f"{world.up}.new:f"
    world.import_("old")
    assert world.state("two") is State.MISSING_TARGET


def test_a_candidate_that_a_star_brings_is_waited_for(world: World) -> None:
    """Source that says `from x import *` may bind any name."""
    world.upstream(b="from UP.c import *\n", c=ONE_F, d=ONE_F)
    world.gap("one", P(("b:f", "d:f")))
    world.import_("d")
    world.apply()
    assert world.state() is State.PENDING
    assert world.import_("b").f(1) == 10


def test_a_module_on_a_path_that_was_extended_is_found(world: World) -> None:
    """A package may add to its `__path__` when it is imported."""
    world.upstream(init="__path__ = [*__path__, __path__[0] + '/more']\n")
    world.write("UP/more/late.py", "def f(x): return x\n")
    world.gap("one", P("late:f"))
    world.import_("")
    world.apply()
    assert world.state() is State.PENDING
    assert world.import_("late").f(1) == 10


# Threads and processes


def watched(threads: list[threading.Thread]) -> None:
    """Join the threads, or fail with what they were doing."""
    end = time.monotonic() + LONG
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    alive = [t for t in threads if t.is_alive()]
    if alive:
        import faulthandler

        faulthandler.dump_traceback(all_threads=True)
    assert not alive, "a deadlock"


def test_threads_import_apply_and_revert_at_once(world: World) -> None:
    modules = [f"m{number}" for number in range(8)]
    sources = {
        name: f"from UP.a import f\ndef g(x): return f(x) + {number}\n"
        for number, name in enumerate(modules)
    }
    world.upstream(UP, **sources)
    world.gap("one", P("a:f"), *(P(f"{name}:g", "through") for name in modules[:4]))
    world.gap("two", P("a:f", "plus_one"), *(P(f"{n}:g", "through") for n in modules))
    a = world.import_()
    stock = a.f
    faults: list[BaseException] = []
    stop = time.monotonic() + 2
    turn = threading.Lock()

    def importing(name: str) -> None:
        full = f"{world.up}.{name}"
        number = modules.index(name)
        while time.monotonic() < stop:
            module = importlib.import_module(full)
            got = module.g(1) - number
            if got not in (1, 2, 10, 11):
                faults.append(AssertionError(f"{name}: {got}"))
            with turn:
                sys.modules.pop(full, None)

    def reaching(only: list[str]) -> None:
        while time.monotonic() < stop:
            world.apply(only=only)
            world.apply()
            world.revert()

    def guarded(work: Any, *args: Any) -> threading.Thread:
        def run() -> None:
            try:
                work(*args)
            except BaseException as error:
                faults.append(error)
                raise

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    threads = [guarded(importing, name) for name in modules]
    threads += [guarded(reaching, only) for only in (["one"], ["two"], [], ["one"])]
    watched(threads)
    assert faults == []
    world.apply()
    assert a.f(1) == 11
    for number, name in enumerate(modules):
        assert importlib.import_module(f"{world.up}.{name}").g(1) == 11 + number
    assert world.states() == {"one": State.APPLIED, "two": State.APPLIED}
    world.revert()
    assert a.f is stock
    assert all(world.import_(name).f is stock for name in modules)
    assert world.rebound() == []


def test_a_plan_reached_while_a_module_is_imported_reaches_the_module(
    world: World,
) -> None:
    """Another thread changes the plan while the hook is at work."""
    user = world.user("def now(): pass\n")
    world.upstream(UP)
    world.gap("one", P("a:f"), code=f"import {user.__name__}\n{user.__name__}.now()\n")
    world.gap("two", P("a:f", "plus_one"))

    def now() -> None:
        thread = threading.Thread(target=world.apply)
        thread.start()
        thread.join(LONG)
        assert not thread.is_alive()

    user.now = now
    world.apply(only=["one"])
    a = world.import_()
    assert a.f(1) == 11
    assert world.states() == {"one": State.APPLIED, "two": State.APPLIED}


def test_a_forked_child_goes_its_own_way(world: World) -> None:
    """Forked while another thread holds the lock: the child has no such thread."""
    world.upstream(UP).gap("one", P("a:f"))
    a = world.import_()
    stock = a.f
    world.apply()
    world.engine.before_fork()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if not pid:
        status = 1
        try:
            world.engine.after_fork_in_child()
            thread = threading.Thread(target=world.revert)
            thread.start()
            thread.join(LONG)
            status = 0 if a.f is stock and not thread.is_alive() else 2
        finally:
            os._exit(status)
    world.engine.after_fork_in_parent()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (a.f(1), world.state()) == (10, State.APPLIED)


def test_nothing_grows_with_the_rounds(world: World) -> None:
    """Apply, reload and revert over and over keep no more than the first time."""
    rich(world)
    values(world)
    table = world.engine._table
    sizes = []
    for _ in range(6):
        world.apply()
        importlib.reload(world.import_("a"))
        world.apply()
        world.revert()
        kept = (table._states, table._earlier, table.references, table._left)
        sizes.append(sum(len(one) for one in kept))
    assert max(sizes[2:]) <= sizes[1]
