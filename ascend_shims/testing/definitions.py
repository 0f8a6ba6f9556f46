"""What counts as a definition, and what one is made of."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

from ..engine.slot import namespace
from ..engine.wrappers import mark_of

__all__ = ["defined_in", "functions_of", "inside", "is_definition", "is_ours"]

_CACHED = type(functools.lru_cache(len))

_DESCRIPTORS = (
    staticmethod,
    classmethod,
    property,
    functools.cached_property,
    functools.partialmethod,
    functools.partial,
)


def is_definition(value: Any) -> bool:
    """Whether a program defines this once: no counter, cache or setting."""
    kind = type(value)
    return (
        kind is FunctionType
        or kind is BuiltinFunctionType
        or issubclass(kind, type)
        # By their kinds, not by what they say of themselves: nothing of theirs runs.
        or issubclass(kind, _DESCRIPTORS)
        or issubclass(kind, _CACHED)
        or _is_proxy(kind)
    )


def _is_proxy(kind: type) -> bool:
    module = kind.__module__
    return type(module) is str and module.startswith(("wrapt.", "ascend_shims.engine"))


def is_ours(value: Any) -> bool:
    """Whether a value is a wrapper of this toolkit, or of another copy of it."""
    kind = type(value)
    if kind is FunctionType:
        # All are called so in their code. It spares a look at each one's attributes.
        return value.__code__.co_name == "wrapper" and mark_of(value) is not None
    if issubclass(kind, _DESCRIPTORS):
        held = inside(value)
        return held is not None and is_ours(held)
    return _is_proxy(kind) and mark_of(value) is not None


def defined_in(value: Any) -> str:
    """The module whose code made a value, whatever it says of itself."""
    while (held := inside(value)) is not None:
        value = held
    kind = type(value)
    if kind is FunctionType:
        # `functools.wraps` copies the name of the module, not its namespace.
        name = value.__globals__.get("__name__")
    elif issubclass(kind, type):
        name = namespace(value).get("__module__")
    elif kind is BuiltinFunctionType:
        name = value.__module__
    else:
        name = kind.__module__
    return name if type(name) is str else ""


def inside(value: Any) -> Any:
    """What a descriptor, a partial or a cache holds, None where this is none."""
    kind = type(value)
    if issubclass(kind, (staticmethod, classmethod)):
        return value.__func__
    if issubclass(kind, property):
        return value.fget
    if issubclass(
        kind, (functools.cached_property, functools.partialmethod, functools.partial)
    ):
        return value.func
    if issubclass(kind, _CACHED):
        return namespace(value).get("__wrapped__")
    return None


def functions_of(value: Any) -> Iterator[FunctionType]:
    """The functions that a definition is made of: within it, and beneath it."""
    if issubclass(type(value), property):
        for accessor in (value.fset, value.fdel):
            yield from functions_of(accessor)
    seen: set[int] = set()
    while value is not None and id(value) not in seen:
        seen.add(id(value))
        kind = type(value)
        if kind is not FunctionType:
            value = value.__wrapped__ if _is_proxy(kind) else inside(value)
            continue
        yield value
        # Who stands before another function has it in a closure.
        value = value.__dict__.get("__wrapped__") if value.__closure__ else None
