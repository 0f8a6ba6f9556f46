"""What an object consists of: named parts, and a text for what has none.

Every kind of object has one function that gives its parts, as two lists, names and
values, and one that gives its text. Both read raw: no descriptor, `__getattr__`,
`__eq__` or `__repr__` of anybody runs, and nothing is imported.
"""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import _thread
import collections
import functools
import gc
import logging
import sys
import threading
import types
import weakref
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from .names import NAMED, OWNED, code_mark, kind_name, name_of, said
from .raw import layout, mro, namespace

__all__ = ["FUNCTION", "Derived", "Kinds", "of_function"]

Parts = tuple[list[str], list[Any]]

_NONE: Parts = ([], [])


class Derived(NamedTuple):
    """Parts that were put together to be described, and are nobody's object."""

    kind: str
    labels: list[str]
    values: list[Any]


# What has parts.


def _members(one: Any) -> Parts:
    return layout(type(one)).read(one)


def _of_module(one: Any) -> Parts:
    held = namespace(one)
    return [*map(str, held)], [*held.values()]


def _of_class(one: Any) -> Parts:
    held = namespace(one)
    labels = [*map(str, held), "<mro>"]
    values = [*held.values(), mro(one)]
    if "_abc_impl" in held:
        registry = _abc._get_dump(one)[0]
        labels.append("<registered>")
        values.append(Derived("registered classes", *_of_set({r() for r in registry})))
    return labels, values


FUNCTION = (
    "__code__",
    "__defaults__",
    "__kwdefaults__",
    "__module__",
    "__name__",
    "__qualname__",
    "__doc__",
    "__closure__",
    "__dict__",
    # From 3.14 on they are made when they are asked for.
    *(() if sys.version_info >= (3, 14) else ("__annotations__",)),
)
"""The attributes that are the parts of a function, all of them read in C."""

of_function = attrgetter(*FUNCTION)


def _of_function(one: types.FunctionType) -> Parts:
    # A function gets an empty dictionary when it is asked for one.
    return [*FUNCTION], [
        None if type(v) is dict and not v else v for v in of_function(one)
    ]


def _of_cell(one: types.CellType) -> Parts:
    try:
        return ["cell_contents"], [one.cell_contents]
    except ValueError:
        return _NONE


def _of_dict(one: Any) -> Parts:
    keys = dict.keys(one)
    return _labels(keys), [*dict.values(one)]


def _of_proxy(one: types.MappingProxyType[Any, Any]) -> Parts:
    # What it stands before may be of any kind.
    inner = gc.get_referents(one)
    return ["mapping"], inner


def _of_list(one: Any) -> Parts:
    values = [*list.__iter__(one)]
    return [*map(str, range(len(values)))], values


def _of_tuple(one: Any) -> Parts:
    values = [*tuple.__iter__(one)]
    return [*map(str, range(len(values)))], values


def _of_deque(one: collections.deque[Any]) -> Parts:
    values = [*collections.deque.__iter__(one)]
    return [*map(str, range(len(values)))], values


def _of_set(one: Any) -> Parts:
    """In the order of what the elements are called: their own depends on addresses."""
    walk = set.__iter__ if issubclass(type(one), set) else frozenset.__iter__
    named = sorted(((name_of(each), each) for each in walk(one)), key=lambda p: p[0])
    count = collections.Counter(name for name, _ in named)
    labels: list[str] = []
    values: list[Any] = []
    for name, each in named:
        # Of several that are called alike one cannot tell which is which.
        labels.append(name)
        values.append(each if count[name] == 1 else name)
    return labels, values


def _of_method(one: types.MethodType) -> Parts:
    return ["__func__", "__self__"], [one.__func__, one.__self__]


def _of_wrapping(one: Any) -> Parts:
    return ["__func__"], [one.__func__]


def _of_property(one: Any) -> Parts:
    read = property.__dict__
    labels = ["fget", "fset", "fdel", "__doc__"]
    return labels, [read[label].__get__(one) for label in labels]


def _of_partial(one: Any) -> Parts:
    read = functools.partial.__dict__
    labels = ["func", "args", "keywords", "__dict__"]
    return labels, [read[label].__get__(one) for label in labels]


_TENSORS = ("torch.Tensor", "torch.nn.parameter.Parameter")
"""Exactly these: others may answer for themselves when they are asked."""


def _of_tensor(one: Any) -> Parts:
    labels, values = _members(one)
    return [*labels, "requires_grad"], [*values, one.requires_grad]


def _both(first: Callable[[Any], Parts]) -> Callable[[Any], Parts]:
    """The parts of a subclass of a built-in kind: what it holds, and attributes."""

    def parts(one: Any) -> Parts:
        labels, values = first(one)
        more, held = _members(one)
        return [*labels, *(f".{name}" for name in more)], [*values, *held]

    return parts


def _none(_one: Any) -> Parts:
    return _NONE


def _of_derived(one: Derived) -> Parts:
    return one.labels, one.values


def _labels(keys: Any) -> list[str]:
    names = [k if type(k) is str else f"[{name_of(k)}]" for k in keys]
    if len(set(names)) == len(names):
        return names
    seen: collections.Counter[str] = collections.Counter()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return labels


_PLAIN: tuple[type, ...] = (dict, list, tuple, set, frozenset, types.CellType)
_SIMPLE = frozenset(map(id, _PLAIN))

_CLOSED = (
    *NAMED,
    *OWNED,
    types.CodeType,
    types.FrameType,
    types.GeneratorType,
    types.CoroutineType,
    types.TracebackType,
    weakref.ref,
    weakref.ProxyType,
    weakref.CallableProxyType,
    threading.Thread,
    threading.local,
    _thread.LockType,
    _thread.RLock,
    logging.Logger,
    logging.LoggerAdapter,
    logging.Manager,
)
"""What is known by its name or kind alone. Loggers are described with the process."""

_OPEN: tuple[tuple[type, Callable[[Any], Parts]], ...] = (
    (types.FunctionType, _of_function),
    (types.CellType, _of_cell),
    (dict, _of_dict),
    (list, _of_list),
    (tuple, _of_tuple),
    (set, _of_set),
    (frozenset, _of_set),
    (collections.deque, _of_deque),
    (types.MappingProxyType, _of_proxy),
    (types.MethodType, _of_method),
    (staticmethod, _of_wrapping),
    (classmethod, _of_wrapping),
    (property, _of_property),
    (functools.partial, _of_partial),
)


class Kinds:
    """Says of each object what it consists of, for the packages `roots`."""

    def __init__(self, roots: tuple[str, ...]) -> None:
        self.roots = roots
        self._upstream = frozenset(roots)
        self._parts: dict[int, Callable[[Any], Parts]] = {id(Derived): _of_derived}
        self._kept: list[type] = []
        """The classes whose identity is a key there."""

    def is_upstream(self, name: Any) -> bool:
        return type(name) is str and name.partition(".")[0] in self._upstream

    def parts(self, one: Any) -> Parts:
        """Names and values of the parts of `one`."""
        kind = type(one)
        found = self._parts.get(id(kind))
        if found is None:
            found = self._parts[id(kind)] = self._choose(kind)
            self._kept.append(kind)
        return found(one)

    def _choose(self, kind: type) -> Callable[[Any], Parts]:
        if issubclass(kind, type):
            return self._of_class
        if issubclass(kind, types.ModuleType):
            return self._of_module
        if issubclass(kind, _CLOSED):
            return _none
        if kind_name(kind) in _TENSORS:
            return _of_tensor
        for base, parts in _OPEN:
            if kind is base:
                return parts
            if issubclass(kind, base):
                return _both(parts)
        return _members

    def is_empty(self, kind: type) -> bool:
        """Whether objects of a class can have no parts, now or later."""
        chosen = self._parts.get(id(kind))
        if chosen is not _members:
            return chosen is _none
        found = layout(kind)
        return found.dictionary is None and not found.members

    def _of_class(self, one: Any) -> Parts:
        if self.is_upstream(namespace(one).get("__module__")):
            return _of_class(one)
        return _NONE

    def _of_module(self, one: Any) -> Parts:
        if self.is_upstream(namespace(one).get("__name__")):
            return _of_module(one)
        return _NONE

    def text(self, one: Any) -> str:
        """What there is to say of `one` besides its parts, the same in each process."""
        kind = type(one)
        if kind is types.CodeType:
            return f"code {code_mark(one)}"
        if kind is types.FunctionType:
            return "function"
        if kind is Derived:
            return str(one.kind)
        if id(kind) in _SIMPLE:
            return kind.__name__
        if issubclass(kind, type):
            metaclass = "" if kind is type else f" of {kind_name(kind)}"
            return f"class {name_of(one)}{metaclass}"
        if issubclass(kind, types.ModuleType):
            return name_of(one)
        return f"{kind_name(kind)}{said(one)}"
