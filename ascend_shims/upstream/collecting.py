"""Python's garbage collector, told that syntax trees are coming."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["rare_collections"]

_OBJECTS = 4_000_000
"""More than a check has at any time, unless cycles stay behind after all."""


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """While files are parsed, Python looks for unreachable cycles hardly ever.

    A syntax tree is a hundred thousand objects without a cycle, and what refers to
    it in cycles is taken apart where it is dropped (`Tree.forget`). Going through
    all of them again and again took two fifths of the time of a check, and once for
    each a fifth still. For commands: what is there at the end is not looked through
    any more, since the process ends.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*before)
