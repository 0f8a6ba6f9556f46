"""Namespaces as they are at one moment, cheap enough to look at around each test.

`verify` proves that a process is pristine, and takes its time for it. Here the
question is only what has changed since a moment ago: a namespace whose entries are
the very same objects in the very same order is known by a comparison at C speed.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, TypeVar

from ..engine.slot import is_class, namespace
from ..engine.wrappers import mark_of

__all__ = ["Loaded", "Space", "carried", "defined_in", "is_definition", "is_ours"]

_DESCRIPTORS = (
    staticmethod,
    classmethod,
    property,
    functools.cached_property,
    functools.partialmethod,
    functools.partial,
)

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The entries of one module or class."""

    owner: ModuleType | type
    names: list[str]
    ids: list[int]
    held: dict[str, Any]
    """The entries that count. Held, so that identity means something; what a program
    changes as it runs is not kept alive."""

    @classmethod
    def of(cls, owner: ModuleType | type, counts: Callable[[Any], bool]) -> Space:
        values = dict(namespace(owner))
        held = {name: value for name, value in values.items() if counts(value)}
        return cls(owner, list(values), list(map(id, values.values())), held)

    @property
    def entries(self) -> dict[str, int]:
        return dict(zip(self.names, self.ids, strict=True))

    def is_current(self) -> bool:
        """Whether the namespace is still this."""
        values = namespace(self.owner)
        return list(map(id, values.values())) == self.ids and list(values) == self.names

    def carried(self, before: Space, after: Space) -> Space:
        """This with what became of `before` in `after`, name by name."""
        if self is before:
            return after
        entries = carried(self.entries, before.entries, after.entries)
        held = carried(self.held, before.held, after.held, operator.is_)
        return Space(self.owner, list(entries), list(entries.values()), held)


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A loaded module, and the classes that it defines."""

    module: ModuleType
    spaces: Mapping[str, Space]
    """By path: `module`, or `module:Class`."""

    @classmethod
    def of(cls, name: str, module: ModuleType, counts: Callable[[Any], bool]) -> Loaded:
        spaces: dict[str, Space] = {}
        seen: set[int] = set()
        waiting: list[tuple[str, Any]] = [(name, module)]
        while waiting:
            path, owner = waiting.pop()
            spaces[path] = space = Space.of(owner, counts)
            seen.add(id(owner))
            separator = "." if ":" in path else ":"
            for inner, own in _own_classes(space, name):
                if id(own) not in seen:
                    waiting.append((f"{path}{separator}{inner}", own))
        return cls(module, spaces)

    def is_current(self) -> bool:
        return all(space.is_current() for space in self.spaces.values())

    def carried(self, before: Loaded, after: Loaded) -> Loaded:
        """This with what became of `before` in `after`."""
        if self is before or before.module is not after.module:
            return after
        spaces = dict(self.spaces)
        for path, space in after.spaces.items():
            was, own = before.spaces.get(path), spaces.get(path)
            if was is None or own is None:
                spaces[path] = space
            elif was is not space:
                spaces[path] = own.carried(was, space)
        return Loaded(after.module, spaces)

    def holds(self, value: Any, *, besides: tuple[str, str]) -> bool:
        """Whether a value stands in this module, but for one path and name."""
        return any(
            held is value and (path, name) != besides
            for path, space in self.spaces.items()
            for name, held in space.held.items()
        )


def _own_classes(space: Space, module: str) -> Iterator[tuple[str, type]]:
    for name, value in space.held.items():
        if is_class(value) and namespace(value).get("__module__") == module:
            yield name, value


def carried(
    base: Mapping[_Key, Any],
    before: Mapping[_Key, Any],
    after: Mapping[_Key, Any],
    same: Callable[[Any, Any], bool] = operator.eq,
) -> dict[_Key, Any]:
    """`base` with what became of the values of `before` in `after`."""
    result = dict(base)
    for key in before.keys() - after.keys():
        result.pop(key, None)
    for key, value in after.items():
        if key not in before or not same(before[key], value):
            result[key] = value
    return result


def is_definition(value: Any) -> bool:
    """Whether a program defines this once: no counter, cache or setting."""
    kind = type(value)
    return (
        kind is FunctionType
        or kind is BuiltinFunctionType
        or issubclass(kind, type)
        # By their kinds, not by what they say of themselves: nothing of theirs runs.
        or issubclass(kind, _DESCRIPTORS)
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
        inner = _inside(value)
        return inner is not None and is_ours(inner)
    return _is_proxy(kind) and mark_of(value) is not None


def defined_in(value: Any) -> str:
    """The module whose code made a value, whatever it says of itself."""
    while (inner := _inside(value)) is not None:
        value = inner
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


def _inside(value: Any) -> Any:
    """What a descriptor or a partial holds, None where this is neither."""
    kind = type(value)
    if issubclass(kind, (staticmethod, classmethod)):
        return value.__func__
    if issubclass(kind, property):
        return value.fget
    if issubclass(
        kind, (functools.cached_property, functools.partialmethod, functools.partial)
    ):
        return value.func
    return None
