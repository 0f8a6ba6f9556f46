"""A replay on its way through a graph."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import torch

from . import watched
from .entries import Constant, Entry, Launch, Operator
from .modes import quiet
from .queues import Gate
from .streams import Stream, StreamContext

__all__ = ["Play", "is_playing"]

_local = threading.local()


def is_playing() -> bool:
    """Whether this thread is running entries of a graph."""
    return getattr(_local, "depth", 0) > 0


class Play:
    """Runs entries on a stream; yields the gates it comes to.

    Where it had to stop, another thread may take it up, in the midst of whatever it
    is doing, a capture included. So each stretch brings its own surroundings: no
    dispatch mode but the watcher's, the replay's stream, no gradients.
    """

    def __init__(self, entries: Sequence[Entry], stream: Stream) -> None:
        self._stream = stream
        self._steps = self._run(entries)

    def __iter__(self) -> Iterator[Gate]:
        return self

    def __next__(self) -> Gate:
        _local.depth = getattr(_local, "depth", 0) + 1
        try:
            with (
                StreamContext(self._stream),
                torch.inference_mode(),
                quiet(),
                watched.watching_here(),
            ):
                return next(self._steps)
        finally:
            _local.depth -= 1

    def _run(self, entries: Sequence[Entry]) -> Iterator[Gate]:
        for entry in entries:
            if isinstance(entry, Operator | Constant | Launch):
                entry.run()
            else:
                yield from entry.work(self._stream)
