"""Why a gap is not in force, to the letter: a person acts on these sentences."""

from __future__ import annotations

import pytest

from ascend_shims.states import State

from .world import P, World

UPSTREAM = """
    LIMIT = 3
    def f(x=1): return x
    def g(x, /, y=1, *, z=2): return x
    def many(*xs, **ys): return xs
    async def later(x=1): return x
    def each(x=1): yield x
    async def each_later(x=1): yield x
    class Plain:
        def m(self, x=1): return x
        size = 3
    class Bare: pass
    class Base: pass
    class A(Base): pass
    class B(Base): pass
    class C(Base): pass
    class D(Base): pass
"""
SERVING = UPSTREAM + "    def __getattr__(name): raise AttributeError(name)\n"
WHOLE = ": a swapped class breaks isinstance, pickling and field types. "
SWAP = f"{WHOLE}Patch its methods, or say `swap_is_safe` and why"

BROKEN: dict[str, tuple[P, str, str]] = {
    # A patch, the code of its gap, and why it is not applied.
    "add what exists": (
        P("a:f", kind="add"),
        "",
        "UP.a:f exists upstream; `kind: add` is for what does not",
    ),
    "wrap a class": (
        P("a:Plain"),
        "",
        "UP.a:Plain is a class, which cannot be wrapped; patch its methods",
    ),
    "swap a class": (
        P("a:Plain", "Mine", kind="replace"),
        "class Mine: pass",
        f"UP.a:Plain is a class{SWAP}",
    ),
    "swap a class with heirs": (
        P("a:Base", "Mine", kind="replace"),
        "class Mine: pass",
        f"UP.a:Base is a class; it has subclasses (A, B, C){SWAP}",
    ),
    "no such replacement": (
        P("a:f", "gone"),
        "",
        "PP.one has no gone, which the registry names as the replacement for UP.a:f",
    ),
    "a value for a function": (
        P("a:f", "FIVE", kind="replace"),
        "FIVE = 5",
        "PP.one.FIVE is not callable, UP.a:f is",
    ),
    "a value is wrapped": (
        P("a:LIMIT"),
        "",
        "UP.a:LIMIT is of type int, which cannot be called; use `kind: replace`",
    ),
    "decorates into nothing": (
        P("a:f", "mine", kind="decorate"),
        "def mine(call): return 5",
        "PP.one.mine returned 5, which cannot be called; `kind: decorate` returns "
        "the changed function",
    ),
    "decorates into less": (
        P("a:f", "mine", kind="decorate"),
        "def mine(call): return lambda: 5",
        "what PP.one.mine returns does not take parameter `x` by position; upstream "
        "allows (x=1)",
    ),
    "a new class construction": (
        P("a:Bare.__new__", "mine", kind="replace"),
        "def mine(cls): return object.__new__(cls)",
        "UP.a:Bare.__new__: after its removal Python would still take the class for "
        "one with a `__new__`, and refuse arguments; patch `__init__`",
    ),
    "what it relies on is gone": (
        P("a:f", relies_on=(("a:nothing", "calls"),)),
        "",
        "times_ten relies on UP.a:nothing (calls), which is gone",
    ),
}
MISSING: dict[str, tuple[str, P, str]] = {
    # Upstream, a patch, and why it has nowhere to go.
    "a name": (UPSTREAM, P("a:no"), "UP.a:no does not exist in the loaded upstream"),
    "a name that may be served": (
        SERVING,
        P("a:no"),
        "UP.a:no is no binding of the module (its __getattr__ may serve the name); "
        "patch the place where it is defined",
    ),
    "a method": (
        SERVING,
        P("a:Plain.no"),
        "UP.a:Plain.no does not exist in the loaded upstream",
    ),
    "a class": (UPSTREAM, P("a:No.m"), "UP.a:No.m: No does not exist in UP.a"),
    "a way through a value": (
        UPSTREAM,
        P("a:LIMIT.real"),
        "UP.a:LIMIT.real: LIMIT is not a class in UP.a",
    ),
    "a module": (UPSTREAM, P("no:f"), "there is no module UP.no"),
    "all of some": (
        UPSTREAM,
        P(("no:f", "a:no", "no:g")),
        "there is no module UP.no; UP.a:no does not exist; there is no module UP.no",
    ),
    "the last of some": (
        UPSTREAM,
        P(("no:f", "a:none")),
        "UP.a:none does not exist in the loaded upstream",
    ),
}
FAILED: dict[str, tuple[P, str, str]] = {
    "its code raises": (
        P("a:f", "mine", kind="decorate"),
        "def mine(call): raise KeyError('why')",
        "KeyError: 'why'",
    ),
    "its module raises": (P("a:f"), "raise OSError('why')", "OSError: why"),
    "its module exits": (P("a:f"), "raise SystemExit(3)", "SystemExit: 3"),
}
CALLS: dict[str, tuple[str, str, str]] = {
    # A target, the parameters of a replacement for it, and what is wrong with them.
    "none": ("f", "", "does not take parameter `x` by position"),
    "another name": (
        "f",
        "y=1",
        "does not take parameter `x`: `y` stands in its place",
    ),
    "positional only": ("f", "x=1, /", "does not take parameter `x` by keyword"),
    "rest only": ("f", "*xs", "does not take parameter `x` by keyword"),
    "rest and the name": (
        "f",
        "*xs, x=1",
        "does not take parameter `x` by position",
    ),
    "must be passed": (
        "f",
        "x",
        "requires parameter `x`, which callers may leave out",
    ),
    "one more": ("f", "x=1, *, y", "requires parameter `y`, which no caller passes"),
    "the other way round": (
        "g",
        "x, z=2, y=1",
        "takes parameter `y` at another position: `z` stands in its place",
    ),
    "a keyword less": ("g", "x, y=1", "does not take parameter `z`"),
    "a clash": (
        "g",
        "y, x=1, *, z=2",
        "takes `x` for parameter `y`, which callers may pass, too",
    ),
    "no rest": ("many", "**ys", "does not take further positions (`*xs`)"),
    "a parameter for the rest": (
        "many",
        "x=1, *xs, **ys",
        "takes one of `*xs` for parameter `x`",
    ),
    "no further keywords": (
        "many",
        "*xs",
        "does not take further keywords (`**ys`)",
    ),
}
ALLOWS = {"f": "(x=1)", "g": "(x, /, y=1, *, z=2)", "many": "(*xs, **ys)"}
NATURES = {
    "f": "a plain function",
    "later": "a coroutine function",
    "each": "a generator function",
    "each_later": "an asynchronous generator function",
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_contract(world: World, case: str) -> None:
    patch, code, reason = BROKEN[case]
    world.upstream(UPSTREAM).gap("one", patch, code=code).import_()
    world.apply()
    assert world.state() is State.BROKEN_CONTRACT
    assert world.unspelled(world.reason()) == reason


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_target(world: World, case: str) -> None:
    upstream, patch, reason = MISSING[case]
    world.upstream(upstream).gap("one", patch).import_()
    world.apply()
    assert world.state() is State.MISSING_TARGET
    assert world.unspelled(world.reason()) == reason


@pytest.mark.parametrize("case", FAILED)
def test_a_failure(world: World, case: str) -> None:
    patch, code, reason = FAILED[case]
    world.upstream(UPSTREAM).gap("one", patch, code=code).import_()
    world.apply()
    assert (world.state(), world.unspelled(world.reason())) == (State.FAILED, reason)


@pytest.mark.parametrize("case", CALLS)
def test_calls_that_cannot_be_bound(world: World, case: str) -> None:
    name, parameters, complaint = CALLS[case]
    code = f"def mine({parameters}): return 5"
    patch = P(f"a:{name}", "mine", kind="replace")
    world.upstream(UPSTREAM).gap("one", patch, code=code).import_()
    world.apply()
    assert world.state() is State.BROKEN_CONTRACT
    said = f"PP.one.mine {complaint}; upstream allows {ALLOWS[name]}"
    assert world.unspelled(world.reason()) == said


@pytest.mark.parametrize("theirs", NATURES)
@pytest.mark.parametrize("mine", NATURES)
def test_one_returns_and_the_other_is_awaited(
    world: World, theirs: str, mine: str
) -> None:
    world.upstream(UPSTREAM)
    world.gap("one", P(f"a:{theirs}", mine, kind="replace"), code=UPSTREAM)
    world.import_()
    world.apply()
    if mine == theirs:
        assert world.state() is State.APPLIED
        return
    assert world.state() is State.BROKEN_CONTRACT
    assert world.unspelled(world.reason()) == (
        f"PP.one.{mine} is {NATURES[mine]}, upstream's is {NATURES[theirs]}"
    )
