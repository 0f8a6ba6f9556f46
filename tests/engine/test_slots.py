"""The namespace and name behind a target, read and written raw."""

from __future__ import annotations

import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ascend_shims.engine.slot import (
    ABSENT,
    ImmutableOwnerError,
    MissingTargetError,
    Slot,
    namespace,
    resolve,
    split,
)
from ascend_shims.states import State

from .world import P, World

UP = """
    class Meta(type):
        def __getattribute__(cls, name): raise RuntimeError("asked")
        def __setattr__(cls, name, value): raise RuntimeError("asked")
    class Guarded(metaclass=Meta):
        def m(self, x=1): return x
    class Base:
        class Inner:
            def m(self): return 1
    class C(Base):
        pass
    value = 1
    def f(): return 1
"""


@pytest.mark.parametrize(
    ("target", "owner", "name"),
    [
        ("a:f", "a", "f"),
        ("a:not_there", "a", "not_there"),
        ("a:C.m", "C", "m"),
        ("a:C.Inner.m", "Inner", "m"),
    ],
)
def test_a_target_leads_to_its_namespace(
    world: World, target: str, owner: str, name: str
) -> None:
    a = world.upstream(UP).import_()
    slot = resolve(world.target(target))
    found = {"a": a, "C": a.C, "Inner": a.Base.Inner}[owner]
    assert (slot.owner, slot.name) == (found, name)


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("a:gone.m", "gone does not exist in"),
        ("a:value.m", "value is not a class in"),
        ("a:f.m", "f is not a class in"),
        ("a:C.gone.m", "gone does not exist in"),
        ("nowhere:f", "nowhere is not a loaded module"),
    ],
)
def test_a_target_without_a_namespace_says_why(
    world: World, target: str, why: str
) -> None:
    world.upstream(UP).import_()
    with pytest.raises(MissingTargetError, match=re.escape(why)):
        resolve(world.target(target))


def test_absent_is_no_value() -> None:
    owner = ModuleType("made_up")
    slot = Slot(owner, "x", "made_up:x")
    assert slot.read() is ABSENT
    slot.write(None)
    assert slot.read() is None
    slot.write(ABSENT)
    assert "x" not in vars(owner)
    assert repr(ABSENT) == "<absent>"
    with pytest.raises(KeyError):
        slot.write(ABSENT)


def test_nothing_is_asked_of_the_owner(world: World) -> None:
    world.upstream(UP).gap("one", P("a:Guarded.m"))
    a = world.import_()
    raw = namespace(a.Guarded)["m"]
    world.apply()
    assert (world.state(), a.Guarded().m()) == (State.APPLIED, 10)
    world.revert()
    assert namespace(a.Guarded)["m"] is raw


def test_a_module_that_is_its_own_kind_is_written_raw(world: World) -> None:
    class Kind(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            raise RuntimeError("read only")

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("asked")

    world.upstream(UP).gap("one", P("a:f"))
    a = world.import_()
    a.__class__ = Kind
    world.apply()
    assert (world.state(), vars(a)["f"]()) == (State.APPLIED, 10)
    world.revert()
    assert vars(a)["f"]() == 1


@pytest.mark.parametrize("owner", [dict, re.Pattern, object, type])
def test_an_immutable_type_is_told_before_any_write(owner: type) -> None:
    slot = Slot(owner, "keys", "up:x.keys")
    with pytest.raises(ImmutableOwnerError, match="is an immutable type"):
        slot.check_writable()


def test_what_keeps_no_namespace_is_an_error() -> None:
    with pytest.raises((TypeError, AttributeError)):
        namespace(1)
    assert namespace(SimpleNamespace(a=1)) == {"a": 1}


def test_two_slots_are_the_same_by_identity_of_the_owner() -> None:
    class A: ...

    first, second = Slot(A, "m", "x:A.m"), Slot(A, "m", "y:A.m")
    assert first.key == second.key
    assert first.key != Slot(type("A", (), {}), "m", "x:A.m").key


def test_a_target_is_split_at_its_colon() -> None:
    assert split("a.b:C.m") == ("a.b", "C.m")


def test_a_class_found_under_two_names_is_one_slot(world: World) -> None:
    """A class imported by name elsewhere is the same class, and patched once."""
    world.upstream(UP, b="from UP.a import C\n")
    world.gap("one", P("b:C.m", "through", kind="add"))
    world.gap("two", P("a:C.Inner.m")).gap("three", P("b:C.Inner.m", "plus_one"))
    a, b = world.import_("a"), world.import_("b")
    world.apply()
    assert a.C.m is b.C.m
    assert a.Base.Inner().m() == 11
    world.revert()
    assert "m" not in vars(a.C)
    assert a.Base.Inner().m() == 1


def test_a_method_of_a_class_that_is_only_inherited_lands_on_the_class_itself(
    world: World,
) -> None:
    """`C.Inner` is `Base.Inner`: the patch is on that class, not on a copy."""
    world.upstream(UP).gap("one", P("a:C.Inner.m"))
    a = world.import_()
    world.apply()
    assert a.Base.Inner().m() == 10
    assert "Inner" not in vars(a.C)


def test_a_class_that_never_recovers_from_a_patch_is_refused(world: World) -> None:
    """A class that gets a `__new__` and loses it again takes no arguments any more."""
    world.upstream(
        """
        class Plain:
            def __init__(self, x=1): self.x = x
        class Own:
            def __new__(cls, x): return object.__new__(cls)
        class Heir(Own): pass
        """
    )
    code = "def new(call, cls, *args, **kw): return call(cls, *args, **kw)\n"
    world.gap("one", P("a:Plain.__new__", "new"), code=code)
    world.gap("two", P("a:Own.__new__", "new"), code=code)
    world.gap("three", P("a:Heir.__new__", "new"), code=code)
    a = world.import_()
    world.apply()
    assert world.state("one") is State.BROKEN_CONTRACT
    assert "patch `__init__`" in world.reason("one")
    assert world.state("two") is State.APPLIED
    assert world.state("three") is State.APPLIED
    world.revert()
    assert (a.Plain(5).x, type(a.Own(1)), type(a.Heir(1))) == (5, a.Own, a.Heir)


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
@pytest.mark.parametrize("back", [("one", "two"), ("two", "one")])
@pytest.mark.parametrize(
    "member", ["method", "static", "made_by", "size", "soon", "run"]
)
def test_a_base_and_its_heir_are_patched_in_any_order(
    world: World, order: tuple[str, str], back: tuple[str, str], member: str
) -> None:
    """The heir's layer stands in front of whatever the base has at the moment."""
    import asyncio

    world.upstream(
        """
        class Base:
            def method(self): return [1]
            @staticmethod
            def static(): return [1]
            @classmethod
            def made_by(cls): return [1]
            @property
            def size(self): return [1]
            async def soon(self): return [1]
            def run(self): yield 1
        class Other:
            def method(self): return ["other"]
        class Heir(Base): pass
        class Both(Heir, Other): pass
        """
    )
    body = "return [NAME] + call(*args)"
    if member == "soon":
        body = "return [NAME] + await call(*args)"
    if member == "run":
        body = "yield NAME\n    yield from call(*args)"
    begin = "async def" if member == "soon" else "def"
    code = f"{begin} mine(call, *args, **kwargs):\n    {body}\n"
    world.gap("one", P(f"a:Base.{member}", "mine"), code=code.replace("NAME", "'base'"))
    world.gap("two", P(f"a:Heir.{member}", "mine"), code=code.replace("NAME", "'heir'"))
    a = world.import_()

    def ask(cls: Any) -> list[Any]:
        got = getattr(cls(), member)
        got = got() if callable(got) else got
        if member == "soon":
            got = asyncio.run(got)
        return list(got)

    before = world.snapshot()
    on: set[str] = set()
    for gap in (*order, *back):
        on ^= {gap}
        world.apply(only=on)
        base = ["base"] * ("one" in on) + [1]
        heir = ["heir"] * ("two" in on) + base
        assert (ask(a.Base), ask(a.Heir), ask(a.Both)) == (base, heir, heir)
    assert before.differences(world.snapshot()) == []


def test_the_owner_of_a_slot_may_be_gone_from_its_module(world: World) -> None:
    """The class that was patched is put back even if nothing leads to it any more."""
    world.upstream(UP).gap("one", P("a:Base.Inner.m"))
    a = world.import_()
    inner = a.Base.Inner
    raw = vars(inner)["m"]
    world.apply()
    del a.Base.Inner
    assert world.state() is not State.APPLIED
    world.revert()
    assert vars(inner)["m"] is raw
    del sys.modules[a.__name__]
