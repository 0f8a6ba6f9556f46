"""Who refers to whom, around a few objects."""

from __future__ import annotations

import gc
from collections.abc import Callable
from types import (
    AsyncGeneratorType,
    CoroutineType,
    FrameType,
    GeneratorType,
    MappingProxyType,
)
from typing import Any

__all__ = ["Heap"]

_DEPTH = 5
_WIDTH = 2000

_PASSING = (
    FrameType,
    GeneratorType,
    CoroutineType,
    AsyncGeneratorType,
    MappingProxyType,
)
"""What refers to an object only for the moment, or in the name of another."""


class Heap:
    """The holders of some objects, their holders, and so on for a few levels.

    Each level is one look through the whole heap, for all objects together.
    """

    def __init__(self, roots: list[Any], *, ends: Callable[[Any], bool]) -> None:
        """`ends` tells of a holder that its own holders do not matter."""
        self._holders: dict[int, list[Any]] = {}
        self._own = {id(self._holders), id(roots)}
        frontier = roots
        for _ in range(_DEPTH):
            frontier = self._look(frontier, ends)
            if not frontier or len(frontier) > _WIDTH:
                break
        self._cut = {id(one) for one in frontier}

    def holders(self, one: Any) -> list[Any]:
        return self._holders.get(id(one), [])

    def is_cut(self, one: Any) -> bool:
        """Whether the search ended before it came to the holders of `one`."""
        return id(one) in self._cut

    def _look(self, frontier: list[Any], ends: Callable[[Any], bool]) -> list[Any]:
        wanted = {id(one) for one in frontier}
        for one in frontier:
            self._own.add(id(self._holders.setdefault(id(one), [])))
        further: list[Any] = []
        seen = {id(further)}
        self._own.add(id(further))
        arguments = tuple(frontier)
        referrers = gc.get_referrers(*arguments)
        self._own |= {id(arguments), id(referrers)}
        for holder in referrers:
            if id(holder) in self._own or issubclass(type(holder), _PASSING):
                continue
            for part in {id(part) for part in gc.get_referents(holder)} & wanted:
                self._holders[part].append(holder)
            if id(holder) not in self._holders and id(holder) not in seen:
                seen.add(id(holder))
                if not ends(holder):
                    further.append(holder)
        return further
