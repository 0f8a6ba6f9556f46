"""Whether a replacement can take every call that its target can take."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.engine import contract
from ascend_shims.engine.contract import (
    BrokenContractError,
    check_calls,
    check_nature,
)
from ascend_shims.states import State

from .world import P, World

TABLE: list[tuple[str, str, str | None]] = [
    # target, replacement, what is wrong
    ("a, b=1", "a, b=1", None),
    ("a, b=1", "a, b=2", None),
    ("a, b=1", "*args, **kwargs", None),
    ("a, b=1", "a, *args, **kwargs", None),
    ("a, b=1", "a, b=1, c=2", None),
    ("a, b=1", "a, b=1, *, c=2", None),
    ("self, a", "runner, a", None),
    ("cls, a", "kind, a", None),
    ("a, /, b", "x, b", None),
    ("a, *, k", "a, k", None),
    ("a, *, k=1", "a, *, k=None", None),
    ("*args, **kwargs", "*args, **kwargs", None),
    ("a, **kwargs", "a, k=1, **kwargs", None),
    ("a, b=1", "a, b", "requires parameter `b`, which callers may leave out"),
    ("a, *, k=1", "a, *, k", "requires parameter `k`, which callers may leave out"),
    ("a, b=1", "a", "does not take parameter `b` by position"),
    ("a, b, new", "a, b", "does not take parameter `new` by position"),
    ("a, *, new=1", "a", "does not take parameter `new`"),
    ("a, b", "a, b, c", "requires parameter `c`, which no caller passes"),
    ("a, b", "a, b, *, c", "requires parameter `c`, which no caller passes"),
    (
        "a, b",
        "b, a",
        "takes parameter `a` at another position: `b` stands in its place",
    ),
    ("a, x=0, b=1", "a, b=1, x=0", "takes parameter `x` at another position"),
    ("a, b", "a, c", "does not take parameter `b`: `c` stands in its place"),
    ("a, b", "a, b, /", "does not take parameter `a` by keyword"),
    ("a, b", "a, /, b, **kwargs", "does not take parameter `a` by keyword"),
    ("a, b=1", "a, *args", "does not take parameter `b` by keyword"),
    ("a, b=1", "a, *args, b=1", "does not take parameter `b` by position"),
    (
        "a, /, *, k",
        "k, **kwargs",
        "takes `a` for parameter `k`, which callers may pass",
    ),
    ("a, *rest", "a", "does not take further positions (`*rest`)"),
    ("a, **more", "a", "does not take further keywords (`**more`)"),
    ("a, *rest, k=1", "a, k=1, *rest", "takes one of `*rest` for parameter `k`"),
    ("a, *rest", "a, b=1, *rest", "takes one of `*rest` for parameter `b`"),
]


def function(parameters: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(f"def f({parameters}): return locals()", names)
    return names["f"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(("target", "replacement", "wrong"), TABLE)
def test_what_a_replacement_must_take(
    target: str, replacement: str, wrong: str | None
) -> None:
    if wrong is None:
        check_calls(function(replacement), function(target), skip=0, said="mine")
        return
    with pytest.raises(BrokenContractError) as caught:
        check_calls(function(replacement), function(target), skip=0, said="mine")
    spelled = inspect.signature(function(target))
    assert str(caught.value).startswith(f"mine {wrong}")
    assert str(caught.value).endswith(f"; upstream allows {spelled}")


@pytest.mark.parametrize(("target", "replacement", "wrong"), TABLE)
def test_a_wrapper_has_the_call_in_front(
    target: str, replacement: str, wrong: str | None
) -> None:
    wrapper = function(f"call, {replacement}")
    if wrong is None:
        check_calls(wrapper, function(target), skip=1, said="mine")
    else:
        with pytest.raises(BrokenContractError):
            check_calls(wrapper, function(target), skip=1, said="mine")


def test_a_name_that_the_wrapper_needs_for_itself_is_a_complaint() -> None:
    target = function("x, call=1")
    with pytest.raises(BrokenContractError, match="`call, /`"):
        check_calls(function("call, *args, **kwargs"), target, skip=1, said="mine")
    check_calls(function("call, /, *args, **kwargs"), target, skip=1, said="mine")
    check_calls(function("call, *args, **kwargs"), function("call, /"), skip=1, said="")


def test_what_has_no_signature_cannot_be_compared() -> None:
    check_calls(function("a"), min, skip=0, said="mine")
    check_calls(min, function("a"), skip=0, said="mine")


class _Callable:
    def __call__(self, a: int, *, b: int = 1) -> None:
        """Parameters of its own."""


def _with(function: Any, **attributes: Any) -> Any:
    vars(function).update(attributes)
    return function


def _circle() -> Any:
    one = function("a")
    return _with(one, __wrapped__=one)


class _Kind:
    def __init__(self, a: int) -> None:
        """Takes one."""

    def method(self, a: int, b: int = 1) -> None:
        """Bound, it takes two."""

    partial = functools.partialmethod(method, b=2)


@pytest.mark.parametrize(
    "one",
    [
        functools.partial(function("a, b, c=1"), 1),
        functools.wraps(function("a, /, b=1"))(function("*args")),
        functools.wraps(functools.partial(function("a, b"), 1))(function("*args")),
        _with(function("a"), __signature__=inspect.signature(function("x, y=1"))),
        functools.wraps(
            _with(function("a"), __signature__=inspect.signature(function("x, y=1")))
        )(function("*args")),
        _Kind(1).method,
        _Kind.method,
        _Kind.partial,
        _Kind(1).partial,
        _Kind,
        _Callable(),
        function("a, _b, /, c, d=1, *rest, e, f=2, **more"),
        len,
        min,
        _circle(),
    ],
)
def test_parameters_are_those_of_inspect(one: Any) -> None:
    try:
        parameters = inspect.signature(one).parameters.values()
    except ValueError:
        assert contract._parameters(one) is None
        return
    expected = [(p.name, p.kind, p.default is not p.empty) for p in parameters]
    told = contract._parameters(one)
    assert told is not None
    assert [(p.name, p.kind, p.optional) for p in told] == expected


NAMES = "abcd"


@st.composite
def signatures(draw: st.DrawFn) -> inspect.Signature:
    """Any signature over a few names."""
    names = draw(st.permutations(NAMES))[: draw(st.integers(0, 4))]
    kinds = sorted(
        draw(
            st.sampled_from(
                [
                    Parameter.POSITIONAL_ONLY,
                    Parameter.POSITIONAL_OR_KEYWORD,
                    Parameter.KEYWORD_ONLY,
                ]
            )
        )
        for _ in names
    )
    parameters = []
    optional = False
    for name, kind in zip(names, kinds, strict=True):
        by_keyword = kind is Parameter.KEYWORD_ONLY
        has_default = draw(st.booleans()) or (optional and not by_keyword)
        optional = optional or (has_default and not by_keyword)
        default = 0 if has_default else Parameter.empty
        parameters.append(Parameter(name, kind, default=default))
    if draw(st.booleans()):
        parameters.append(Parameter("rest", Parameter.VAR_POSITIONAL))
    if draw(st.booleans()):
        parameters.append(Parameter("more", Parameter.VAR_KEYWORD))
    parameters.sort(key=lambda p: p.kind)
    return inspect.Signature(parameters)


Call = tuple[int, tuple[str, ...]]
"""How many positions are given, and which keywords."""


@functools.lru_cache(maxsize=4)
def with_signature(signature: inspect.Signature) -> Callable[..., Any]:
    return function(str(signature)[1:-1])


def landed(signature: inspect.Signature, call: Call) -> dict[int, str] | None:
    """Where each value of a call ends up, by parameter; None where it fails."""
    positions, keywords = call
    values = {name: 10 + index for index, name in enumerate(keywords)}
    try:
        # Not `Signature.bind`: it misjudges a keyword that a nameless one is like.
        got = with_signature(signature)(*range(1, 1 + positions), **values)
    except TypeError:
        return None
    found = {value: name for name, value in got.items() if isinstance(value, int)}
    found.update(dict.fromkeys(got.get("rest", ()), "rest"))
    found.update(dict.fromkeys(got.get("more", {}).values(), "more"))
    return found


def calls(signature: inspect.Signature) -> Iterator[Call]:
    """Every form of call that a signature allows."""
    for positions in range(7):
        for count in range(len(NAMES) + 2):
            for keywords in itertools.combinations((*NAMES, "other"), count):
                if landed(signature, (positions, keywords)) is not None:
                    yield positions, keywords


def public(signature: inspect.Signature) -> set[str]:
    """The names by which something can be passed."""
    kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return {p.name for p in signature.parameters.values() if p.kind in kinds}


def fits(target: inspect.Signature, replacement: inspect.Signature, call: Call) -> bool:
    """Whether a call binds to the replacement, each value to the same name."""
    wanted, got = landed(target, call), landed(replacement, call)
    if wanted is None or got is None:
        return False
    names = public(target) & public(replacement)
    return all(
        got[value] == name for value, name in wanted.items() if value and name in names
    )


@settings(deadline=None)
@given(signatures(), signatures())
def test_what_passes_takes_every_call(
    target: inspect.Signature, replacement: inspect.Signature
) -> None:
    try:
        check_calls(
            with_signature(replacement), with_signature(target), skip=0, said="mine"
        )
    except BrokenContractError:
        return
    named = public(target)
    for call in calls(target):
        # What only `**more` takes may be a name that the replacement uses.
        if set(call[1]) <= named | ({*NAMES, "other"} - replacement.parameters.keys()):
            assert fits(target, replacement, call), call


@settings(deadline=None)
@given(signatures())
def test_what_the_code_tells_is_the_signature(signature: inspect.Signature) -> None:
    expected = [
        (p.name, p.kind, p.default is not p.empty)
        for p in signature.parameters.values()
    ]
    told = contract._parameters(with_signature(signature))
    assert told is not None
    assert [(p.name, p.kind, p.optional) for p in told] == expected


@settings(deadline=None)
@given(signatures())
def test_every_signature_takes_its_own_calls(signature: inspect.Signature) -> None:
    mine = with_signature(signature)
    check_calls(mine, with_signature(signature), skip=0, said="mine")


@settings(deadline=None)
@given(signatures(), signatures())
def test_what_is_refused_fails_at_some_call(
    target: inspect.Signature, replacement: inspect.Signature
) -> None:
    try:
        check_calls(
            with_signature(replacement), with_signature(target), skip=0, said="mine"
        )
    except BrokenContractError as error:
        if "takes one of" in str(error):
            return
        # What lands in `**more` is lost to a patch that looks for it by name.
        if "more" in replacement.parameters:
            return
        assert not all(fits(target, replacement, call) for call in calls(target)), error


NATURES = {
    "a plain function": "def f(): return 1",
    "a coroutine function": "async def f(): return 1",
    "a generator function": "def f(): yield 1",
    "an asynchronous generator function": "async def f(): yield 1",
}


@pytest.mark.parametrize("mine", NATURES)
@pytest.mark.parametrize("upstream", NATURES)
def test_natures_must_agree(mine: str, upstream: str) -> None:
    made: dict[str, Any] = {}
    other: dict[str, Any] = {}
    exec(NATURES[mine], made)
    exec(NATURES[upstream], other)
    if mine == upstream:
        check_nature(made["f"], other["f"], said="it")
        return
    with pytest.raises(
        BrokenContractError, match=f"it is {mine}, upstream's is {upstream}"
    ):
        check_nature(made["f"], other["f"], said="it")


@pytest.mark.parametrize("kind", ["wrap", "replace", "decorate"])
def test_a_replacement_against_an_old_signature_is_refused_before_any_write(
    world: World, kind: str
) -> None:
    """A replacement written against an old signature raises `TypeError` on the first
    call instead of at apply time."""
    world.upstream("def g(x): return x\ndef f(a, b, *, new=None): return a\n")
    code = {
        "wrap": "def mine(call, a, b): return call(a, b)\n",
        "replace": "def mine(a, b): return a\n",
        "decorate": "def mine(function): return lambda a, b: function(a, b)\n",
    }[kind]
    world.gap("one", P("a:g"), P("a:f", "mine", kind=kind), code=code)
    world.import_()
    before = world.snapshot()
    world.apply()
    assert world.state() is State.BROKEN_CONTRACT
    assert "does not take parameter `new`" in world.reason()
    assert "upstream allows (a, b, *, new=None)" in world.reason()
    assert before.held == world.snapshot().held


@pytest.mark.parametrize(
    ("relied", "missing"),
    [
        (("a:g", "calls"), False),
        (("a:C.m", "calls"), False),
        (("a:C.inherited", "overrides_method"), False),
        (("a:gone", "calls"), True),
        (("a:C.gone", "overrides_method"), True),
        (("a:Gone.m", "calls"), True),
        (("a:C.anything", "reads_attribute"), False),
        (("not_loaded:f", "calls"), False),
    ],
)
def test_what_a_patch_relies_on_must_be_there(
    world: World, relied: tuple[str, str], missing: bool
) -> None:
    world.upstream(
        """
        def f(x): return x
        def g(x): return x
        class B:
            def inherited(self): pass
        class C(B):
            def m(self): pass
        """
    )
    world.gap("one", P("a:f", relies_on=(relied,)))
    world.import_()
    world.apply()
    if not missing:
        assert world.state() is State.APPLIED
        return
    assert world.state() is State.BROKEN_CONTRACT
    assert f"times_ten relies on {world.target(relied[0])}" in world.reason()
    assert "which is gone" in world.reason()
