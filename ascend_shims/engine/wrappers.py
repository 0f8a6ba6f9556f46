"""Functions that stand in front of other functions and can step aside.

A wrapper looks like what it stands in front of: signature, names, coroutine or
generator nature, descriptor kind, pickling by reference. It can be retired:
from then on it calls straight through, also for those who kept a reference to
it. A plain function stays a plain function with nothing but a call inside, so
that `torch.compile` traces it; anything else that can be called goes through
`wrapt`.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing
from types import CellType, FunctionType
from typing import Any

import msgspec

from ..errors import ShimsError
from .nature import Nature, nature

__all__ = [
    "Mark",
    "NotWrappableError",
    "Wrapper",
    "calling",
    "foreign_mark",
    "lead",
    "mark_of",
    "peel",
    "same_descriptor",
    "stand_in_front",
]

_MARK = "__ascend_shims__"

_COMPILER_MARKS = ("_torchdynamo", "_torch_", "get_compiler_config", "__wrapped__")
"""Prefixes of what compilers leave on a function. It says something about that
very function; copied to a wrapper it makes them bypass the wrapper."""


class NotWrappableError(ShimsError):
    """A wrapper is asked for in front of something that cannot be called."""


class Mark(msgspec.Struct, frozen=True):
    """What a wrapper says of itself, also to another copy of this toolkit."""

    gap: str
    target: str
    toolkit: str
    """Version and file of the copy that made it."""
    revert: Callable[[str], None]
    """Has the copy that made it revert a gap."""
    wears: Callable[[], Any]
    """The object the mark was put on: `functools.wraps` copies attributes, so a
    foreign wrapper around ours wears our mark too, and this tells them apart."""

    def __reduce__(self) -> Any:
        # A function that is pickled by value takes its attributes along; elsewhere
        # it is nobody's wrapper.
        return type(None), ()


class Wrapper(msgspec.Struct, frozen=True):
    """A wrapper as a raw slot value, and the way to retire it."""

    raw: Any
    retire: Callable[[], None]


def peel(raw: Any) -> Any:
    """What a descriptor holds inside: the function that a wrapper stands before."""
    # Not isinstance: that asks an object of another kind for its `__class__`.
    kind = type(raw)
    if kind is FunctionType:  # Nearly all are.
        return raw
    if issubclass(kind, (staticmethod, classmethod)):
        return raw.__func__
    if issubclass(kind, property):
        return raw.fget
    if issubclass(kind, (functools.cached_property, functools.partialmethod)):
        return raw.func
    return raw


def same_descriptor(raw: Any, function: Any, owner: type, name: str) -> Any:
    """`function` in a descriptor of the kind that `raw` is."""
    if isinstance(raw, (staticmethod, classmethod)):
        return type(raw)(function)
    if isinstance(raw, property):
        return type(raw)(function, raw.fset, raw.fdel, raw.__doc__)
    if isinstance(raw, functools.cached_property):
        cached = type(raw)(function)
        cached.__set_name__(owner, name)
        return cached
    if isinstance(raw, functools.partialmethod):
        return type(raw)(function, *raw.args, **raw.keywords)
    return function


def _is_proxy(inner: Any) -> bool:
    """Whether this is one of `wrapt`'s: not imported, there are none."""
    wrapt = sys.modules.get("wrapt")
    return wrapt is not None and issubclass(type(inner), wrapt.FunctionWrapper)


def mark_of(raw: Any) -> Mark | None:
    """The mark on a raw slot value, if it is a wrapper of ours or of a copy of us."""
    inner = peel(raw)
    if type(inner) is FunctionType:
        mark = inner.__dict__.get(_MARK)
    elif _is_proxy(inner):
        mark = getattr(inner, "_self_mark", None)
    else:
        return None
    return mark if mark is not None and mark.wears() is inner else None


def foreign_mark(value: Any, gap: str, own: Callable[[str], None]) -> Mark | None:
    """The mark in a raw slot value of another copy of this toolkit, for this gap.

    `own` is what our own marks revert with.
    """
    seen = set[int]()
    while id(value) not in seen:
        seen.add(id(value))
        mark = mark_of(value)
        if mark is not None and mark.gap == gap and mark.revert != own:
            return mark
        value = getattr(peel(value), "__wrapped__", value)
    return None


def _plain(call: Callable[..., Any]) -> FunctionType:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            return call(*args, **kwargs)
        # Most calls have none, and are spared an empty dictionary: a tenth of a call.
        return call(*args)

    return wrapper  # type: ignore[return-value]


def _coroutine(call: Callable[..., Any]) -> FunctionType:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await call(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def _generator(call: Callable[..., Any]) -> FunctionType:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from call(*args, **kwargs))

    return wrapper  # type: ignore[return-value]


def _async_generator(call: Callable[..., Any]) -> FunctionType:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        # `yield from` does not exist here, so sends and throws go by hand.
        async with aclosing(call(*args, **kwargs)) as inner:
            step = inner.asend(None)
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001 - passed on inward
                    step = inner.athrow(error)
                else:
                    step = inner.asend(sent)

    return wrapper  # type: ignore[return-value]


_MAKERS = {
    Nature.PLAIN: _plain,
    Nature.COROUTINE: _coroutine,
    Nature.GENERATOR: _generator,
    Nature.ASYNC_GENERATOR: _async_generator,
}


def calling(call: Callable[..., Any], *, like: Any) -> FunctionType:
    """A function that calls `call` and is of the nature of `like`."""
    return _MAKERS[nature(like)](call)


def _dress(wrapper: FunctionType, function: Any) -> None:
    functools.update_wrapper(wrapper, function)
    for name in [n for n in wrapper.__dict__ if n.startswith(_COMPILER_MARKS)]:
        del wrapper.__dict__[name]
    wrapper.__dict__["__wrapped__"] = function


def _function(beneath: Any, call: Callable[..., Any]) -> FunctionType:
    wrapper = calling(call, like=beneath)
    _dress(wrapper, beneath)
    return wrapper


def lead(wrapper: Any, to: Callable[..., Any]) -> None:
    """Have a wrapper of ours call `to`, and nothing else, from now on."""
    if type(wrapper) is not FunctionType:
        wrapper._self_current[0] = to
        return
    # Through the cells, so that a call costs no check for being retired.
    closure: tuple[CellType, ...] = wrapper.__closure__ or ()
    cells = dict(zip(wrapper.__code__.co_freevars, closure, strict=True))
    cells["call"].cell_contents = to


def stand_in_front(
    beneath_raw: Any,
    call: Callable[..., Any],
    *,
    owner: Any,
    name: str,
    mark: Callable[[Callable[[], Any]], Mark],
) -> Wrapper:
    """A wrapper that calls `call` and otherwise looks like `beneath_raw`.

    `mark` makes the mark, given the way to the object that wears it. Raises
    `NotWrappableError` where `beneath_raw` cannot be called.
    """
    beneath = peel(beneath_raw)
    if isinstance(beneath, type) or not callable(beneath):
        raise NotWrappableError(
            f"{name} is a {type(beneath_raw).__name__}, which cannot be wrapped; "
            "use `kind: replace`, or patch its methods"
        )
    wrapper: Any
    if isinstance(beneath, FunctionType):
        wrapper = _function(beneath, call)
        wrapper.__dict__[_MARK] = mark(weakref.ref(wrapper))
    else:
        from .proxy import proxy_before

        wrapper = proxy_before(beneath, call)
        wrapper._self_mark = mark(weakref.ref(wrapper))
    raw = same_descriptor(beneath_raw, wrapper, owner, name)
    return Wrapper(raw, functools.partial(lead, wrapper, beneath))
