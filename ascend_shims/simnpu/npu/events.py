"""Events: ordinary ones, and those that a graph waits for anew at each replay."""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Iterator
from typing import Any, NoReturn

from . import capturing, watched
from .capturing import Capture
from .clocks import Clock
from .entries import Pass, Reset, Set
from .errors import CaptureError, EventError, NotModelledError
from .queues import Gate
from .streams import Stream, current_stream, drain

__all__ = ["Event", "ExternalEvent"]

_numbers = itertools.count(1)


class Event:
    """A point in the order of a stream, for other streams or the host to wait for."""

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        if interprocess:
            raise NotModelledError("events of the software NPU stay in their process")
        self.enable_timing = enable_timing
        self.blocking = blocking
        self.npu_event = next(_numbers)
        self._gate: Gate | None = None
        self._captured: Capture | None = None
        self._clock_in_capture: Clock = {}
        self._time = 0.0

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: Any) -> NoReturn:  # noqa: ARG003
        raise NotModelledError("events of the software NPU stay in their process")

    def ipc_handle(self) -> NoReturn:
        raise NotModelledError("events of the software NPU stay in their process")

    def record(self, stream: Stream | None = None) -> None:
        stream = current_stream() if stream is None else stream
        capture = capturing.of_stream(stream)
        self._captured = capture
        gate = self._gate = Gate(repr(self))
        if capture is not None:
            gate.clock = watched.recorded(stream)
            gate.is_open = True
            self._clock_in_capture = capture.clocks.record(stream.stream_id)
            return
        gate.opener = stream.queue
        stream.queue.submit(self._reach(gate, stream))

    def _reach(self, gate: Gate, stream: Stream) -> Iterator[Gate]:
        self._time = time.perf_counter()
        gate.clock = watched.recorded(stream)
        gate.open()
        yield from ()

    def wait(self, stream: Stream | None = None) -> None:
        stream = current_stream() if stream is None else stream
        gate = self._gate
        if gate is None:
            watched.waited_too_early(self, stream)
            return
        inside = capturing.of_stream(stream)
        if self._captured is not None:
            capture = self._in_capture()
            capture.streams.add(stream)
            capture.clocks.join(stream.stream_id, self._clock_in_capture)
            watched.waited(stream, gate.clock)
        elif inside is not None:
            raise CaptureError(
                f"{stream} is being captured and cannot wait for {self}, which was "
                "recorded outside the capture; synchronize before the capture, or "
                "use an ExternalEvent"
            )
        else:
            stream.queue.submit(Pass(gate).work(stream))

    def _in_capture(self) -> Capture:
        capture = self._captured
        assert capture is not None
        if capturing.active() is not capture:
            raise CaptureError(
                f"{self} was recorded in a capture that is over, and never happens; "
                "record it again outside"
            )
        return capture

    def query(self) -> bool:
        self._refuse("query()")
        return self._gate is None or self._gate.is_open

    def synchronize(self) -> None:
        """Raises `DeadlockError` if what it marks waits for an unrecorded event."""
        self._refuse("synchronize()")
        gate = self._gate
        if gate is None:
            return
        if not gate.is_open and gate.opener is not None:
            drain(gate.opener, f"{self} was synchronized")
        watched.reached(gate.clock)

    def _refuse(self, what: str) -> None:
        if self._captured is not None:
            raise CaptureError(
                f"{what}: {self} was recorded in a capture and never happens; "
                "record it again outside"
            )

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to `end_event`."""
        for event in (self, end_event):
            if not event.enable_timing:
                raise EventError(
                    f"{event} keeps no time; use Event(enable_timing=True)"
                )
            if event._gate is None or not event._gate.is_open:
                raise EventError(f"{event} has not happened; record and synchronize it")
        return (end_event._time - self._time) * 1000.0

    def recorded_time(self) -> int:
        """Nanoseconds on a clock of no particular start."""
        if self._gate is None or not self._gate.is_open:
            raise EventError(f"{self} has not happened; record and synchronize it")
        return int(self._time * 1e9)

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.npu_event)

    def __repr__(self) -> str:
        return f"<simulated NPU event {self.npu_event}>"


class ExternalEvent:
    """A flag: `wait` passes while it is set, `record` sets it, `reset` clears it.

    All three in the order of a stream. In a capture they become part of the graph,
    so that each replay waits for a new `record` from outside.
    """

    def __init__(self) -> None:
        self.npu_event = next(_numbers)
        self._gate = Gate(repr(self))

    def record(self, stream: Stream | None = None) -> None:
        stream = current_stream() if stream is None else stream
        self._do(Set(self._gate), stream)

    def wait(self, stream: Stream | None = None) -> None:
        stream = current_stream() if stream is None else stream
        self._do(Pass(self._gate), stream)

    def reset(self, stream: Stream | None = None) -> None:
        stream = current_stream() if stream is None else stream
        self._do(Reset(self._gate), stream)

    def _do(self, entry: Pass | Set | Reset, stream: Stream) -> None:
        capture = capturing.of_stream(stream)
        if capture is not None:
            capture.add(entry, stream)
            return
        if isinstance(entry, Set) and stream.queue.is_parked:
            self._gate.opener = stream.queue
        stream.queue.submit(entry.work(stream))

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.npu_event)

    def __repr__(self) -> str:
        return f"<simulated NPU external event {self.npu_event}>"
