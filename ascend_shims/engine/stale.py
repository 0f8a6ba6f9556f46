"""References that a patch did not reach, found and named.

A default argument, a closure, a `functools.partial`, a bound method in a list
or an entry of a table keeps the object it was given. These cannot be rebound
behind their owner's back, so the report names them: code that calls through
them sees the value from before (or, after a revert, from during) the patch.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Iterable, Iterator
from types import CellType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from .aliases import rebindable
from .slot import ABSENT, namespace
from .wrappers import mark_of, peel

__all__ = ["stale_references"]

_CONTAINERS = (dict, list, tuple, set, frozenset)


def stale_references(values: Iterable[tuple[str, Any, Any]]) -> list[str]:
    """One line for each reference that still leads to an unpatched value.

    Args:
        values: (target, unpatched raw value, visible raw value) of each slot.
    """
    olds = {
        id(peel(base)): (target, peel(base))
        for target, base, visible in values
        if base is not ABSENT and base is not visible and callable(peel(base))
    }
    olds = {key: pair for key, pair in olds.items() if rebindable(pair[1])}
    if not olds:
        return []
    lines = set[str]()
    search = _Search()
    for target, old in olds.values():
        lines.update(f"{target} is held by {by}" for by in search.holders(old))
    return sorted(lines)


class _Search:
    """One look through the heap."""

    def __init__(self) -> None:
        self._names = _global_names()

    def holders(self, old: Any) -> Iterator[str]:
        for referrer in gc.get_referrers(old):
            yield from self._described(referrer, old)

    def _described(self, referrer: Any, old: Any) -> Iterator[str]:
        if isinstance(referrer, functools.partial):
            yield f"a functools.partial{self._home(referrer)}"
        elif isinstance(referrer, MethodType):
            yield f"a bound method{self._home(referrer)}"
        elif isinstance(referrer, CellType):
            yield from self._closures(referrer)
        elif isinstance(referrer, tuple):
            yield from self._defaults(referrer)
        elif type(referrer) in _CONTAINERS:
            yield from self._container(referrer, old)

    def _closures(self, cell: CellType) -> Iterator[str]:
        for closure in gc.get_referrers(cell):
            if not isinstance(closure, tuple):
                continue
            for function in gc.get_referrers(closure):
                if isinstance(function, FunctionType) and not _is_ours(function):
                    yield f"the closure of {_named(function)}"

    def _defaults(self, values: tuple[Any, ...]) -> Iterator[str]:
        for holder in gc.get_referrers(values):
            if isinstance(holder, FunctionType) and holder.__defaults__ is values:
                yield f"a default of {_named(holder)}"
            elif id(values) in self._names:
                yield f"the tuple {self._names[id(values)]}"
                return

    def _container(self, container: Any, old: Any) -> Iterator[str]:
        name = self._names.get(id(container))
        if name is None:
            return
        if isinstance(container, dict):
            keys = [key for key, value in container.items() if value is old]
            yield from (f"{name}[{key!r}]" for key in keys)
        else:
            yield f"the {type(container).__name__} {name}"

    def _home(self, value: Any) -> str:
        if id(value) in self._names:
            return f" {self._names[id(value)]}"
        for referrer in gc.get_referrers(value):
            if isinstance(referrer, FrameType):
                continue
            name = self._names.get(id(referrer))
            if name is not None and type(referrer) in _CONTAINERS:
                return f" in {name}"
            if isinstance(referrer, tuple):
                found = next(self._defaults(referrer), None)
                if found is not None:
                    return f" in {found}"
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
