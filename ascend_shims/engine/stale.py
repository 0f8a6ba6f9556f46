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
import gc
import sys
from collections.abc import Iterable, Iterator
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from .aliases import rebindable
from .layers import SlotState
from .slot import ABSENT, namespace
from .wrappers import mark_of, peel

__all__ = ["stale_references"]

_CONTAINERS = (dict, list, tuple, set, frozenset)
_LINKS = (
    FunctionType,
    CellType,
    tuple,
    dict,
    functools.partial,
    staticmethod,
    classmethod,
    property,
)
"""What a wrapper of ours is made of."""


def stale_references(states: Iterable[SlotState], rebound: Iterable[Any]) -> list[str]:
    """One line for each reference that still leads to an unpatched value.

    Args:
        states: the slots to look for.
        rebound: values that we keep in order to put them back elsewhere.
    """
    kept = list(rebound)
    suspects = {
        id(peel(state.base)): (state.slot.target, peel(state.base))
        for state in states
        # Where only one binding is patched, all others are stock on purpose.
        if not state.is_binding and _is_held_elsewhere(state, kept)
    }
    return _Search(suspects).lines() if suspects else []


def _is_held_elsewhere(state: SlotState, kept: list[Any]) -> bool:
    """Whether something besides ourselves refers to the unpatched value."""
    old = peel(state.base)
    if state.base is ABSENT or not callable(old) or not rebindable(old):
        return False
    # The state's base or the descriptor in it, `old`, and getrefcount's argument.
    own = (
        3
        + _edges_into(old, [state.visible, *state.retire])
        + sum(one is old for one in kept) * 2
    )
    return sys.getrefcount(old) > own


def _edges_into(old: Any, roots: list[Any]) -> int:
    """References to `old` from the parts that a wrapper is made of."""
    count, seen, queue = 0, {id(old)}, roots
    while queue:
        for part in gc.get_referents(queue.pop()):
            if part is old:
                count += 1
            elif id(part) not in seen and _is_link(part):
                seen.add(id(part))
                queue.append(part)
    return count


def _is_link(part: Any) -> bool:
    if type(part) is dict:
        # A function refers to its module's globals; those are not ours to count.
        return "__builtins__" not in part
    return isinstance(part, _LINKS)


class _Search:
    """One look through the heap, for all suspects together."""

    def __init__(self, suspects: dict[int, tuple[str, Any]]) -> None:
        self._suspects = suspects
        self._names = _global_names()
        olds = [old for _, old in suspects.values()]
        self._first = gc.get_referrers(*olds)
        carriers = [
            one
            for one in self._first
            if isinstance(one, (CellType, functools.partial, MethodType))
        ]
        self._second = gc.get_referrers(*carriers) if carriers else []
        tuples = [t for t in [*self._first, *self._second] if type(t) is tuple]
        self._functions = [
            one
            for one in (gc.get_referrers(*tuples) if tuples else [])
            if isinstance(one, FunctionType) and not _is_ours(one)
        ]

    def lines(self) -> list[str]:
        found = set[str]()
        for referrer in self._first:
            for old in gc.get_referents(referrer):
                target = self._suspects.get(id(old), ("",))[0]
                if target:
                    found.update(
                        f"{target} is held by {by}"
                        for by in self._described(referrer, old)
                    )
        return sorted(found)

    def _described(self, referrer: Any, old: Any) -> Iterator[str]:
        if isinstance(referrer, functools.partial):
            yield f"a functools.partial{self._home(referrer)}"
        elif isinstance(referrer, MethodType):
            yield f"a bound method{self._home(referrer)}"
        elif isinstance(referrer, CellType):
            yield from self._closures(referrer)
        elif type(referrer) is tuple and any(
            one.__defaults__ is referrer for one in self._functions
        ):
            yield from self._defaults(referrer)
        elif type(referrer) in _CONTAINERS and id(referrer) in self._names:
            yield self._entry(referrer, old)

    def _closures(self, cell: CellType) -> Iterator[str]:
        for function in self._functions:
            if any(one is cell for one in function.__closure__ or ()):
                yield f"the closure of {_named(function)}"

    def _defaults(self, values: Any) -> Iterator[str]:
        for function in self._functions:
            if function.__defaults__ is values:
                yield f"a default of {_named(function)}"

    def _entry(self, container: Any, value: Any) -> str:
        name = self._names[id(container)]
        if isinstance(container, dict):
            keys = [repr(key) for key, one in container.items() if one is value]
            return f"{name}[{', '.join(keys)}]"
        return f"the {type(container).__name__} {name}"

    def _home(self, carrier: Any) -> str:
        """Where a partial or a bound method is kept, as far as that shows."""
        if id(carrier) in self._names:
            return f" {self._names[id(carrier)]}"
        for holder in self._second:
            if not any(one is carrier for one in gc.get_referents(holder)):
                continue
            default = next(self._defaults(holder), None)
            if default is not None:
                return f" in {default}"
            if type(holder) in _CONTAINERS and id(holder) in self._names:
                return f" in {self._entry(holder, carrier)}"
        return ""


def _named(function: FunctionType) -> str:
    return f"{function.__module__}:{function.__qualname__}"


def _is_ours(function: Any) -> bool:
    ours = (function.__module__ or "").partition(".")[0] == "ascend_shims"
    return ours or mark_of(function) is not None


def _global_names() -> dict[int, str]:
    """Where the containers and callables that modules hold are found."""
    names: dict[int, str] = {}
    for module_name, module in list(sys.modules.items()):
        if not issubclass(type(module), ModuleType):
            continue
        for name, value in list(namespace(module).items()):
            if type(value) in (*_CONTAINERS, functools.partial, MethodType):
                names.setdefault(id(value), f"{module_name}:{name}")
    return names
