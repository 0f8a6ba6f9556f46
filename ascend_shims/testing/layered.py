"""What wrappers of shims do, so that two of them can be told to do the same.

When a scope ends in which shims were reverted, what was applied around it is applied
again: with new wrappers, which stand for the same patches over the same function.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from ..engine.wrappers import mark_of, peel
from .definitions import is_ours

__all__ = ["Layered", "layered", "same"]

Layered = tuple[Any, ...]
"""What a wrapper is made of. Two do the same if all these are the very same objects.

Taken while the wrapper is in place: it is led elsewhere when it steps aside."""


def layered(value: Any) -> Layered:
    """Of a wrapper of ours, from the top layer to the function beneath."""
    return tuple(_parts(value))


def same(one: Layered | None, other: Layered | None) -> bool:
    """Whether two wrappers do the same. What is no wrapper has nothing to compare."""
    return (
        one is not None
        and other is not None
        and len(one) == len(other)
        and all(map(operator.is_, one, other))
    )


def _parts(value: Any) -> Iterator[Any]:
    while is_ours(value) or _is_stand_in(peel(value)):
        yield type(value)
        if issubclass(type(value), property):
            yield from (value.fset, value.fdel)
        mark, inner = mark_of(value), peel(value)
        if mark is not None:
            yield from map(sys.intern, (mark.gap, mark.target, mark.toolkit))
        yield from _called(inner)
        value = inner.__wrapped__
    yield value


def _is_stand_in(value: Any) -> bool:
    """Whether this is the engine's own way to an inherited method."""
    made_in = value.__globals__.get("__name__") if type(value) is FunctionType else None
    return type(made_in) is str and made_in.startswith("ascend_shims.engine.")


def _called(wrapper: Any) -> Iterator[Any]:
    """What a wrapper calls: its code, and what that finds in its closure."""
    if type(wrapper) is not FunctionType:
        yield from _essence(wrapper._self_current[0])
        return
    yield wrapper.__code__
    for cell in wrapper.__closure__ or ():
        yield from _essence(cell.cell_contents)


def _essence(value: Any) -> Iterator[Any]:
    """What stays the same of something that is made anew for each wrapper."""
    if type(value) is functools.partial:
        for part in (value.func, *value.args):
            yield from _essence(part)
    elif type(value) is FunctionType:
        yield value.__code__
    else:
        yield sys.intern(value) if type(value) is str else value
