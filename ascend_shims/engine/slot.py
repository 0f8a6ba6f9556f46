"""Slots: the namespace and name behind a target, read and written raw.

Raw means `owner.__dict__`: no descriptor, metaclass or module `__getattr__` is
asked. A static method is read as the `staticmethod` object it is and goes back
as that object; an inherited method is simply absent from the subclass.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, TypeGuard

import msgspec

from ..errors import ShimsError

__all__ = [
    "ABSENT",
    "ImmutableOwnerError",
    "MissingTargetError",
    "Slot",
    "inherited",
    "is_class",
    "is_initialising",
    "is_module",
    "namespace",
    "resolve",
    "split",
]


class _Absent:
    """The value of a slot that holds nothing. `None` is a value like any other."""

    def __repr__(self) -> str:
        return "<absent>"


ABSENT = _Absent()

_MODULE_DICT: Any = vars(ModuleType)["__dict__"]
_CLASS_DICT: Any = vars(type)["__dict__"]

_IMMUTABLE_TYPE = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE


class MissingTargetError(ShimsError):
    """The place that a target names does not exist in the loaded upstream."""


class ImmutableOwnerError(ShimsError):
    """The namespace that a target lies in takes no writes."""


def namespace(owner: object) -> dict[str, Any]:
    """The live namespace of a module or class, without asking the object itself.

    Raises `TypeError` for anything that has none.
    """
    if is_class(owner):
        return _CLASS_DICT.__get__(owner)  # type: ignore[no-any-return]
    if issubclass(type(owner), ModuleType):
        # A subclass of modules may have made `__dict__` a property of its own.
        return _MODULE_DICT.__get__(owner)  # type: ignore[no-any-return]
    found = object.__getattribute__(owner, "__dict__")
    if not isinstance(found, dict):
        raise TypeError(f"{type(owner).__name__} object keeps no plain namespace")
    return found


class Slot(msgspec.Struct, frozen=True):
    """A name in a module or class."""

    owner: ModuleType | type
    name: str
    target: str
    """As the registry spells it."""

    @property
    def key(self) -> tuple[int, str]:
        return id(self.owner), self.name

    @property
    def module(self) -> str:
        return split(self.target)[0]

    def read(self) -> Any:
        """The raw value, or `ABSENT`."""
        return namespace(self.owner).get(self.name, ABSENT)

    def write(self, value: Any) -> None:
        """Bind the name to `value`, or delete it where `value` is `ABSENT`.

        Whatever Python raises when the owner refuses comes through.
        """
        if is_class(self.owner):
            if value is ABSENT:
                type.__delattr__(self.owner, self.name)
            else:
                type.__setattr__(self.owner, self.name, value)
        elif value is ABSENT:
            del namespace(self.owner)[self.name]
        else:
            namespace(self.owner)[self.name] = value

    def check_writable(self) -> None:
        """Raises `ImmutableOwnerError` where a write is bound to fail."""
        if is_class(self.owner) and _flags(self.owner) & _IMMUTABLE_TYPE:
            raise ImmutableOwnerError(
                f"{self.target}: {type.__repr__(self.owner)} is an immutable type; "
                "patch a subclass or the module that uses it"
            )


def is_class(one: object) -> TypeGuard[type]:
    # Not isinstance: that asks an object of another kind for its `__class__`.
    return issubclass(type(one), type)


def is_module(one: object) -> TypeGuard[ModuleType]:
    return issubclass(type(one), ModuleType)


def split(target: str) -> tuple[str, str]:
    """`package.module:Qual.name` as module and qualified name."""
    module, _, qualname = target.partition(":")
    return module, qualname


def is_initialising(module: ModuleType) -> bool:
    """Whether `module` is still executing its body."""
    spec = namespace(module).get("__spec__")
    return bool(getattr(spec, "_initializing", False))


def _flags(owner: type) -> int:
    return type.__dict__["__flags__"].__get__(owner)  # type: ignore[no-any-return]


def inherited(owner: type, name: str) -> Any:
    """The raw value that `owner` inherits under `name`, or `ABSENT`."""
    for base in type.__dict__["__mro__"].__get__(owner)[1:]:
        value = namespace(base).get(name, ABSENT)
        if value is not ABSENT:
            return value
    return ABSENT


def resolve(target: str) -> Slot:
    """The slot behind `target`, whose module must be loaded.

    The last name may be absent; everything before it must be there. Raises
    `MissingTargetError`.
    """
    module_name, qualname = split(target)
    module = sys.modules.get(module_name)
    if not is_module(module):
        raise MissingTargetError(f"{module_name} is not a loaded module")
    owner: ModuleType | type = module
    *path, name = qualname.split(".")
    for part in path:
        value = namespace(owner).get(part, ABSENT)
        if value is ABSENT and is_class(owner):
            value = inherited(owner, part)
        if not is_class(value):
            what = "does not exist" if value is ABSENT else "is not a class"
            raise MissingTargetError(f"{target}: {part} {what} in {module_name}")
        owner = value
    return Slot(owner, name, target)
