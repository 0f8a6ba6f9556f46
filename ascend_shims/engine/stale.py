"""References that a patch did not reach, found and named.

A default argument, a closure, a `functools.partial`, a bound method in a list
or an entry of a table keeps the object it was given. These cannot be rebound
behind their owner's back, so the report names them: code that calls through
them sees the value from before the patch.

A look through the whole heap takes a while, so it is done only for values that
have more references than we ourselves hold.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator
from types import CellType, FunctionType, MethodType
from typing import Any

from .aliases import rebindable
from .heap import Heap
from .layers import SlotState
from .references import Outside
from .slot import ABSENT, is_class, is_module, namespace
from .wrappers import mark_of, peel

__all__ = ["holders_of", "stale_references"]

_CARRIERS = {
    functools.partial: "a functools.partial",
    functools.partialmethod: "a functools.partialmethod",
    MethodType: "a bound method",
    staticmethod: "a staticmethod",
    classmethod: "a classmethod",
    property: "a property",
}


def stale_references(
    states: Iterable[SlotState], outside: Outside, *, skip: tuple[str, ...] = ()
) -> list[str]:
    """One line for each reference that still leads to an unpatched value.

    Args:
        states: the slots to look for.
        outside: counts the references to values that are not ours.
        skip: top-level packages that mean to hold what they hold.
    """
    # Where only one binding is patched, all others are stock on purpose, and what
    # upstream borrowed is in its owner's hands.
    suspects = [one for one in states if not (one.is_binding or one.borrowed)]
    suspects = [one for one in suspects if _can_be_held(one)]
    counts = outside([peel(one.base) for one in suspects], [])
    if counts is not None:
        pairs = zip(suspects, counts, strict=True)
        suspects = [one for one, count in pairs if count > 0]
    if not suspects:
        return []
    search = _Search([peel(one.base) for one in suspects], skip)
    return sorted(
        f"{one.slot.target} is held by {place}"
        for one in suspects
        for place in set(search.places(peel(one.base)))
    )


def _can_be_held(state: SlotState) -> bool:
    """Whether identity with the unpatched value means being a reference to it."""
    old = peel(state.base)
    return state.base is not ABSENT and callable(old) and rebindable(old)


def holders_of(values: list[Any], skip: tuple[str, ...] = ()) -> list[list[str]]:
    """For each value, who holds it, in words; `skip` as in `stale_references`."""
    if not values:
        return []
    search = _Search(values, skip)
    return [sorted(set(search.places(value))) for value in values]


class _Search:
    """One look through the heap, for all suspects together."""

    def __init__(self, olds: list[Any], skip: tuple[str, ...]) -> None:
        self._skip = ("ascend_shims", *skip)
        self._modules: dict[int, str] = {}
        for name, module in list(sys.modules.items()):
            if is_module(module):
                # A module that stands there twice goes by its first name.
                self._modules.setdefault(id(namespace(module)), name)
        self._heap = Heap(olds, ends=self._ends_a_way)
        self._places: dict[int, list[str]] = {}
        """By what is held: many ways may lead there."""

    def _ends_a_way(self, holder: Any) -> bool:
        """Whether a holder has a name of its own, or is no business of ours."""
        return (
            id(holder) in self._modules
            or is_class(holder)
            or _is_function(holder)
            or self._is_ours(type(holder).__module__)
        )

    def _is_ours(self, module: Any) -> bool:
        return type(module) is str and module.partition(".")[0] in self._skip

    def places(self, child: Any) -> list[str]:
        """Where `child` is held, each place in words; nothing for our own."""
        found = self._places.get(id(child))
        if found is None:
            # While it is looked for it is nowhere: it may hold itself.
            self._places[id(child)] = []
            holders = self._heap.holders(child)
            found = [place for one in holders for place in self._in(one, child)]
            self._places[id(child)] = found
        return found

    def _in(self, holder: Any, child: Any) -> Iterator[str]:
        kind = type(holder)
        if self._is_ours(kind.__module__):
            return
        if kind is CellType:
            yield from self._in_cell(holder)
        elif kind is tuple:
            yield from self._in_tuple(holder)
        elif kind is dict:
            yield from self._in_dict(holder, child)
        elif kind in (list, set, frozenset):
            yield from self._within(holder, f"the {kind.__name__}")
        elif kind in _CARRIERS:
            yield from self._within(holder, _CARRIERS[kind])
        elif kind.__module__ != "builtins":
            yield _in_object(holder, child)

    def _within(self, holder: Any, said: str) -> Iterator[str]:
        """What has no name of its own, and where that is."""
        if self._heap.is_cut(holder):
            yield said
        for place in self.places(holder):
            # A bare name is its own; else the place is one of something around it.
            yield f"{said} in {place}" if " " in place else f"{said} {place}"

    def _in_cell(self, cell: CellType) -> Iterator[str]:
        for closure in self._heap.holders(cell):
            for function in self._heap.holders(closure):
                if _is_function(function) and self._is_foreign(function):
                    yield f"the closure of {_named(function)}"

    def _in_tuple(self, values: tuple[Any, ...]) -> Iterator[str]:
        for holder in self._heap.holders(values):
            if _is_function(holder):
                if self._is_foreign(holder):
                    # Annotations are a tuple as well until somebody asks for them.
                    is_default = holder.__defaults__ is values
                    what = "a default" if is_default else "an annotation"
                    yield f"{what} of {_named(holder)}"
                return
        yield from self._within(values, "the tuple")

    def _in_dict(self, values: dict[Any, Any], child: Any) -> Iterator[str]:
        keys = [key for key, value in list(values.items()) if value is child]
        # What `functools.wraps` notes is for reading, not for calling.
        keys = [key for key in keys if key != "__wrapped__"]
        if not keys:
            return
        module = self._modules.get(id(values))
        if module is not None:
            if not self._is_ours(module):
                yield from (f"{module}:{key}" for key in keys)
            return
        for holder in self._heap.holders(values):
            if _is_function(holder):
                if self._is_foreign(holder):
                    yield _of_function(holder, values, keys[0])
                return
            if is_class(holder):
                if not self._is_ours(holder.__module__):
                    yield f"{holder.__module__}:{holder.__qualname__}.{keys[0]}"
                return
            if _dict_of(holder) is values:
                yield from self._in(holder, child)
                return
        if self._heap.is_cut(values):
            yield "a dict"
        for place in self.places(values):
            bare = " " not in place
            yield from (
                f"{place}[{k!r}]" if bare else f"{k!r} in {place}" for k in keys
            )

    def _is_foreign(self, function: FunctionType) -> bool:
        # The globals tell where a function was made; its `__module__` is often
        # copied from another.
        ours = self._is_ours(function.__globals__.get("__name__"))
        return not ours and mark_of(function) is None


def _is_function(one: Any) -> bool:
    # Not isinstance: that asks a proxy object for its `__class__`.
    return issubclass(type(one), FunctionType)


def _named(function: FunctionType) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _of_function(function: FunctionType, values: dict[Any, Any], key: Any) -> str:
    if function.__kwdefaults__ is values:
        return f"a default of {_named(function)}"
    if function.__annotations__ is values:
        return f"an annotation of {_named(function)}"
    return f"{_named(function)}.{key}"


def _in_object(holder: Any, child: Any) -> str:
    kind = type(holder)
    held = _dict_of(holder)
    names = [name for name, value in list(held.items()) if value is child]
    attribute = f"attribute {names[0]} of " if names else ""
    return f"{attribute}an object of {kind.__module__}.{kind.__qualname__}"


def _dict_of(holder: Any) -> dict[str, Any]:
    """The attributes of an object, without asking the object."""
    try:
        found = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}
