"""Parts of the engine by themselves, where a whole one would hide what they do."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable, Iterator
from types import MethodType, ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.engine import choose as choosing
from ascend_shims.engine.aliases import Move
from ascend_shims.engine.choose import Missing, Waiting, choose, home, is_borrowed
from ascend_shims.engine.heap import Heap
from ascend_shims.engine.layers import Layer, SlotState
from ascend_shims.engine.references import References
from ascend_shims.engine.replacements import import_patches
from ascend_shims.engine.slot import ABSENT, Slot, resolve
from ascend_shims.engine.stale import holders_of
from ascend_shims.engine.standing import PatchStanding, in_place
from ascend_shims.engine.wrappers import (
    Mark,
    Wrapper,
    foreign_mark,
    mark_of,
    peel,
    same_descriptor,
    stand_in_front,
)
from ascend_shims.registry.model import Patch
from ascend_shims.states import State

from .world import P, World


def f(x: int = 1) -> int:
    return x


def g(x: int = 1) -> int:
    return -x


def _own(gap: str) -> None:
    """How our own marks revert."""


def _other(gap: str) -> None:
    """How those of another copy do."""


def _stood(
    beneath: Any, gap: str = "gap", revert: Callable[[str], None] = _other
) -> Any:
    return stand_in_front(
        beneath,
        functools.partial(lambda call, *args: call(*args), peel(beneath)),
        owner=None,
        name="f",
        mark=lambda wears: Mark(gap, "m:f", "kit", revert, wears),
    ).raw


# Descriptors


class Descriptors:
    def read(self) -> int:
        """What it says."""
        return 1

    def write(self, value: int) -> None: ...

    def erase(self) -> None: ...


class Kept(property):
    pass


@pytest.mark.parametrize("kind", [property, Kept])
def test_a_property_keeps_all_but_its_getter(kind: type[property]) -> None:
    made = same_descriptor(
        kind(Descriptors.read, Descriptors.write, Descriptors.erase, "Said."),
        f,
        Descriptors,
        "value",
    )
    assert type(made) is kind
    assert (made.fget, made.fset) == (f, Descriptors.write)
    assert made.fdel is Descriptors.erase
    # Python itself gives a property of somebody's own no text before 3.12.
    assert kind is Kept or made.__doc__ == "Said."


def test_a_cached_property_knows_its_name() -> None:
    raw = functools.cached_property(Descriptors.read)
    made = same_descriptor(raw, f, Descriptors, "value")
    assert type(made) is functools.cached_property
    assert (made.func, made.attrname) == (f, "value")


def test_a_partial_method_keeps_its_arguments() -> None:
    raw = functools.partialmethod(Descriptors.write, 3, key=4)
    made = same_descriptor(raw, f, Descriptors, "value")
    assert type(made) is functools.partialmethod
    assert (made.func, made.args, made.keywords) == (f, (3,), {"key": 4})


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_a_method_of_a_class_stays_one(kind: Any) -> None:
    made = same_descriptor(kind(g), f, Descriptors, "value")
    assert type(made) is kind
    assert made.__func__ is f


def test_a_function_needs_no_descriptor() -> None:
    assert same_descriptor(g, f, Descriptors, "value") is f


# Marks of another copy


def _wrapped(beneath: Any) -> Any:
    @functools.wraps(beneath)
    def foreign(*args: Any) -> Any:
        return beneath(*args)

    return foreign


def _circle() -> Any:
    def round_(x: int) -> int:
        return x

    round_.__wrapped__ = round_  # type: ignore[attr-defined]
    return round_


MARKED: dict[str, tuple[Callable[[], Any], bool]] = {
    "on top": (lambda: _stood(f), True),
    "in a staticmethod": (lambda: staticmethod(_stood(f)), True),
    "beneath ours": (lambda: _stood(_stood(f), revert=_own), True),
    "beneath somebody's": (lambda: _wrapped(_stood(f)), True),
    "beneath two, in a classmethod": (
        lambda: classmethod(_wrapped(_wrapped(_stood(f)))),
        True,
    ),
    "of another gap": (lambda: _stood(f, "another"), False),
    "of another gap, over the one": (lambda: _stood(_stood(f), "another"), True),
    "our own": (lambda: _stood(f, revert=_own), False),
    "none": (lambda: f, False),
    "none, beneath somebody's": (lambda: _wrapped(f), False),
    "a circle": (_circle, False),
    "no function": (lambda: 3, False),
}


@pytest.mark.parametrize("name", MARKED)
def test_the_mark_of_another_copy_for_a_gap(name: str) -> None:
    make, is_there = MARKED[name]
    mark = foreign_mark(make(), "gap", _own)
    assert (mark is not None) == is_there
    if mark is not None:
        assert (mark.gap, mark.target, mark.revert) == ("gap", "m:f", _other)


# Layers


def _layer(kind: str = "wrap", replacement: Any = g, **patch: Any) -> Layer:
    return Layer(
        gap="gap",
        order=(0, 0),
        patch=Patch(target="m:f", kind=kind, replacement="g", **patch),  # type: ignore[arg-type]
        replacement=replacement,
        said="p.gap.g",
        mark=lambda wears, gap, target: Mark(gap, target, "kit", _own, wears),
    )


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module `alone_m` that is loaded."""
    made = ModuleType("alone_m")
    monkeypatch.setitem(sys.modules, "alone_m", made)
    return made


@pytest.mark.parametrize(
    ("kind", "beneath"),
    [
        ("add", ABSENT),
        ("add", f),
        ("replace", 3),
        ("replace", Descriptors),
    ],
)
def test_what_stands_in_front_of_nothing_is_taken_as_it_is(
    module: ModuleType, kind: str, beneath: Any
) -> None:
    replacement = object()
    layer = _layer(kind, replacement, swap_is_safe="a test")
    built = layer.build(Slot(module, "f", "alone_m:f"), beneath)
    assert isinstance(built, Wrapper)
    assert built.raw is replacement
    assert built.retire() is None  # type: ignore[func-returns-value]


def test_a_wrapper_has_the_mark_of_its_gap_and_slot(module: ModuleType) -> None:
    built = _layer(replacement=lambda call, x: 10 * call(x)).build(
        Slot(module, "f", "alone_m:f"), f
    )
    mark = mark_of(built.raw)
    assert mark is not None
    assert (mark.gap, mark.target) == ("gap", "alone_m:f")
    assert built.raw(2) == 20
    built.retire()
    assert built.raw(2) == 2


def test_a_wrapped_cached_property_knows_its_name() -> None:
    raw = functools.cached_property(Descriptors.read)
    slot = Slot(Descriptors, "value", "m:Descriptors.value")
    built = _layer(replacement=lambda call, self: 10 * call(self)).build(slot, raw)
    assert type(built.raw) is functools.cached_property
    assert built.raw.attrname == "value"
    assert built.raw.func(Descriptors()) == 10


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda call: None, "p.gap.g returned None, which cannot be called"),
        (lambda call: lambda: 1, "what p.gap.g returns"),
    ],
)
def test_what_a_decorator_makes_is_looked_at(
    module: ModuleType, made: Any, said: str
) -> None:
    with pytest.raises(Exception, match=said):
        _layer("decorate", made).build(Slot(module, "f", "alone_m:f"), f)


# Where a patch goes


def test_a_name_that_was_imported_leads_home(module: ModuleType) -> None:
    module.f = f  # type: ignore[attr-defined]
    module.value = 3  # type: ignore[attr-defined]
    here = __name__
    upstreams = (here.partition(".")[0], "alone_m")
    imported = Slot(module, "f", "alone_m:f")
    found = home(imported, upstreams)
    assert (found.owner, found.name) == (sys.modules[here], "f")
    # It may be somebody else's, or no function, or a member of a class.
    assert home(imported, ("alone_m",)) is imported
    value = Slot(module, "value", "alone_m:value")
    assert home(value, upstreams) is value
    member = Slot(Descriptors, "read", f"{here}:Descriptors.read")
    assert home(member, upstreams) is member


def test_what_is_not_bound_where_it_says_is_nobodys(module: ModuleType) -> None:
    def local() -> None: ...

    def moved() -> None: ...

    moved.__module__, moved.__qualname__ = "alone_m", "moved"
    module.moved = f  # type: ignore[attr-defined]
    for value in (local, moved, 3, "text", None):
        assert is_borrowed(value, ()) is False
        assert choosing._definition(value) is None
    assert is_borrowed(f, ()) is True
    assert is_borrowed(f, (__name__.partition(".")[0],)) is False
    assert is_borrowed(len, ("alone_m",)) is True
    assert is_borrowed(dict, ("alone_m",)) is True


def test_why_a_target_is_waited_for_or_missing(world: World) -> None:
    world.upstream("def f(): ...", b="", c="def f(): ...")
    one = world.target

    def chosen(*targets: str, waits_for: str | None = None) -> Any:
        patch = Patch(
            target=tuple(map(one, targets)),
            kind="wrap",
            replacement="g",
            waits_for=waits_for and f"{world.up}.{waits_for}",
        )
        return choose(patch, frozenset())

    up = world.up
    assert chosen("a:f") == Waiting(one("a:f"), f"{up}.a is not imported yet")
    # Its source does not bind the name, so that the next candidate is waited for.
    assert chosen("b:f", "a:f") == Waiting(one("a:f"), f"{up}.a is not imported yet")
    assert chosen("b:f.g", "zz:f") == Missing(
        f"{up}.b does not define f.g; there is no module {up}.zz"
    )
    assert chosen("a:f", waits_for="c") == Waiting(
        one("a:f"), f"{up}.c is not imported yet"
    )
    world.import_("b")
    assert chosen("b:f", "a:f") == Waiting(one("a:f"), f"{up}.a is not imported yet")
    world.import_("a")
    assert chosen("a:f").target == one("a:f")
    assert chosen("b:f", "a:f").target == one("a:f")
    # The last one is handed on as it is; so is one that a patch adds.
    assert chosen("a:f2", "b:f").target == one("b:f")
    added = Patch(target=(one("a:new"), one("b:f")), kind="add", replacement="g")
    found = choose(added, frozenset())
    assert isinstance(found, Slot)
    assert found.target == one("a:new")


def test_a_module_that_is_half_imported_is_waited_for(world: World) -> None:
    world.upstream("def f(): ...\nimport UP.b", b="from ascend_shims import states")
    module = world.import_()
    target = world.target("a:f")
    patch = Patch(target=target, kind="wrap", replacement="g")
    module.__spec__._initializing = True
    assert choose(patch, frozenset()) == Waiting(
        target, f"{world.up}.a is still being imported"
    )
    assert isinstance(choose(patch, frozenset({f"{world.up}.a"})), Slot)
    module.__spec__._initializing = False
    assert isinstance(choose(patch, frozenset()), Slot)


# Standings


def test_a_target_that_came_past_the_hook(module: ModuleType) -> None:
    planned: Any = object()
    slot = Slot(module, "f", "alone_m:f")
    assert in_place(planned, slot, None) == PatchStanding(
        planned,
        State.LOST,
        "alone_m:f was loaded past our import hook; call apply() again",
        "alone_m:f",
    )


def test_a_target_with_a_foreign_patch_on_top(module: ModuleType) -> None:
    planned: Any = object()
    slot = Slot(module, "f", "alone_m:f")
    state = SlotState(slot, f, visible=g)
    module.f = g  # type: ignore[attr-defined]
    assert in_place(planned, slot, state) == PatchStanding(
        planned, State.APPLIED, "alone_m:f", "alone_m:f"
    )
    module.f = _wrapped(g)  # type: ignore[attr-defined]
    made = f"g of {__file__}"
    assert in_place(planned, slot, state) == PatchStanding(
        planned,
        State.BURIED,
        f"alone_m:f was patched on top of ours by {made}",
        "alone_m:f",
    )
    module.f = f  # type: ignore[attr-defined]
    assert in_place(planned, slot, state) == PatchStanding(
        planned,
        State.LOST,
        "somebody put upstream's own alone_m:f back; call apply() again",
        "alone_m:f",
    )
    state.spec = object()
    assert in_place(planned, slot, state) == PatchStanding(
        planned,
        State.LOST,
        "alone_m was reloaded; call apply() again",
        "alone_m:f",
    )


# References


@pytest.fixture
def references() -> References:
    made = References()
    made.skip = (__name__.partition(".")[0],)
    return made


def _all(values: list[Any], _ours: list[Any]) -> list[int]:
    """Somebody holds each, in more places than can be found."""
    return [99 for _ in values]


class Thing:
    pass


def test_a_method_bound_to_what_is_moved_goes_and_comes_back(
    module: ModuleType, references: References
) -> None:
    def first(self: Any) -> int:
        return 1

    def second(self: Any) -> int:
        return 2

    def third(self: Any) -> int:
        return 3

    thing = Thing()
    bound = MethodType(first, thing)
    module.bound, module.plain = bound, first  # type: ignore[attr-defined]
    references.queue([Move(first, second, first)])
    assert references.settle(_all) == []
    assert (module.bound.__func__, module.bound.__self__) == (second, thing)
    assert module.plain is second
    assert references.names == ["alone_m:bound", "alone_m:plain"]
    # Somebody takes one from there meanwhile, bound to something else.
    another = Thing()
    module.later = MethodType(second, another)  # type: ignore[attr-defined]
    references.queue([Move(second, third, first)])
    assert references.settle(_all) == []
    assert (module.later.__func__, module.later.__self__) == (third, another)
    assert module.plain is third
    references.queue([Move(third, first, first)])
    assert references.settle(_all) == []
    # The very objects that were there; of the one that came later its like.
    assert module.bound is bound
    assert module.plain is first
    assert (module.later.__func__, module.later.__self__) == (first, another)
    assert references.names == []
    assert len(references) == 0


def test_what_somebody_binds_anew_is_not_ours_any_more(
    module: ModuleType, references: References
) -> None:
    module.f = f  # type: ignore[attr-defined]
    slot = Slot(module, "f", "alone_m:f")
    references.queue([Move(f, g, f)])
    references.settle(_all)
    assert references.has_moved(slot)
    module.f = len  # type: ignore[attr-defined]
    assert references.names == []
    references.carried(slot, Move(len, print, abs))
    assert references._moved[slot.key].original is abs
    assert references._moved[slot.key].value is print
    references.carried(slot, Move(print, abs, abs))
    assert not references.has_moved(slot)


def test_what_is_pending_is_where_each_value_ends(references: References) -> None:
    a, b, c = object(), object(), object()
    references.queue([Move(a, b, a), Move(b, c, a)])
    pending = references.pending()
    assert {key: move.new for key, move in pending.items()} == {id(a): c, id(b): c}
    assert pending[id(a)].old is a
    references.queue([Move(c, a, a)])
    ends = {key: move.new for key, move in references.pending().items()}
    assert ends == {id(b): a, id(c): a}


VALUES = [object() for _ in range(4)]


@given(st.lists(st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES))))
def test_what_is_pending_is_what_following_all_moves_leads_to(
    pairs: list[tuple[object, object]],
) -> None:
    references = References()
    references.queue([Move(old, new, old) for old, new in pairs])
    expected = {}
    for value in VALUES:
        starts = [at for at, (old, _) in enumerate(pairs) if old is value]
        end = value
        for old, new in pairs[starts[-1] :] if starts else []:
            end = new if old is end else end
        if end is not value:
            expected[id(value)] = end
    assert {k: move.new for k, move in references.pending().items()} == expected
    assert all(id(move.old) == key for key, move in references.pending().items())


def test_what_refuses_to_follow_is_told_and_tried_again(
    module: ModuleType, references: References, monkeypatch: pytest.MonkeyPatch
) -> None:
    module.f = f  # type: ignore[attr-defined]
    wrapper = _stood(f)

    def refuse(_slot: Slot, _value: Any) -> None:
        raise RuntimeError("not now")

    with monkeypatch.context() as patched:
        patched.setattr(Slot, "write", refuse)
        references.queue([Move(f, wrapper, f)])
        (stuck,) = references.settle(_all)
        assert (stuck.text, stuck.ours) == ("alone_m:f (not now)", False)
    assert references.settle(_all) == []
    assert module.f is wrapper
    with monkeypatch.context() as patched:
        patched.setattr(Slot, "write", refuse)
        references.queue([Move(wrapper, f, f)])
        (stuck,) = references.settle(_all)
        assert (stuck.text, stuck.ours) == ("alone_m:f (not now)", True)
    assert references.settle(_all) == []
    assert module.f is f


# What patches need


@pytest.mark.parametrize("raised", ["ValueError('x')", "SystemExit(3)"])
def test_a_module_that_fails_is_reported_when_it_is_needed(
    world: World, raised: str
) -> None:
    world.upstream("def f(): ...", b="def f(): ...")
    world.gap("one", P("a:f"), code=f"raise {raised}").gap("two", P("b:f"))
    world.import_("a")
    world.import_("b")
    import_patches(world.plan())
    assert f"{world.package}.one" not in sys.modules
    assert f"{world.package}.two" in sys.modules


def test_nothing_is_imported_for_what_is_not_loaded(world: World) -> None:
    world.upstream("def f(): ...").gap("one", P("a:f"))
    import_patches(world.plan())
    assert f"{world.package}.one" not in sys.modules


# Who holds what


def _closure(held: Any) -> Callable[[], Any]:
    def closed() -> Any:
        return held

    return closed


def _default(held: Any) -> Callable[..., Any]:
    def defaulted(one: Any = held) -> Any:
        return one

    return defaulted


def _keyword(held: Any) -> Callable[..., Any]:
    def keyworded(*, one: Any = held) -> Any:
        return one

    return keyworded


def _annotated(held: Any) -> Callable[..., Any]:
    def annotated() -> None: ...

    annotated.__annotations__ = {"one": held}
    return annotated


def _attribute(held: Any) -> Callable[..., Any]:
    def attributed() -> None: ...

    attributed.one = held  # type: ignore[attr-defined]
    return attributed


class Owner:
    def __init__(self, held: Any) -> None:
        self.held = held


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


HERE = "USER"
HELD: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a name": (lambda one: one, "alone_m:there"),
    "a list": (lambda one: [one], "the list alone_m:there"),
    "a set": (lambda one: {one}, "the set alone_m:there"),
    "a tuple": (lambda one: (one,), "the tuple alone_m:there"),
    "a dict": (lambda one: {"k": one}, "alone_m:there['k']"),
    "a dict in a list": (lambda one: [{"k": one}], "'k' in the list alone_m:there"),
    "a list in a dict": (
        lambda one: {"k": [one]},
        "the list alone_m:there['k']",
    ),
    "a partial": (functools.partial, "a functools.partial alone_m:there"),
    "a method": (lambda one: MethodType(one, 3), "a bound method alone_m:there"),
    "a staticmethod": (staticmethod, "a staticmethod alone_m:there"),
    "a property": (property, "a property alone_m:there"),
    "a closure": (_closure, "the closure of HERE:_closure.<locals>.closed"),
    "a default": (_default, "a default of HERE:_default.<locals>.defaulted"),
    "a keyword": (_keyword, "a default of HERE:_keyword.<locals>.keyworded"),
    "an annotation": (
        _annotated,
        "an annotation of HERE:_annotated.<locals>.annotated",
    ),
    "an attribute of a function": (
        _attribute,
        "HERE:_attribute.<locals>.attributed.one",
    ),
    "an attribute": (Owner, "attribute held of an object of HERE.Owner"),
    "a slot": (Slotted, "an object of HERE.Slotted"),
    "a class": (
        lambda one: type("Held", (), {"one": one, "__module__": "alone_m"}),
        "alone_m:Held.one",
    ),
}


@pytest.mark.parametrize("name", HELD)
def test_who_holds_a_value_is_said_in_words(module: ModuleType, name: str) -> None:
    make, said = HELD[name]

    def value(self: Any = None) -> None: ...

    del value.__annotations__
    module.there = make(value)  # type: ignore[attr-defined]
    assert holders_of([value]) == [[said.replace("HERE", __name__)]]


def test_nothing_is_looked_for_where_nothing_is_asked() -> None:
    assert holders_of([]) == []


def test_each_value_has_its_own_holders(module: ModuleType) -> None:
    def one() -> None: ...

    def other() -> None: ...

    def nobody() -> None: ...

    module.one, module.others = one, [other, one]  # type: ignore[attr-defined]
    assert holders_of([one, other, nobody]) == [
        ["alone_m:one", "the list alone_m:others"],
        ["the list alone_m:others"],
        [],
    ]


def test_what_a_package_means_to_hold_is_left_out(module: ModuleType) -> None:
    def one() -> None: ...

    module.one = one  # type: ignore[attr-defined]
    module.owner = Owner(one)  # type: ignore[attr-defined]
    mine = __name__.partition(".")[0]
    assert holders_of([one], ("alone_m",)) == [
        [f"attribute held of an object of {__name__}.Owner"]
    ]
    assert holders_of([one], ("alone_m", mine)) == [[]]


def test_what_wraps_notes_is_for_reading(module: ModuleType) -> None:
    def one() -> None: ...

    def other() -> None: ...

    other.__wrapped__ = one  # type: ignore[attr-defined]
    module.other = other  # type: ignore[attr-defined]
    assert holders_of([one]) == [[]]


def test_what_lies_too_deep_is_said_without_a_place(module: ModuleType) -> None:
    def one() -> None: ...

    nested: Any = {"k": one}
    for _ in range(7):
        nested = [nested]
    module.nested = nested  # type: ignore[attr-defined]
    ((said,),) = holders_of([one])
    assert said.startswith("'k' in the list in the list")
    assert "alone_m" not in said


# The heap


def test_holders_of_holders_up_to_where_a_way_ends() -> None:
    class End(list[Any]):
        pass

    one = object()
    end = End([one])
    around = [end]
    inner = [one]
    outer = [inner]
    heap = Heap([one], ends=lambda holder: type(holder) is End)
    assert {id(h) for h in heap.holders(one)} >= {id(end), id(inner)}
    assert any(h is outer for h in heap.holders(inner))
    # Who holds what ends a way was not looked for.
    assert not any(h is around for h in heap.holders(end))
    assert heap.holders(object()) == []


def test_a_chain_is_followed_so_far_and_then_cut() -> None:
    one = object()
    chain: list[Any] = [one]
    links = [chain]
    for _ in range(9):
        chain = [chain]
        links.append(chain)
    # The test's own list of them is a holder of each, which ends its way.
    heap = Heap([one], ends=lambda holder: holder is links)
    assert [heap.is_cut(link) for link in links[:4]] == [False] * 4
    assert sum(heap.is_cut(link) for link in links) == 1
    assert not heap.is_cut(one)


# The table, by way of an engine


@pytest.fixture
def two(world: World) -> Iterator[World]:
    world.upstream("def f(x):\n    return x\n")
    world.gap("one", P("a:f")).gap("two", P("a:f", "plus_one"), after=("one",))
    yield world


def test_layers_on_both_sides_of_a_foreign_patch_are_one_again(two: World) -> None:
    a = two.import_()
    stock = a.f
    two.apply(only=["one"])
    ours = a.f
    foreign = _wrapped(a.f)
    a.f = foreign
    two.apply()
    assert a.f(3) == 31
    # It leaves, and takes what lay on it along.
    a.f = ours
    two.apply()
    assert two.states() == {"one": State.APPLIED, "two": State.APPLIED}
    assert a.f(3) == 31
    # Who kept our wrapper, as that one did, gets what is there now.
    assert foreign(3) == 31
    two.revert()
    assert a.f is stock


def test_a_gap_that_leaves_from_beneath_a_foreign_patch(two: World) -> None:
    a = two.import_()
    stock = a.f
    two.apply()
    ours = a.f
    foreign = _wrapped(a.f)
    a.f = foreign
    two.apply(only=["two"])
    assert a.f is foreign
    assert foreign(3) == 4
    two.apply(only=())
    assert foreign(3) == 3
    assert "keeps its layer" in two.reason("one") or two.state("one") is State.OFF
    a.f = ours
    two.apply(only=())
    assert a.f is stock


def test_a_fault_is_logged_with_its_state_and_reason(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.upstream("def f(x, y):\n    return x\n")
    world.gap("one", P("a:f", "narrow"), code="def narrow(call, x): ...\n")
    world.import_()
    with caplog.at_level(logging.WARNING, "ascend_shims"):
        world.apply()
    (record,) = caplog.records
    assert record.getMessage() == f"one: {State.BROKEN_CONTRACT}: {world.reason()}"
    assert world.state() is State.BROKEN_CONTRACT
    assert resolve(world.target("a:f")).read()(1, 2) == 1
