"""Objects read raw: nothing of theirs runs while they are looked at."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

__all__ = [
    "gap_of",
    "unwrapped",
    "is_callable",
    "is_class",
    "is_code",
    "is_function",
    "is_module",
    "is_generated",
    "is_one_of",
    "layers_of",
    "mro",
    "namespace",
    "top",
    "made_by",
]

_MARK = "__ascend_shims__"
_LAYERS = 24
_PROXIES = ("BaseObjectProxy", "ObjectProxy", "FunctionWrapper", "BoundFunctionWrapper")


def namespace(one: Any) -> Any:
    kind: Any = types.ModuleType if is_module(one) else type
    return kind.__dict__["__dict__"].__get__(one)


def is_module(one: Any) -> bool:
    return issubclass(type(one), types.ModuleType)


def is_class(one: Any) -> bool:
    return issubclass(type(one), type)


def top(module: str) -> str:
    return module.partition(".")[0]


def is_function(one: Any) -> bool:
    return type(one) is types.FunctionType


_WRAPPING = (staticmethod, classmethod)
_LAZY = (functools.cached_property, functools.partialmethod, functools.partial)


def unwrapped(raw: Any) -> Any:
    """What a descriptor holds inside."""
    # Of its type: an object may say of itself that it is of any class.
    kind = type(raw)
    if issubclass(kind, _WRAPPING):
        return raw.__func__
    if issubclass(kind, property):
        return raw.fget
    if issubclass(kind, _LAZY):
        return raw.func
    if kind is types.MethodType:
        return raw.__func__
    return raw


def is_code(value: Any) -> bool:
    """Whether it is something that is called: all else changes as programs run."""
    inner = unwrapped(value)
    if is_function(inner) or is_class(inner) or inner is not value:
        return True
    return gap_of(value) != "" or wraps(value) is not None


def is_callable(value: Any) -> bool:
    """Whether it is an instance of a class that is made to be called."""
    return any("__call__" in namespace(one) for one in mro(type(value)))


def wraps(value: Any) -> Any:
    """What an object says that it stands before; raw."""
    held = attributes(value)
    found = held.get("__wrapped__")
    if found is None and is_proxy(value):
        found = object.__getattribute__(value, "__wrapped__")
    return found


def is_proxy(value: Any) -> bool:
    """Whether this is one of `wrapt`'s: where that is not imported, there are none."""
    wrapt = sys.modules.get("wrapt")
    if not is_module(wrapt):
        return False
    kinds = (namespace(wrapt).get(name) for name in _PROXIES)
    return issubclass(type(value), tuple(kind for kind in kinds if is_class(kind)))


def attributes(value: Any) -> Any:
    """Its own dictionary, without asking it."""
    if is_class(value) or is_module(value):
        return namespace(value)
    if is_proxy(value):
        return {}
    try:
        held = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return {}
    return held if type(held) is dict else {}


def layers_of(value: Any) -> Iterator[Any]:
    """The functions that it consists of, the outermost first."""
    seen: set[int] = set()
    left = [value]
    while left and len(seen) < _LAYERS:
        one = left.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = unwrapped(one)
        if inner is not one:
            left.append(inner)
        wrapped = wraps(one)
        if wrapped is not None:
            left.append(wrapped)
        if is_function(one):
            for cell in one.__closure__ or ():
                try:
                    held = cell.cell_contents
                except ValueError:
                    continue
                if is_function(held) or is_function(unwrapped(held)):
                    left.append(held)
        elif not is_class(one):
            left += [each for each in attributes(one).values() if is_function(each)]


def gap_of(value: Any) -> str:
    """The gap that a mark of ours on it names."""
    inner = unwrapped(value)
    if is_function(inner):
        mark = inner.__dict__.get(_MARK)
    elif is_proxy(inner):
        mark = getattr(inner, "_self_mark", None)
    else:
        return ""
    wears = getattr(mark, "wears", None)
    if mark is None or not callable(wears) or wears() is not inner:
        return ""
    return str(getattr(mark, "gap", ""))


def made_by(value: Any) -> str:
    """The module whose code it is: what a wrapper copied from its target is no sign."""
    inner = unwrapped(value)
    if is_proxy(inner):
        # Not `wrapt`, but whoever gave it something to call.
        inner = unwrapped(getattr(inner, "_self_wrapper", None))
    if is_function(inner):
        name = inner.__globals__.get("__name__")
        made = isinstance(name, str) and name.startswith("namedtuple_")
        return name if isinstance(name, str) and not made else ""
    if is_class(inner):
        name = namespace(inner).get("__module__")
        return name if isinstance(name, str) else ""
    if is_module(inner):
        return str(namespace(inner).get("__name__", ""))
    if isinstance(inner, types.BuiltinFunctionType):
        return str(inner.__module__ or "")
    name = namespace(type(inner)).get("__module__")
    return name if isinstance(name, str) else ""


def is_generated(member: Any) -> bool:
    """Made by the interpreter or by text that was compiled at run time."""
    inner = unwrapped(member)
    return not is_function(inner) or inner.__code__.co_filename.startswith("<")


def is_one_of(code: types.CodeType, codes: list[types.CodeType]) -> bool:
    return any(same(code, one) for one in codes)


_COMPARED = (
    "co_code",
    "co_names",
    "co_varnames",
    "co_freevars",
    "co_cellvars",
    "co_flags",
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_firstlineno",
)


def same(one: types.CodeType, other: types.CodeType) -> bool:
    if any(getattr(one, name) != getattr(other, name) for name in _COMPARED):
        return False
    pairs = zip(one.co_consts, other.co_consts, strict=False)
    return len(one.co_consts) == len(other.co_consts) and all(
        same_constant(*pair) for pair in pairs
    )


def same_constant(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, types.CodeType):
        return same(one, other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same_constant, one, other))
    # Not a number is unlike itself, and -0.0 like 0.0.
    return (
        repr(one) == repr(other)
        if isinstance(one, (float, complex))
        else bool(one == other)
    )


def mro(cls: Any) -> tuple[Any, ...]:
    found: tuple[Any, ...] = type.__dict__["__mro__"].__get__(cls)
    return found
