"""Namespaces as they are at one moment, cheap enough to look at around each test.

`verify` proves that a process is pristine, and takes its time for it. Here the
question is only what has changed since a moment ago: a namespace whose entries are
the very same objects in the very same order is known by a comparison at C speed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

from ..engine.slot import is_class, namespace
from .definitions import is_ours
from .insides import Insides
from .layered import Layered, layered, same

__all__ = ["Loaded", "Space", "carried"]

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
    wrappers: dict[str, Layered]
    """Those of them that are ours, by what they do."""
    insides: Insides

    @classmethod
    def of(cls, owner: ModuleType | type, counts: Callable[[Any], bool]) -> Space:
        values = dict(namespace(owner))
        held = {name: value for name, value in values.items() if counts(value)}
        ours = {name: layered(value) for name, value in held.items() if is_ours(value)}
        ids = list(map(id, values.values()))
        return cls(owner, list(values), ids, held, ours, Insides.of(owner, held))

    @property
    def entries(self) -> dict[str, int]:
        return dict(zip(self.names, self.ids, strict=True))

    def is_current(self) -> bool:
        """Whether the namespace is still this."""
        values = namespace(self.owner)
        return (
            list(map(id, values.values())) == self.ids
            and list(values) == self.names
            and self.insides.is_current(self.owner)
            and all(same(layered(self.held[n]), w) for n, w in self.wrappers.items())
        )

    def does_as(self, other: Space, name: str) -> bool:
        """Whether a name has wrappers of ours in both, which do the same."""
        return same(self.wrappers.get(name), other.wrappers.get(name))

    def has_stepped_aside(self, since: Space, name: str) -> bool:
        """Whether a name has the wrapper that it had, which did something then."""
        return (
            name in self.wrappers
            and self.held[name] is since.held.get(name)
            and not self.does_as(since, name)
        )

    def carried(self, before: Space, after: Space) -> Space:
        """This with what became of `before` in `after`, name by name."""
        if self is before:
            return after
        entries = carried(self.entries, before.entries, after.entries)
        held = carried(self.held, before.held, after.held, operator.is_)
        return Space(
            self.owner,
            list(entries),
            list(entries.values()),
            held,
            carried(self.wrappers, before.wrappers, after.wrappers, same),
            self.insides.carried(before.insides, after.insides),
        )


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
    is_same: Callable[[Any, Any], bool] = operator.eq,
) -> dict[_Key, Any]:
    """`base` with what became of the values of `before` in `after`."""
    result = dict(base)
    for key in before.keys() - after.keys():
        result.pop(key, None)
    for key, value in after.items():
        if key not in before or not is_same(before[key], value):
            result[key] = value
    return result
