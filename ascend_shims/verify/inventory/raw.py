"""Reading objects without asking them: no code of theirs runs.

`engine.slot` knows the same of namespaces; this package cannot use it.
"""

from __future__ import annotations

from types import (
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

__all__ = ["Layout", "is_class", "is_module", "layout", "mro", "namespace"]

_CLASS_DICT: Any = type.__dict__["__dict__"]
_MODULE_DICT: Any = type.__dict__["__dict__"].__get__(ModuleType)["__dict__"]
_MRO: Any = type.__dict__["__mro__"]


def is_class(one: object) -> bool:
    # Not isinstance: that asks an object of another kind for its `__class__`.
    return issubclass(type(one), type)


def is_module(one: object) -> bool:
    return issubclass(type(one), ModuleType)


def namespace(owner: Any) -> Any:
    """The live namespace of a module or class."""
    getter = _CLASS_DICT if is_class(owner) else _MODULE_DICT
    return getter.__get__(owner)


def mro(owner: type) -> tuple[type, ...]:
    return _MRO.__get__(owner)  # type: ignore[no-any-return]


_OFFSETS = ("__vectorcalloffset__", "__dictoffset__", "__weaklistoffset__")
"""Members by which C code tells where something lies."""


class Layout:
    """How to read the attributes of the objects of one class."""

    __slots__ = ("dictionary", "members")

    def __init__(self, kind: type) -> None:
        self.dictionary: Any = None
        """Python's own descriptor of their `__dict__`, if they have one."""
        self.members: list[tuple[str, Any]] = []
        """Their slots, and fields of the kind in a class that is written in C."""
        for base in mro(kind):
            for name, value in _CLASS_DICT.__get__(base).items():
                if type(value) is MemberDescriptorType and name not in _OFFSETS:
                    self.members.append((name, value))
                elif name == "__dict__" and type(value) is GetSetDescriptorType:
                    self.dictionary = self.dictionary or value

    def read(self, one: Any) -> tuple[list[str], list[Any]]:
        """Names and values, without a default for what is not set."""
        labels: list[str] = []
        values: list[Any] = []
        if self.dictionary is not None:
            held = self.dictionary.__get__(one)
            if type(held) is dict:
                labels.extend(map(str, held))
                values.extend(held.values())
        for name, member in self.members:
            try:
                value = member.__get__(one)
            except AttributeError:
                continue
            labels.append(name)
            values.append(value)
        return labels, values


_layouts: dict[int, tuple[type, Layout]] = {}
"""By identity: a class may have a metaclass that is asked for its hash."""


def layout(kind: type) -> Layout:
    """The layout of a class, which it keeps for good."""
    found = _layouts.get(id(kind))
    if found is None:
        found = _layouts[id(kind)] = kind, Layout(kind)
    return found[1]
