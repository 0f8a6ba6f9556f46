"""What a graph holds: its entries and its share in a pool."""

from __future__ import annotations

import weakref

from .entries import Entry
from .pools import Pool

__all__ = ["Recording"]


class Recording:
    """Entries in the order of their capture.

    The pool's memory stays reserved until `close`, or until nobody holds this.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.entries: list[Entry] = []
        self.is_complete = False
        self.replays_under_way = 0
        pool.join()
        self._leave = weakref.finalize(self, pool.leave)
        self._leave.atexit = False

    def close(self) -> None:
        """Let go of all memory now, whoever still holds this."""
        self.is_complete = False
        self.entries.clear()
        self._leave()
