"""Which references are somebody else's, and what need not be searched for then."""

from __future__ import annotations

import functools
import gc
import importlib
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from ascend_shims.engine import aliases, heap, outside, references, table
from ascend_shims.engine.outside import count_outside
from ascend_shims.engine.wrappers import Mark, Wrapper, stand_in_front

from .world import P, World


@dataclass
class Held:
    """Something of ours."""

    value: Any


class Other:
    """Something of somebody else."""

    def __init__(self, value: Any) -> None:
        self.value = value


def fresh() -> Callable[[int], int]:
    def f(x: int) -> int:
        return x

    return f


def stood(f: Any) -> Wrapper:
    return stand_in_front(
        f,
        functools.partial(lambda call, x: call(x), f),
        owner=None,
        name="f",
        mark=lambda wears: Mark("gap", "m:f", "toolkit", lambda _: None, wears),
    )


OURS: dict[str, Callable[[Any], Any]] = {
    "an object": Held,
    "a list": lambda f: [f],
    "a dict": lambda f: {"f": f, "again": f},
    "a tuple in a list": lambda f: [(f,), f],
    "a partial": lambda f: functools.partial(f, f),
    "a staticmethod": staticmethod,
    "a classmethod": classmethod,
    "a property": property,
    "a wrapper": stood,
    "an object in a dict": lambda f: {"held": Held([f])},
}


@pytest.mark.parametrize("made", OURS.values(), ids=list(OURS))
def test_what_we_hold_is_not_counted(made: Callable[[Any], Any]) -> None:
    f = fresh()
    ours = made(f)
    values = [f]
    del f
    roots = [ours.raw, ours.retire] if isinstance(ours, Wrapper) else [ours]
    counted = count_outside(values, [roots, ours], kinds=(Held, Wrapper))
    assert counted == [0]
    # The same thing, known to nobody, is somebody else's.
    assert count_outside(values, [], kinds=(Held,)) != [0]


@pytest.mark.parametrize("more", range(4))
def test_what_others_hold_is_counted_to_the_last_one(more: int) -> None:
    f, g = fresh(), fresh()
    ours, theirs = [Held(f), Held(g)], [Other(f) for _ in range(more)]
    values = [f, g]
    del f, g
    assert count_outside(values, ours, kinds=(Held,)) == [more, 0]
    assert len(theirs) == more


def test_what_somebody_else_has_in_between_is_theirs() -> None:
    f = fresh()
    values, ours = [f], [Held(Other(f))]
    del f
    assert count_outside(values, ours, kinds=(Held,)) == [1]


def test_what_is_ours_twice_counts_twice_and_a_circle_ends() -> None:
    f = fresh()
    circle: list[Any] = [f]
    circle.append(circle)
    values, ours = [f], [circle, Held(circle), Held(f)]
    del f
    assert count_outside(values, ours, kinds=(Held,)) == [0]


def test_parts_that_a_wrapper_shares_with_upstream_are_upstreams() -> None:
    """A table on upstream's function is on our wrapper, too: who finds something in it
    has not found it with us."""
    f, g = fresh(), fresh()
    g.__dict__["table"] = {"f": f}
    ours = stood(g)
    values = [f]
    del f
    assert count_outside(values, [ours.raw, ours.retire], kinds=()) == [1]


def test_where_counts_are_not_exact_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outside, "_COUNTS", False)
    assert count_outside([fresh()], [], kinds=()) is None


UP = """
    def f(x): return x
    class C:
        def m(self, x): return x
"""


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Where references were looked for: top-level packages, None for everywhere, and
    "heap"."""
    made: list[Any] = []
    near, reached, referrers = aliases._near, aliases._reached, gc.get_referrers

    def nearby(among: Any) -> Any:
        made.append(among)
        return near(among)

    def everywhere(also: Any) -> Any:
        made.append(None)
        return reached(also)

    def heaped(*values: Any) -> Any:
        made.append("heap")
        return referrers(*values)

    monkeypatch.setattr(references, "_MANY", 0)
    monkeypatch.setattr(aliases, "_near", nearby)
    monkeypatch.setattr(aliases, "_reached", everywhere)
    monkeypatch.setattr(heap.gc, "get_referrers", heaped)
    return made


def test_what_nobody_else_holds_is_not_searched_for(
    world: World, looks: list[Any]
) -> None:
    world.upstream(UP).gap("one", P("a:f"), P("a:C.m")).gap("two", P("a:f", "plus_one"))
    world.import_()
    world.apply()
    assert world.stale() == []
    world.revert()
    assert looks == []


def test_names_in_upstream_are_found_there_and_nothing_else_is_searched(
    world: World, looks: list[Any]
) -> None:
    world.upstream(UP, b="from UP.a import f\n").gap("one", P("a:f"))
    b = world.import_("b")
    world.apply()
    assert b.f(1) == 10
    assert world.stale() == []
    world.revert()
    assert b.f(1) == 1
    assert looks == [(world.up,), (world.up,)]


def test_when_all_are_found_no_class_is_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "_MANY", 0)
    seen: list[Any] = []
    near = aliases._near

    def noted(among: Any) -> Any:
        for owner in near(among):
            seen.append(owner)
            yield owner

    monkeypatch.setattr(aliases, "_near", noted)
    world.upstream(UP, b="from UP.a import f\nclass D:\n    pass\n")
    world.gap("one", P("a:f"))
    b = world.import_("b")
    world.apply()
    assert b.f(1) == 10
    assert b in seen
    assert [one for one in seen if isinstance(one, type)] == []


def test_what_was_found_is_not_counted_again(
    world: World, looks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    count = table.count_outside

    def noted(values: list[Any], *args: Any, **kwargs: Any) -> list[int] | None:
        told = count(values, *args, **kwargs)
        counted.extend(told or [])
        return told

    world.upstream(UP, b="from UP.a import f\n").gap("one", P("a:f"))
    b = world.import_("b")
    user = world.user("from UP.a import f\n")
    monkeypatch.setattr(table, "count_outside", noted)
    world.apply()
    assert (b.f(1), user.f(1)) == (10, 10)
    assert counted == [2]
    assert looks == [(world.up,), None]


def test_a_name_bound_while_it_is_looked_for_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread's import may change a namespace under the look."""
    world.upstream(UP, b="from UP.a import f\n").gap("one", P("a:f"))
    b = world.import_("b")
    space = aliases.namespace

    class Changing(dict[str, Any]):
        def values(self) -> Any:
            for value in super().values():
                yield value
                raise RuntimeError("dictionary changed size during iteration")

    def changing(owner: Any) -> Any:
        return Changing(space(owner)) if owner is b else space(owner)

    monkeypatch.setattr(aliases, "namespace", changing)
    world.apply()
    assert b.f(1) == 10


def test_of_one_bound_method_every_name_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is one reference to the function, by however many names."""
    monkeypatch.setattr(references, "_MANY", 0)
    world.upstream(
        UP,
        b="from UP.a import C\nbound = C().m\n",
        c="from UP.b import bound\nclass D:\n    kept = bound\n",
    ).gap("one", P("a:C.m"))
    b, c = world.import_("b"), world.import_("c")
    before = world.snapshot()
    world.apply()
    assert (b.bound(1), c.bound(1), c.D.kept(1)) == (10, 10, 10)
    world.revert()
    assert before.differences(world.snapshot()) == []


def test_a_name_elsewhere_is_found_by_a_look_everywhere(
    world: World, looks: list[Any]
) -> None:
    world.upstream(UP).gap("one", P("a:f"))
    world.import_()
    user = world.user("from UP.a import f\n")
    world.apply()
    assert user.f(1) == 10
    assert looks == [(world.up,), None]


def test_what_cannot_follow_is_searched_for_in_the_heap(
    world: World, looks: list[Any]
) -> None:
    world.upstream(UP).gap("one", P("a:f"))
    world.import_()
    world.user("from UP.a import f\ntable = [f]\ndel f\n")
    world.apply()
    assert len(world.stale()) == 1
    assert looks[:2] == [(world.up,), None]
    assert set(looks[2:]) == {"heap"}


def test_a_namespace_that_was_changed_before_is_looked_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a bound method was moved twice it came back as another object."""
    world.upstream(UP).gap("one", P("a:C.m"), P("a:f"))
    world.import_()
    user = world.user("from UP.a import C, f\nbound = C().m\nkept = f\n")
    before = world.snapshot()
    for many in (0, len(sys.modules) + 100):
        monkeypatch.setattr(references, "_MANY", many)
        world.apply()
        assert (user.bound(1), user.kept(1)) == (10, 10)
        world.revert()
        assert before.differences(world.snapshot()) == []


def test_in_a_small_process_there_is_one_look(
    world: World, looks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "_MANY", len(sys.modules) + 100)
    world.upstream(UP, b="from UP.a import f\n").gap("one", P("a:f"))
    b = world.import_("b")
    world.apply()
    assert b.f(1) == 10
    assert looks == [None]


def test_without_counts_everything_is_found_as_well(
    world: World, looks: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outside, "_COUNTS", False)
    world.upstream(UP, b="from UP.a import f\n").gap("one", P("a:f"))
    b = world.import_("b")
    user = world.user("from UP.a import f\n")
    before = world.snapshot()
    world.apply()
    assert (b.f(1), user.f(1)) == (10, 10)
    assert world.stale() == []
    world.revert()
    assert before.differences(world.snapshot()) == []
    assert "heap" in looks


def test_a_class_that_no_module_leads_to_any_more_is_not_kept_alive(
    world: World,
) -> None:
    world.upstream(UP).gap("one", P("a:f"))
    world.import_()
    user = world.user("from UP.a import f\nclass Kept:\n    kept = f\n")
    gone = weakref.ref(user.Kept)
    kept_f = user.Kept.kept
    gc.disable()
    try:
        del sys.modules[user.__name__], user
        world.apply()
        assert kept_f(1) == 1
        assert world.rebound() == []
    finally:
        gc.enable()
    del kept_f
    gc.collect()
    assert gone() is None


def test_a_class_that_a_module_holds_by_another_name_follows(world: World) -> None:
    world.upstream(UP).gap("one", P("a:f"))
    world.import_()
    user = world.user(
        """
        from UP.a import f
        def made():
            class Inner:
                kept = f
            class Outer:
                inner = Inner
            return Outer
        Other = made()
        """
    )
    world.apply()
    assert user.Other.inner.kept(1) == 10
    world.revert()
    assert user.Other.inner.kept(1) == 1


# Near, and everywhere

NEAR_A = """
def f(): ...
class C:
    g = f
    class Inner:
        h = f
class Gone:
    g = f
Kept = Gone
Gone.__qualname__ = "Lost"
"""
NEAR_B = """
from UP.a import f, C
class D(C):
    k = f
class Meta(type): ...
class Odd(metaclass=Meta):
    k = f
    __hash__ = None
"""
FAR = """
from UP.a import f, C
class E:
    g = f
C.E = E
C.n = f
"""


def _references(world: World, among: tuple[str, ...] | None) -> list[str]:
    world.upstream(NEAR_A, b=NEAR_B)
    world.write(f"{world.prefix}_far.py", FAR)
    for name in (f"{world.up}.b", f"{world.prefix}_far"):
        importlib.import_module(name)
    f = sys.modules[f"{world.up}.a"].f
    found = aliases.find([aliases.Move(f, None, f)], among=among)
    names = [world.up, f"{world.prefix}_far"]
    said = [str(one).replace(names[0], "up").replace(names[1], "far") for one in found]
    # Nothing twice: it would be moved twice.
    assert len(set(said)) == len(said)
    return sorted(said)


_HERE = ["up.a:C.Inner.h", "up.a:C.g", "up.a:C.n", "up.a:f", "up.b:D.k", "up.b:Odd.k"]
_HERE += ["up.b:f"]
_THERE = ["far:E.g", "far:f"]


def test_near_are_modules_and_the_classes_that_they_lead_to(world: World) -> None:
    assert _references(world, (world.up,)) == sorted(_HERE)


def test_another_package_is_near_if_it_is_named(world: World) -> None:
    found = _references(world, (world.up, f"{world.prefix}_far"))
    assert found == sorted([*_HERE, *_THERE])


def test_nothing_is_near_in_a_package_that_is_not_loaded(world: World) -> None:
    assert _references(world, ("no_such_package",)) == []


def test_everywhere_is_what_goes_by_another_name_too(world: World) -> None:
    assert _references(world, None) == sorted([*_HERE, *_THERE, "up.a:Lost.g"])
