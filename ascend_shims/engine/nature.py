"""What calling a function gives: a value, or something to await or to iterate."""

from __future__ import annotations

import inspect
from enum import Enum
from types import FunctionType
from typing import Any

__all__ = ["Nature", "nature"]


class Nature(Enum):
    """As messages name it."""

    PLAIN = "a plain function"
    COROUTINE = "a coroutine function"
    GENERATOR = "a generator function"
    ASYNC_GENERATOR = "an asynchronous generator function"


_SPECIAL = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_MARKER = "_is_coroutine_marker"
"""What `inspect.markcoroutinefunction` leaves (Python 3.12 and later)."""


def nature(function: Any) -> Nature:
    """Also of what leads to a function: a method, a `functools.partial`."""
    # Nearly all are plain; `inspect` unwraps each of them three times to say so.
    if (
        type(function) is FunctionType
        and not function.__code__.co_flags & _SPECIAL
        and _MARKER not in function.__dict__
    ):
        return Nature.PLAIN
    if inspect.iscoroutinefunction(function):
        return Nature.COROUTINE
    if inspect.isasyncgenfunction(function):
        return Nature.ASYNC_GENERATOR
    if inspect.isgeneratorfunction(function):
        return Nature.GENERATOR
    return Nature.PLAIN
