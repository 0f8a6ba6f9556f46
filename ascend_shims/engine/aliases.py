"""Other references to a slot's value, and moving them along.

`from m import f` leaves a second reference to `f` behind that a write to `m.f`
does not change. When a slot's visible value changes, every such reference in
the namespace of a class or loaded module follows, found by identity in the
plain dictionaries: nothing is asked of the objects themselves, so no lazy
import fires.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import MethodType, ModuleType
from typing import Any

import msgspec

from .slot import MissingTargetError, is_class, is_module, namespace, resolve

__all__ = ["Alias", "Move", "find", "rebindable", "unfound"]

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


class Move(msgspec.Struct, frozen=True):
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


class Alias(msgspec.Struct, frozen=True):
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


def _modules(among: tuple[str, ...] | None = None) -> Iterator[ModuleType]:
    """All that are loaded; `among`: under names in these packages."""
    seen: set[int] = set()
    loaded = list(sys.modules.items())
    if among is not None:
        beneath = tuple(f"{package}." for package in among)
        loaded = [
            (name, module)
            for name, module in loaded
            if name.startswith(beneath) or name in among
        ]
    for _, module in loaded:
        # A module may stand in sys.modules under several names.
        if id(module) not in seen and is_module(module):
            seen.add(id(module))
            yield module


def _direct(owner: ModuleType | type, moves: Mapping[int, Move]) -> Iterator[Alias]:
    for name, value in list(namespace(owner).items()):
        move = moves.get(id(value))
        if move is not None:
            yield Alias(owner, name, value, move)


def _bound(owner: ModuleType | type, moves: Mapping[int, Move]) -> Iterator[Alias]:
    for name, value in list(namespace(owner).items()):
        move = moves.get(id(value.__func__)) if type(value) is MethodType else None
        if move is not None:
            yield Alias(owner, name, value, move)


def _holds_some(owner: ModuleType | type, wanted: Mapping[int, Move]) -> bool:
    """Whether it may be worth a closer look: of most namespaces it is not."""
    try:
        return not wanted.keys().isdisjoint(map(id, namespace(owner).values()))
    except RuntimeError:
        # Another thread has bound a new name meanwhile. A copy would prevent that, and
        # take as long again, for each of thousands.
        return True


def _heirs(root: type) -> list[type]:
    """A class and every one that inherits from it, also those that nobody needs any
    more."""
    found: list[type] = [root]
    seen = {id(root)}
    # What is found on the way is looked at in its turn.
    for cls in found:
        heirs: list[type] = type.__subclasses__(cls)
        for heir in heirs:
            if id(heir) not in seen:
                seen.add(id(heir))
                found.append(heir)
    return found


def _is_at_home(cls: type) -> bool:
    """Whether the place that a class names holds it."""
    module = namespace(cls).get("__module__")
    name = type.__dict__["__qualname__"].__get__(cls)
    try:
        return resolve(f"{module}:{name}").read() is cls
    except MissingTargetError:
        return False


def _near(among: tuple[str, ...]) -> Iterator[ModuleType | type]:
    """Modules of some packages, and the classes of these that they lead to.

    Walking to them takes a quarter of what it takes to list every class there is.
    Modules come first: they hold most of what is sought, and what classes they lead to
    is asked of them only when somebody wants to know.
    """
    waiting: list[ModuleType | type] = [*_modules(among)]
    yield from waiting
    seen = set(map(id, waiting))
    kinds = frozenset(map(id, _heirs(type)))
    for owner in waiting:
        held = list(namespace(owner).values())
        if kinds.isdisjoint(map(id, map(type, held))):
            continue
        for value in held:
            if id(type(value)) in kinds and id(value) not in seen:
                seen.add(id(value))
                if _root(value) in among:
                    waiting.append(value)
                    yield value


def _reached(also: Iterable[ModuleType | type]) -> Iterator[ModuleType | type]:
    """All modules and the classes that these lead to, by whatever name."""
    classes = {id(cls): cls for cls in _heirs(object)}
    ids = frozenset(classes)
    # Each once: a reference that is found twice would be moved twice.
    waiting = list({id(one): one for one in [*_modules(), *also]}.values())
    seen = set(map(id, waiting))
    for owner in waiting:
        yield owner
        for key in ids.intersection(map(id, list(namespace(owner).values()))) - seen:
            seen.add(key)
            waiting.append(classes[key])


def find(
    moves: Iterable[Move],
    *,
    skip: tuple[str, ...] = (),
    among: tuple[str, ...] | None = None,
    also: Iterable[ModuleType | type] = (),
    counts: Mapping[int, int] | None = None,
) -> list[Alias]:
    """Every reference to an old value in a class's or loaded module's namespace.

    Args:
        moves: the old values.
        skip: top-level packages to leave alone.
        among: the only top-level packages to look in; None: everywhere.
        also: namespaces to look at although they may be those of modules that are not
            loaded any more.
        counts: how many references there are to each old value, by its id; None: not
            known. When all have been found, no further namespace is looked at.

    Bound methods come after all others.
    """
    wanted = {id(move.old): move for move in moves if rebindable(move.old)}
    if not wanted:
        return []
    left = None if counts is None else {key: counts[key] for key in wanted}

    def allowed(owner: ModuleType | type, here: Iterator[Alias]) -> list[Alias]:
        # A class that was evicted must not be kept alive by being remembered; one that
        # goes by another name is reached by the look everywhere.
        astray = among is not None and is_class(owner) and not _is_at_home(owner)
        if astray or (root := _root(owner)) in skip:
            return []
        return [a for a in here if not a.move.within or root in a.move.within]

    # By ids, at C speed: a value, and its class, may hash or compare in its own way.
    owners: list[ModuleType | type] = []
    found: list[Alias] = []
    for owner in _reached(also) if among is None else _near(among):
        owners.append(owner)
        if not _holds_some(owner, wanted):
            continue
        here = allowed(owner, _direct(owner, wanted))
        found += here
        if left is not None:
            left = unfound(left, here)
            if not left:
                return found
    # Methods bound to one come last: most looks have ended by now.
    for owner in owners:
        kinds = map(type, list(namespace(owner).values()))
        if id(MethodType) in map(id, kinds):
            found += allowed(owner, _bound(owner, wanted))
    return found


def unfound(counts: Mapping[int, int], found: Iterable[Alias]) -> dict[int, int]:
    """How many of the references that were counted are not among those found.

    A method bound to a value is one reference, by however many names that goes: it is
    never taken for found.
    """
    left = dict(counts)
    for alias in found:
        if alias.held is alias.move.old:
            left[id(alias.held)] = left.get(id(alias.held), 0) - 1
    return {key: count for key, count in left.items() if count}
