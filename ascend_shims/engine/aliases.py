"""Other references to a slot's value, and moving them along.

`from m import f` leaves a second reference to `f` behind that a write to `m.f`
does not change. When a slot's visible value changes, every such reference in
the namespace of a loaded module or class follows, found by identity in the
plain dictionaries: nothing is asked of the objects themselves, so no lazy
import fires.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MethodType, ModuleType
from typing import Any

from .slot import is_class, is_module, namespace

__all__ = ["Alias", "Move", "find", "rebindable"]

_SHARED = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    tuple,
    frozenset,
    type(Ellipsis),
    type(NotImplemented),
)
"""Values that the interpreter may share between unrelated names: the same `None`
elsewhere is not an alias."""


@dataclass(frozen=True)
class Move:
    """A value and what takes its place."""

    old: Any
    new: Any
    origin: Any
    """What would be there without us."""
    everywhere: bool = True
    """False where others may well hold `old` on their own account: then only the
    references that we had moved to it go back."""
    within: tuple[str, ...] = ()
    """The only packages whose references follow; none: all."""


@dataclass(frozen=True)
class Alias:
    """One reference in a namespace."""

    owner: ModuleType | type
    name: str
    held: Any
    """What is there: the old value, or a method bound to it."""
    move: Move

    def __str__(self) -> str:
        owner = self.owner
        values = namespace(owner)
        if is_class(owner):
            name = type.__dict__["__qualname__"].__get__(owner)
            return f"{values.get('__module__')}:{name}.{self.name}"
        return f"{values.get('__name__')}:{self.name}"


def rebindable(value: Any) -> bool:
    """Whether identity with `value` means being the same reference."""
    return not issubclass(type(value), _SHARED)


def _root(owner: ModuleType | type) -> str:
    """The top-level package that a namespace belongs to."""
    name = namespace(owner).get("__module__" if is_class(owner) else "__name__")
    return name.partition(".")[0] if type(name) is str else ""


def _modules(skip: tuple[str, ...]) -> Iterator[ModuleType]:
    seen: set[int] = set()
    for name, module in list(sys.modules.items()):
        # A module may stand in sys.modules under several names.
        if id(module) in seen or name.partition(".")[0] in skip:
            continue
        if is_module(module):
            seen.add(id(module))
            yield module


def _holders(
    items: list[tuple[str, Any]],
    owner: ModuleType | type,
    moves: dict[int, Move],
) -> Iterator[Alias]:
    for name, value in items:
        move = moves.get(id(value))
        if move is None and type(value) is MethodType:
            move = moves.get(id(value.__func__))
        if move is not None and (not move.within or _root(owner) in move.within):
            yield Alias(owner, name, value, move)


def find(
    moves: Iterable[Move],
    *,
    skip: tuple[str, ...] = (),
    also: Iterable[ModuleType | type] = (),
) -> list[Alias]:
    """Every reference to an old value in a loaded module's or class's namespace.

    `skip` names top-level packages to leave alone, `also` namespaces to look at
    although nothing may lead to them any more.
    """
    wanted = {id(move.old): move for move in moves if rebindable(move.old)}
    if not wanted:
        return []
    found: list[Alias] = []
    visited: set[int] = set()
    classes: list[type] = []

    def visit(owner: ModuleType | type) -> None:
        visited.add(id(owner))
        values = namespace(owner)
        # A few passes at C speed decide for most namespaces that there is nothing.
        held = list(values.values())
        types = list(map(type, held))
        # By their ids: a class may have a metaclass that hashes or compares.
        kinds = dict(zip(map(id, types), types, strict=True))
        if id(MethodType) in kinds or not wanted.keys().isdisjoint(map(id, held)):
            holders = _holders(list(values.items()), owner, wanted)
            found.extend(one for one in holders if _root(owner) not in skip)
        metaclasses = {key for key, kind in kinds.items() if issubclass(kind, type)}
        if metaclasses:
            classes.extend(value for value in held if id(type(value)) in metaclasses)

    for module in _modules(skip):
        visit(module)
    while classes:
        cls = classes.pop()
        if id(cls) not in visited:
            visit(cls)
    for owner in also:
        if id(owner) not in visited:
            visit(owner)
    return found
