"""Which capture is under way, if any.

There is at most one in a process, as on the device. It spreads from the stream that
it began on to streams that wait for an event recorded in it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .clocks import Clocks
from .errors import CaptureError

if TYPE_CHECKING:
    from .entries import Entry
    from .graphs import NPUGraph
    from .pools import Pool
    from .recording import Recording
    from .streams import Stream

__all__ = ["Capture", "active", "begin", "end", "of_stream", "refuse"]


class Capture:
    """What has been captured so far."""

    def __init__(self, graph: NPUGraph, stream: Stream, recording: Recording) -> None:
        self.graph = graph
        self.stream = stream
        self.recording = recording
        self.thread = threading.get_ident()
        self.streams = {stream}
        self.clocks = Clocks()
        self.group: list[Entry] | None = None
        """Entries of the task group that is open."""

    @property
    def pool(self) -> Pool:
        return self.recording.pool

    def add(self, entry: Entry, stream: Stream) -> None:
        self.recording.entries.append(entry)
        self.clocks.tick(stream.stream_id)

    def unjoined(self) -> list[Stream]:
        """Streams with work that the first stream does not wait for."""
        return [
            stream
            for stream in self.streams
            if not self.clocks.covers(
                self.stream.stream_id,
                stream.stream_id,
                self.clocks.of(stream.stream_id).get(stream.stream_id, 0),
            )
        ]


_active: Capture | None = None
_lock = threading.Lock()


def active() -> Capture | None:
    return _active


def of_stream(stream: Stream) -> Capture | None:
    """The capture that a stream takes part in."""
    capture = _active
    return capture if capture is not None and stream in capture.streams else None


def begin(capture: Capture) -> None:
    """Raises `CaptureError` if one is under way already."""
    global _active
    with _lock:
        if _active is not None:
            where = "this" if _active.thread == capture.thread else "another"
            raise CaptureError(
                f"a capture is under way in {where} thread, on {_active.stream}; "
                "end it before the next one begins"
            )
        _active = capture


def end(capture: Capture) -> None:
    global _active
    with _lock:
        if _active is capture:
            _active = None


def refuse(stream: Stream | None, what: str) -> None:
    """Raise `CaptureError` if the host would wait for a stream under capture.

    Without a stream, for the whole device.
    """
    capture = _active if stream is None else of_stream(stream)
    if capture is not None and (
        stream is not None or capture.thread == threading.get_ident()
    ):
        raise CaptureError(
            f"{what} waits for work on {capture.stream}, which is being captured "
            "and does not run; do it before the capture or after it"
        )
