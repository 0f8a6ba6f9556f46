"""Streams as queues of work, of which only parked work is ever seen.

The device runs at once: work that is submitted to a stream has run when `submit`
returns. Unless it comes to a gate that is shut, an event that nobody has recorded;
then the rest of it, and all that is submitted after it, stays in the stream's queue
until the gate opens.

Work is an iterator that yields each gate it has to pass and runs in between.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from .clocks import Clock

__all__ = ["Gate", "Queue"]

_changed = threading.Condition(threading.Lock())
_local = threading.local()


class Gate:
    """Something that work waits for."""

    __slots__ = ("_waiting", "clock", "is_open", "label", "opener")

    def __init__(self, label: str, *, is_open: bool = False) -> None:
        self.label = label
        self.is_open = is_open
        self.opener: Queue | None = None
        """The queue in which what opens it is parked, where that is known."""
        self.clock: Clock = {}
        """What has happened for those who passed it."""
        self._waiting: list[Queue] = []

    def open(self) -> None:
        with _changed:
            self.is_open = True
            woken, self._waiting = self._waiting, []
            _changed.notify_all()
        if woken:
            _woken().extend(woken)
            if not getattr(_local, "depth", 0):
                _wake()

    def shut(self) -> None:
        with _changed:
            self.is_open = False

    def stops(self, queue: Queue) -> bool:
        """Whether the gate is shut; if so `queue` is pumped once it opens."""
        with _changed:
            if self.is_open:
                return False
            if queue not in self._waiting:
                self._waiting.append(queue)
            return True


class Queue:
    """What one stream has still to do."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._work: deque[Iterator[Gate]] = deque()
        self._lock = threading.RLock()
        self._running = False
        self._stopped_at: Gate | None = None

    def submit(self, work: Iterator[Gate]) -> None:
        """Run `work`, or park it behind what is parked already."""
        self._work.append(work)
        self.pump()

    def pump(self) -> None:
        """Go on as far as the gates allow, here and where that opens any."""
        _local.depth = getattr(_local, "depth", 0) + 1
        try:
            self._run()
        finally:
            _local.depth -= 1
            if not _local.depth:
                _wake()

    def _run(self) -> None:
        with self._lock:
            if self._running:
                return
            self._running = True
            try:
                while self._work:
                    gate = self._stopped_at
                    if gate is not None and gate.stops(self):
                        return
                    self._stopped_at = None
                    try:
                        self._stopped_at = next(self._work[0], None)
                    except BaseException:
                        self._work.popleft()
                        raise
                    if self._stopped_at is None:
                        self._work.popleft()
            finally:
                self._running = False

    @property
    def is_parked(self) -> bool:
        return bool(self._work)

    def blocker(self) -> Gate | None:
        """The gate that has to open first, through whatever it is parked behind."""
        queue: Queue | None = self
        gate = None
        seen: set[int] = set()
        while queue is not None and queue.is_parked and id(queue) not in seen:
            seen.add(id(queue))
            gate = queue._stopped_at
            queue = gate.opener if gate is not None else None
        return gate

    def drained(self, patience: float) -> bool:
        """Whether all is done, after at most `patience` seconds of other threads."""
        with _changed:
            return _changed.wait_for(lambda: not self.is_parked, self._wait(patience))

    @staticmethod
    def _wait(patience: float) -> float:
        # Nobody else is there to open a gate.
        return patience if threading.active_count() > 1 else 0.0


def _woken() -> list[Queue]:
    try:
        found: list[Queue] = _local.woken
    except AttributeError:
        found = _local.woken = []
    return found


def _wake() -> None:
    queues = _woken()
    while queues:
        queues.pop(0).pump()
    with _changed:
        _changed.notify_all()
