"""Finds work whose order nothing guarantees.

The software NPU runs everything at once and in order, so it computes the right
result where a device might not. Inside `watching()` each access to memory is held
against what its stream waits for, by vector clocks; the host is one more stream.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch

from . import launches, watched
from .clocks import Clock, Clocks
from .kernels import is_composite, redispatch
from .memory import at_death, device_memory
from .modes import Mode, quiet, stack_is_empty
from .playing import is_playing
from .streams import Stream, current_stream
from .touches import Region, Touch, overlap, touches

__all__ = ["Hazard", "watch_process", "watching"]

_HOST = -1

HazardKind = Literal[
    "event-not-recorded",
    "read-after-write",
    "write-after-read",
    "write-after-write",
    "overtakes-parked",
]


@dataclass(frozen=True, slots=True)
class Hazard:
    """Two things whose order nothing guarantees."""

    kind: HazardKind
    message: str

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True)
class _Access:
    region: Region
    writes: bool
    stream: int
    step: int
    name: str


class _Watch:
    """The clocks of all streams and the last accesses to each piece of memory."""

    def __init__(self) -> None:
        self.found: list[Hazard] = []
        self._clocks = Clocks()
        self._accesses: dict[int, list[_Access]] = {}
        self._known: set[int] = set()
        self._lock = threading.RLock()
        self._gone: list[int] = []
        self._local = threading.local()

    # What streams and events tell.

    def recorded(self, stream: Stream) -> Clock:
        with self._lock:
            return self._clocks.record(stream.stream_id)

    def waited(self, stream: Stream, clock: Clock) -> None:
        with self._lock:
            self._clocks.join(stream.stream_id, clock)

    def waited_too_early(self, event: object, stream: Stream) -> None:
        self._report(
            "event-not-recorded",
            f"{stream} waited for {event}, which had not been recorded: it waits for "
            "nothing. Record the event first",
        )

    def reached(self, clock: Clock) -> None:
        with self._lock:
            self._clocks.join(_HOST, clock)

    def synchronized(self, stream: Stream | None) -> None:
        with self._lock:
            if stream is not None:
                self._clocks.join(_HOST, self._clocks.record(stream.stream_id))
                return
            for each in self._clocks.streams():
                self._clocks.join(_HOST, self._clocks.record(each))
            self._accesses.clear()

    def arrive(self) -> None:
        """Watch this thread for good, if it can be done without disturbing anybody."""
        if (
            self.is_permanent
            and not getattr(self._local, "arrived", False)
            and stack_is_empty()
        ):
            self._local.arrived = True
            self.mode.__enter__()

    def here(self) -> AbstractContextManager[object]:
        return self.mode

    is_permanent = False

    @property
    def mode(self) -> Mode:
        return _Operators(self)

    # What operators do.

    def ran(self, name: str, stream: Stream, done: list[Touch]) -> None:
        """One operator or launch ran on a stream."""
        if stream.queue.is_parked and not is_playing() and done:
            self._report(
                "overtakes-parked",
                f"{name} was called on {stream}, whose replay waits for "
                f"{getattr(stream.queue.blocker(), 'label', 'an event')}: a device "
                "would run it after the replay, here it ran before. Record the event "
                "first",
            )
        with self._lock:
            self._forget()
            number = stream.stream_id
            # The host put it there after all that the host has waited for.
            self._clocks.join(number, self._clocks.record(_HOST))
            step = self._clocks.tick(number)
            for touch in done:
                self._touched(name, number, step, touch)

    def _touched(self, name: str, stream: int, step: int, touch: Touch) -> None:
        region = Region.of(touch.tensor)
        accesses = self._accesses.setdefault(self._memory(touch.tensor), [])
        new = _Access(region, touch.writes, stream, step, name)
        for old in accesses:
            if (
                (old.writes or new.writes)
                and not self._clocks.covers(stream, old.stream, old.step)
                and overlap(old.region, new.region)
            ):
                self._report_pair(old, new)
        accesses[:] = [
            old
            for old in accesses
            if not (
                old.region == region
                and old.stream == stream
                and (old.writes == new.writes or new.writes)
            )
        ]
        accesses.append(new)

    def _memory(self, tensor: torch.Tensor) -> int:
        """A number for the memory that a tensor lies in, for as long as that lives."""
        segment = device_memory().segment_of(tensor)
        key = tensor.untyped_storage()._cdata if segment is None else -segment
        if key not in self._known:
            self._known.add(key)
            if segment is None:
                at_death(tensor.untyped_storage(), self._gone.append, key)
        return key

    def _forget(self) -> None:
        while self._gone:
            key = self._gone.pop()
            self._known.discard(key)
            self._accesses.pop(key, None)

    def _report_pair(self, old: _Access, new: _Access) -> None:
        verbs = {True: "write", False: "read"}
        kind: Any = f"{verbs[new.writes]}-after-{verbs[old.writes]}"
        self._report(
            kind,
            f"{new.name} on stream {new.stream} {verbs[new.writes]}s what {old.name} "
            f"on stream {old.stream} {verbs[old.writes]}s, and nothing makes it wait: "
            "let the second stream wait for an event recorded after the first",
        )

    def _report(self, kind: HazardKind, message: str) -> None:
        self.found.append(Hazard(kind, message))

    def launched(self, launching: launches.Launching, run: launches.Run) -> None:
        """A Triton launch: it reads its tensors, and writes those that change."""
        tensors = launching.tensors()
        with quiet():
            before = [tensor.clone() for tensor in tensors]
        run(launching)
        with quiet():
            done = [
                Touch(tensor, not _same(tensor, old))
                for tensor, old in zip(tensors, before, strict=True)
            ]
            name = getattr(launching.executor.fn, "__name__", "kernel")
            self.ran(f"triton.{name}", current_stream(), done)


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(_bytes(one), _bytes(other))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


class _Operators(Mode):
    """Tells a watch what each operator of this thread reads and writes."""

    def __init__(self, watch: _Watch) -> None:
        super().__init__()
        self._watch = watch

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if is_composite(func):
            with self:
                return redispatch(func, args, kwargs)
        result = func(*args, **kwargs)
        with quiet():
            done = list(touches(func, args, kwargs, result))
            if done:
                self._watch.ran(str(func), current_stream(), done)
        return result


@contextmanager
def watching() -> Iterator[list[Hazard]]:
    """Watch this thread, and the streams and events of all; gives what was found."""
    watch = _Watch()
    _start(watch)
    try:
        with watch.mode:
            yield watch.found
    finally:
        _stop(watch)


def _start(watch: _Watch) -> None:
    watched.watchers.append(watch)
    launches.follow(watch.launched)


def _stop(watch: _Watch) -> None:
    launches.unfollow(watch.launched)
    watched.watchers.remove(watch)


def watch_process() -> list[Hazard]:
    """Watch each thread that uses streams, for good; gives the growing list."""
    watch = _Watch()
    watch.is_permanent = True
    _start(watch)
    watch.arrive()
    return watch.found
