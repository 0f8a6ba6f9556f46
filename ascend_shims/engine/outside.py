"""How many references to an object are not our own.

Where there are none, nothing has to be searched for: most of what is patched is known
by its slot alone, and a look at every namespace, or at the whole heap, takes long.
Counting is cheap because what we hold hangs together. What is not recognised as ours
counts as somebody else's, so that at worst a search is made in vain.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Iterable
from types import CellType, FunctionType
from typing import Any

from .wrappers import mark_of

__all__ = ["count_outside"]

_CONTAINERS = (
    list,
    dict,
    tuple,
    CellType,
    functools.partial,
    staticmethod,
    classmethod,
    property,
    functools.cached_property,
    functools.partialmethod,
)
"""What our values are kept in."""

_ENDS = frozenset(map(id, (str, int, float, bool, bytes, type(None), type)))
"""Kinds of most of what our values lead to, which lead no further, by their ids."""

_COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()
"""Whether counts are exact: without the GIL they are spread over threads."""


def _references(values: list[Any], index: int) -> int:
    """As the interpreter counts them, without the one in the list."""
    return sys.getrefcount(values[index]) - 1


_OF_A_CALL = _references([object()], 0)
"""What asking adds; releases of Python differ."""


def count_outside(
    values: list[Any], roots: Iterable[Any], *, kinds: tuple[type, ...]
) -> list[int] | None:
    """For each value, the references that come neither from `roots` nor from there on.

    `values`, too, is ours, once. Followed are containers, wrappers of ours and objects
    of `kinds`. None where this Python does not tell.
    """
    if not _COUNTS:
        return None
    ours = _edges(values, roots, kinds)
    return [
        _references(values, index) - _OF_A_CALL - ours[index]
        for index in range(len(values))
    ]


def _edges(
    values: list[Any], roots: Iterable[Any], kinds: tuple[type, ...]
) -> list[int]:
    """For each value, the references to it that lead there from `roots`."""
    counts = dict.fromkeys(map(id, values), 0)
    waiting = list(roots)
    seen = {id(waiting), id(values), *map(id, waiting)}
    # By ids: classes may hash and compare in their own way.
    followed = frozenset(map(id, (*_CONTAINERS, *kinds)))
    while waiting:
        for part in _parts(waiting.pop()):
            key, kind = id(part), id(type(part))
            if key in counts:
                counts[key] += 1
            if key in seen or kind in _ENDS:
                continue
            if kind in followed or mark_of(part) is not None:
                seen.add(key)
                waiting.append(part)
    return [counts[id(value)] for value in values]


def _parts(one: Any) -> list[Any]:
    """What an object of ours refers to, and nobody else through it."""
    if type(one) is not FunctionType:
        return gc.get_referents(one)
    # Other parts of a wrapper are those of what it stands in front of.
    return [*(one.__closure__ or ()), one.__dict__.get("__wrapped__")]
