"""What reading a source has cost."""

from __future__ import annotations

import threading
from dataclasses import dataclass

__all__ = ["Meter", "Stats"]


@dataclass(frozen=True, slots=True)
class Stats:
    """Costs up to now."""

    bytes: int = 0
    """Received over the network, bodies only."""
    requests: int = 0
    cached: int = 0
    """Files, listings and index pages that the cache provided."""

    def __add__(self, other: Stats) -> Stats:
        return Stats(
            self.bytes + other.bytes,
            self.requests + other.requests,
            self.cached + other.cached,
        )


class Meter:
    """Counts, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stats = Stats()

    def count(self, *, received: int = 0, requests: int = 0, cached: int = 0) -> None:
        with self._lock:
            self._stats += Stats(received, requests, cached)

    @property
    def stats(self) -> Stats:
        return self._stats
