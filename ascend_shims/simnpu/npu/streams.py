"""Streams, and which of them is current in a thread."""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from typing import Any

import torch

from . import capturing, watched
from .errors import DeadlockError, NotModelledError
from .indices import device_index
from .queues import Queue

__all__ = [
    "PATIENCE",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
    "synchronize",
]

PATIENCE = 1.0
"""Seconds that another thread has to record an event before it counts as missing."""

_DEVICE_TYPE = 20
"""torch's number for PrivateUse1, under which torch_npu has its device."""


class Stream:
    """An order of work. There is one device, and work on it runs at once.

    `stream_id` in `kwargs` gives the stream that has that number already, which is
    how torch_npu makes one Python object from another's three numbers.
    """

    stream_id: int
    queue: Queue

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:
        device_index(device)
        number = kwargs.pop("stream_id", None)
        kwargs.pop("device_index", None)
        kwargs.pop("device_type", None)
        if kwargs:
            raise NotModelledError(
                f"a stream of the software NPU takes no {', '.join(sorted(kwargs))}"
            )
        if number is not None:
            found = _streams.get(number)
            if found is None:
                raise NotModelledError(f"there is no stream number {number} here")
            return found
        return _make(cls, priority)

    priority: int

    @property
    def device(self) -> torch.device:
        """Where tensors of this device lie."""
        return torch.device("cpu")

    @property
    def device_index(self) -> int:
        return 0

    @property
    def device_type(self) -> int:
        return _DEVICE_TYPE

    @property
    def npu_stream(self) -> int:
        return self.stream_id

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.npu_stream)

    def wait_event(self, event: Any) -> None:
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        self.wait_event(stream.record_event())

    def record_event(self, event: Any = None) -> Any:
        if event is None:
            from .events import Event

            event = Event()
        event.record(self)
        return event

    def query(self) -> bool:
        capturing.refuse(self, "query()")
        return not self.queue.is_parked

    def synchronize(self) -> None:
        """Raises `DeadlockError` if work on it waits for an event nobody recorded."""
        capturing.refuse(self, "synchronize()")
        drain(self.queue, f"{self} was synchronized")
        watched.synchronized(self)

    def set_data_preprocess_stream(
        self, is_data_preprocess_stream: bool = False
    ) -> None:
        """Without effect: there is no order of its own for data loading here."""
        self.is_data_preprocess_stream = is_data_preprocess_stream

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.stream_id == other.stream_id

    def __hash__(self) -> int:
        return hash(self.stream_id)

    def __repr__(self) -> str:
        return f"<simulated NPU stream {self.stream_id}>"


_numbers = itertools.count()
_streams: weakref.WeakValueDictionary[int, Stream] = weakref.WeakValueDictionary()
_local = threading.local()


def _make(cls: type[Stream], priority: int) -> Stream:
    made = object.__new__(cls)
    made.stream_id = next(_numbers)
    made.priority = priority
    made.queue = Queue(repr(made))
    _streams[made.stream_id] = made
    return made


_default = _make(Stream, 0)


def default_stream(device: Any = None) -> Stream:
    device_index(device)
    return _default


def current_stream(device: Any = None) -> Stream:
    """The stream on which this thread puts its work."""
    if device is not None:
        device_index(device)
    found: Stream = getattr(_local, "stream", _default)
    return found


def set_stream(stream: Stream | None) -> None:
    if stream is not None:
        _local.stream = stream
        watched.arrive()


class StreamContext:
    """Makes a stream current for a while; `None` changes nothing."""

    def __init__(self, stream_ctx: Stream | None) -> None:
        self.stream = stream_ctx
        self._before: list[Stream] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            self._before.append(current_stream())
            set_stream(self.stream)

    def __exit__(self, exec_type: Any, exec_value: Any, traceback: Any) -> None:
        if self._before:
            set_stream(self._before.pop())


def stream(stream: Stream | None) -> StreamContext:
    """A context in which `stream` is current."""
    return StreamContext(stream)


def synchronize(device: Any = None) -> None:
    """Wait for all streams.

    Raises `DeadlockError` if work on one waits for an event that nobody recorded.
    """
    device_index(device)
    capturing.refuse(None, "synchronize()")
    for each in list(_streams.values()):
        drain(each.queue, "the device was synchronized")
    watched.synchronized(None)


def drain(queue: Queue, why: str) -> None:
    if not queue.is_parked or queue.drained(PATIENCE):
        return
    gate = queue.blocker()
    raise DeadlockError(
        f"{why}, but {queue.label} is parked: it waits for "
        f"{gate.label if gate else 'another thread'}, which nobody has recorded. "
        "Update the graph's tasks and record their events before waiting for it"
    )
