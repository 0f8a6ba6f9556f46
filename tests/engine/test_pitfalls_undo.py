"""What goes wrong when patches are undone, one test a way."""

from __future__ import annotations

import unittest.mock
from collections.abc import Callable
from typing import Any

import pytest
import wrapt

from ascend_shims.engine.table import RestoreError
from ascend_shims.states import State

from .failing import Failure
from .world import P, World

KINDS = """
    import functools

    class Base:
        def method(self, x): return x
        @staticmethod
        def static(x): return x
        @classmethod
        def made_by(cls, x): return cls.__name__, x
        @property
        def size(self): return 3
        async def soon(self, x): return x
        def several(self, x): yield x

    class Sub(Base):
        pass
"""


@pytest.mark.parametrize(
    "name", ["method", "static", "made_by", "size", "soon", "several"]
)
def test_a_patch_on_an_inherited_member_leaves_no_copy_behind(
    world: World, name: str
) -> None:
    """A method inherited by a subclass is patched on the subclass and undone: an
    own copy stays for good."""
    world.upstream(KINDS).gap("one", P(f"a:Sub.{name}", "through"))
    sub = world.import_().Sub
    before = world.snapshot()
    world.apply()
    assert name in vars(sub)
    assert world.state() is State.APPLIED
    world.revert()
    assert name not in vars(sub)
    assert before.differences(world.snapshot()) == []


def test_a_static_method_comes_back_as_the_very_static_method(world: World) -> None:
    """A static method comes back as a plain function (saved with `getattr`): calls
    through an instance pass `self`."""
    world.upstream(KINDS).gap("one", P("a:Base.static"))
    base = world.import_().Base
    raw = vars(base)["static"]
    world.apply()
    assert isinstance(vars(base)["static"], staticmethod)
    assert (base.static(2), base().static(2)) == (20, 20)
    world.revert()
    assert vars(base)["static"] is raw
    assert base().static(2) == 2


def test_a_class_method_reports_the_class_it_was_called_on(world: World) -> None:
    """A class method comes back bound to the base: a subclass reports the wrong
    class."""
    world.upstream(KINDS).gap("one", P("a:Base.made_by", "noted"))
    a = world.import_()
    raw = vars(a.Base)["made_by"]
    world.apply()
    assert a.Sub.made_by(1) == ("noted", ("Sub", 1))
    assert a.Sub().made_by(1) == ("noted", ("Sub", 1))
    world.revert()
    assert vars(a.Base)["made_by"] is raw
    assert a.Sub.made_by(1) == ("Sub", 1)


def test_an_inherited_class_method_patched_on_the_subclass_sees_the_subclass(
    world: World,
) -> None:
    """The same, with the patch on the class that only inherits."""
    world.upstream(KINDS + "\n    class Leaf(Sub): pass\n")
    world.gap("one", P("a:Sub.made_by", "noted"))
    a = world.import_()
    world.apply()
    assert a.Leaf.made_by(1) == ("noted", ("Leaf", 1))
    assert a.Base.made_by(1) == ("Base", 1)
    world.revert()
    assert a.Leaf.made_by(1) == ("Leaf", 1)


@pytest.mark.parametrize("target", ["a:extra", "a:Base.extra"])
def test_what_was_missing_is_missing_again(world: World, target: str) -> None:
    """The target was missing; apply then undo leaves the name behind, set to
    `None`."""
    world.upstream(KINDS)
    world.gap("one", P(target, "extra", kind="add"), code="def extra(*a): return a\n")
    owner = world.import_()
    owner = owner.Base if "Base" in target else owner
    before = world.snapshot()
    world.apply()
    assert owner.extra(1) == (1,)
    world.revert()
    assert "extra" not in vars(owner)
    assert before.differences(world.snapshot()) == []


def test_a_missing_target_stays_missing(world: World) -> None:
    """The same where the patch wanted to wrap what is not there."""
    world.upstream(KINDS).gap("one", P("a:Base.gone"))
    a = world.import_()
    world.apply()
    world.revert()
    assert "gone" not in vars(a.Base)


def test_a_value_that_was_none_is_none_again(world: World) -> None:
    """The original value *was* `None`; undo deletes it."""
    world.upstream("hook = None\nother = None\nlast = 1\n")
    world.gap("one", P("a:hook", "hook", kind="replace"), code="hook = len\n")
    a = world.import_()
    names = list(vars(a))
    world.apply()
    assert a.hook is len
    assert a.other is None
    world.revert()
    assert vars(a)["hook"] is None
    assert list(vars(a)) == names


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_patches_on_one_slot_leave_in_any_order(
    world: World, order: tuple[str, str]
) -> None:
    """Undo of A with B on top removes B, or restores A's stale view; first-in
    first-out removal leaves a patch for ever."""
    world.upstream("def f(x): return x\n")
    world.gap("one", P("a:f", "times_ten")).gap("two", P("a:f", "plus_one"))
    a = world.import_()
    raw = vars(a)["f"]
    world.apply()
    assert a.f(1) == 11
    world.apply(off=[order[0]])
    assert a.f(1) == (2 if order[0] == "one" else 10)
    assert world.state(order[1]) is State.APPLIED
    world.apply(off=order)
    assert vars(a)["f"] is raw


def plain(function: Any) -> Any:
    def foreign(*args: Any, **kwargs: Any) -> Any:
        return -function(*args, **kwargs)

    return foreign


def proxy(function: Any) -> Any:
    return wrapt.FunctionWrapper(function, lambda f, _, a, k: -f(*a, **k))


FOREIGN = pytest.mark.parametrize("foreign", [plain, proxy], ids=["plain", "wrapt"])


@FOREIGN
def test_a_foreign_wrapper_on_top_is_left_alone(
    world: World, foreign: Callable[[Any], Any]
) -> None:
    """Undo removes a foreign wrapper that sits on top and keeps its own; or
    overwrites a foreign patch."""
    world.upstream("def f(x): return x\n").gap("one", P("a:f"))
    a = world.import_()
    raw = vars(a)["f"]
    world.apply()
    ours = vars(a)["f"]
    theirs = a.f = foreign(ours)
    assert a.f(1) == -10
    assert world.state() is State.BURIED
    world.revert()
    assert vars(a)["f"] is theirs
    assert a.f(1) == -1, "our layer beneath is a pass-through"
    assert world.state() is State.OFF
    a.f = ours  # what the foreign tool saved
    assert a.f(1) == 1, "still a pass-through"
    world.revert()
    assert vars(a)["f"] is raw


@FOREIGN
def test_a_foreign_wrapper_beneath_is_what_comes_back(
    world: World, foreign: Callable[[Any], Any]
) -> None:
    """The reverse order: theirs was there first."""
    world.upstream("def f(x): return x\n").gap("one", P("a:f"))
    a = world.import_()
    raw = vars(a)["f"]
    theirs = a.f = foreign(raw)
    world.apply()
    assert a.f(1) == -10
    world.revert()
    assert vars(a)["f"] is theirs


def test_a_foreign_patch_that_replaced_ours_is_left_alone(world: World) -> None:
    """The same with a patch that does not call what it replaced."""
    world.upstream("def f(x): return x\n").gap("one", P("a:f"))
    a = world.import_()
    world.apply()
    with unittest.mock.patch.object(a, "f", return_value=7):
        assert world.state() is State.BURIED
        assert "Mock" in world.reason()
        world.revert()
        assert a.f(1) == 7
    world.revert()
    assert a.f(1) == 1


def test_undo_goes_on_past_a_step_that_fails(world: World, failure: Failure) -> None:
    """One failing step stops the undo; every later undo stops there too."""
    world.upstream("def f(x): return x\ndef g(x): return x\ndef h(x): return x\n")
    world.gap("one", P("a:f"), P("a:g"), P("a:h")).gap("two", P("a:h", "plus_one"))
    a = world.import_()
    before = world.snapshot()
    world.apply()
    failure.names = {"g"}
    with pytest.raises(RestoreError, match="no write to g") as caught:
        world.revert()
    assert "a:f" not in str(caught.value)
    left = before.differences(world.snapshot())
    assert [line.partition(":")[0] for line in left] == [f"{a.__name__}.g"]
    assert a.g(1) == 1, "what could not be removed is a pass-through"
    with pytest.raises(RestoreError, match="no write to g"):
        world.revert()
    failure.names = set()
    world.revert()
    assert before.differences(world.snapshot()) == []


def test_undo_after_a_failed_one_still_serves_other_gaps(
    world: World, failure: Failure
) -> None:
    """The same: a slot that is stuck is not in the way of any other gap."""
    world.upstream("def f(x): return x\ndef g(x): return x\n")
    world.gap("one", P("a:f")).gap("two", P("a:g"))
    a = world.import_()
    world.apply()
    failure.names = {"f"}
    with pytest.raises(RestoreError):
        world.apply(off=["one"])
    assert a.g(1) == 10
    with pytest.raises(RestoreError):
        world.apply(off=["one", "two"])
    assert a.g(1) == 1
    failure.names = set()
    world.apply()
    assert (a.f(1), a.g(1)) == (10, 10)
    assert world.states() == {"one": State.APPLIED, "two": State.APPLIED}


def test_an_alias_that_cannot_be_put_back_is_told_and_tried_again(
    world: World, failure: Failure
) -> None:
    """The same for a reference elsewhere that had moved along."""
    world.upstream("def f(x): return x\n").gap("one", P("a:f"))
    world.import_()
    user = world.user("from UP.a import f as mine\n")
    before = world.snapshot()
    world.apply()
    failure.names = {"mine"}
    with pytest.raises(RestoreError, match="mine"):
        world.revert()
    failure.names = set()
    world.revert()
    assert before.differences(world.snapshot()) == []
    assert user.mine(1) == 1


def test_the_order_of_every_namespace_is_as_before(world: World) -> None:
    """Undo changes the order of a namespace (first-match registries notice)."""
    world.upstream(
        """
        def match_a(x): return x
        def match_b(x): return x
        class Rules:
            def first(self): return 1
            def second(self): return 2
        class More(Rules): pass
        """
    )
    world.gap(
        "one",
        P("a:match_a"),
        P("a:Rules.first"),
        P("a:More.second"),
        P("a:new", "through", kind="add"),
    )
    a = world.import_()
    names, rules, more = list(vars(a)), list(vars(a.Rules)), list(vars(a.More))
    world.apply()
    assert list(vars(a)) == [*names, "new"]
    assert list(vars(a.Rules)) == rules
    world.revert()
    assert [list(vars(owner)) for owner in (a, a.Rules, a.More)] == [names, rules, more]


def lazy(world: World) -> Any:
    world.upstream(
        init="""
        asked = []
        def __getattr__(name):
            asked.append(name)
            if name == "f":
                from UP.a import f
                return f
            raise AttributeError(name)
        """,
        a="def f(x): return x\n",
    )
    return world.import_("")


def test_a_name_served_by_getattr_never_becomes_an_attribute(world: World) -> None:
    """Names served by a module's `__getattr__` become real attributes."""
    up = lazy(world)
    world.gap("one", P("f"))
    world.import_()
    del up.asked[:]
    world.apply()
    assert world.state() is State.MISSING_TARGET
    assert "__getattr__" in world.reason()
    assert "f" not in vars(up)
    assert up.asked == [], "nothing was asked of the module"
    world.revert()
    assert "f" not in vars(up)


def test_a_name_served_by_getattr_follows_the_patch_on_its_definition(
    world: World,
) -> None:
    """The same: what the lazy name gives is patched where it is defined."""
    up = lazy(world)
    world.gap("one", P("a:f"))
    world.import_()
    world.apply()
    assert up.f(1) == 10
    world.revert()
    assert up.f(1) == 1
    assert "f" not in vars(up)


@pytest.mark.parametrize("state", ["never applied", "pending", "failed", "skipped"])
def test_undo_of_what_is_not_applied_writes_nothing(
    world: World, failure: Failure, state: str
) -> None:
    """Undo without a prior apply writes an unset value."""
    world.upstream("def f(x): return x\n")
    if state == "failed":
        world.gap("one", P("a:f", "no_such_name"))
    else:
        world.gap(
            "one", P("a:f"), versions={world.up: ">=9"} if state == "skipped" else {}
        )
    if state != "pending":
        world.import_()
    if state != "never applied":
        world.apply()
    failure.writes.clear()
    before = world.snapshot()
    world.revert()
    world.revert()
    assert failure.writes == []
    assert before.held == world.snapshot().held
