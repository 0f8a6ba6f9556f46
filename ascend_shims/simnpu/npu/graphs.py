"""Graphs: captured once, replayed on the same storage."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from ...files import write_whole
from . import capturing
from .capturing import Capture
from .errors import CaptureError, NotModelledError, ReplayError
from .modes import is_innermost
from .playing import Play
from .pools import Token, new_token, pool_of
from .queues import Gate
from .recorder import Recorder
from .recording import Recording
from .streams import (
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    synchronize,
)
from .tasks import is_updating

__all__ = [
    "NPUGraph",
    "capturing_graph",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "super_kernel_scope_begin",
    "super_kernel_scope_end",
]

_ERROR_MODES = ("global", "thread_local", "relaxed")


def graph_pool_handle() -> Token:
    """A token for a pool of memory that graphs share."""
    return new_token()


def is_current_stream_capturing() -> bool:
    return capturing.of_stream(current_stream()) is not None


def capturing_graph() -> NPUGraph | None:
    """The graph that the current stream is being captured into, if any."""
    capture = capturing.of_stream(current_stream())
    return None if capture is None else capture.graph


class NPUGraph:
    """Operators, launches and events, captured once, to be replayed.

    Errors are `CaptureError` and `ReplayError`.
    """

    def __new__(cls) -> NPUGraph:
        return super().__new__(cls)

    def __init__(self) -> None:
        self.auto_dispatch_capture = False
        self._recording: Recording | None = None
        self._under_way: tuple[Capture, Recorder] | None = None
        self._why_not = "nothing was captured; capture into it first"

    def capture_begin(
        self, pool: Token | None = None, capture_error_mode: str = "global"
    ) -> None:
        if capture_error_mode not in _ERROR_MODES:
            raise CaptureError(
                f"capture_error_mode={capture_error_mode!r} is none of "
                f"{', '.join(_ERROR_MODES)}"
            )
        if self.auto_dispatch_capture:
            raise NotModelledError(
                "auto_dispatch_capture is not modelled; use graph_task_group_begin and "
                "graph_task_group_end around the operators to update"
            )
        if self._recording is not None:
            raise CaptureError(
                "this graph holds a capture already; reset() it or use another graph"
            )
        stream = current_stream()
        if stream == default_stream():
            raise CaptureError(
                "the default stream cannot be captured; make another one current with "
                "torch.npu.stream(...), or use torch.npu.graph(...)"
            )
        if is_updating():
            raise CaptureError(
                "a task update is under way in this thread; call "
                "graph_task_update_end before the capture"
            )
        if stream.queue.is_parked:
            raise CaptureError(
                f"{stream} is parked on {stream.queue.blocker()}; synchronize it "
                "before the capture"
            )
        source = pool_of(new_token() if pool is None else pool)
        recording = Recording(source)
        capture = Capture(self, stream, recording)
        try:
            capturing.begin(capture)
        except BaseException:
            recording.close()
            raise
        recorder = Recorder(capture)
        try:
            recorder.start()
        except BaseException:
            capturing.end(capture)
            recording.close()
            raise
        self._recording = recording
        self._under_way = capture, recorder
        self._why_not = "its capture is under way"

    def capture_end(self) -> None:
        capture, recorder = self._capture_here()
        if current_stream() != capture.stream:
            raise CaptureError(
                f"the capture began on {capture.stream} and cannot end on "
                f"{current_stream()}; make its stream current again"
            )
        self._stop(capture, recorder)
        problem = None
        if capture.group is not None:
            problem = "a task group was open at its end; call graph_task_group_end"
        elif loose := capture.unjoined():
            problem = (
                f"{', '.join(map(repr, loose))} took part and was not joined again; "
                f"let {capture.stream} wait for an event recorded there"
            )
        if problem is not None:
            self._drop(f"its capture failed: {problem}")
            raise CaptureError(problem)
        recording = capture.recording
        recording.is_complete = True
        if not recording.entries:
            warnings.warn(
                "the graph is empty: nothing ran on the captured stream in this thread",
                stacklevel=2,
            )
            self._why_not = "its capture was empty"

    def abandon(self, why: str) -> None:
        """End a capture that failed: the graph holds nothing and says why."""
        self._stop(*self._capture_here())
        self._drop(f"its capture failed: {why}")

    def _capture_here(self) -> tuple[Capture, Recorder]:
        if self._under_way is None:
            raise CaptureError(
                "no capture into this graph is under way; call capture_begin() first"
            )
        capture, recorder = self._under_way
        if capture.thread != threading.get_ident():
            raise CaptureError("a capture has to end in the thread in which it began")
        if not is_innermost(recorder):
            raise CaptureError(
                "another dispatch mode was entered during the capture and is active "
                "still; leave it before the capture ends"
            )
        return capture, recorder

    def _stop(self, capture: Capture, recorder: Recorder) -> None:
        self._under_way = None
        recorder.stop()
        capturing.end(capture)

    def _drop(self, why_not: str) -> None:
        recording, self._recording = self._recording, None
        self._why_not = why_not
        if recording is not None:
            recording.close()

    def replay(self) -> None:
        """Run all again, on the current stream, up to an event nobody recorded.

        The rest runs when that event is recorded.
        """
        recording = self._recording
        if recording is None or not recording.is_complete or not recording.entries:
            raise ReplayError(f"the graph cannot be replayed: {self._why_not}")
        capture = capturing.active()
        if capture is not None and (
            capture.thread == threading.get_ident()
            or current_stream() in capture.streams
        ):
            raise ReplayError("a graph cannot be replayed in a capture; end it first")
        if is_updating():
            raise ReplayError(
                "a task update is under way in this thread; call "
                "graph_task_update_end before the replay"
            )
        stream = current_stream()
        stream.queue.submit(_counted(recording, stream))

    def reset(self) -> None:
        """Let go of what was captured, and of its memory."""
        if self._under_way is not None:
            raise CaptureError("a graph cannot be reset while it is being captured")
        if self._recording is not None and self._recording.replays_under_way:
            raise ReplayError(
                "a graph cannot be reset while a replay waits for an event; record it "
                "and synchronize first"
            )
        self._drop("it was reset; capture into it again")

    def pool(self) -> Token:
        """The token of its memory, for other graphs to share."""
        if self._recording is None:
            raise CaptureError(f"the graph has no memory pool: {self._why_not}")
        return self._recording.pool.token

    def update(self, cpu_update_input: Any) -> None:  # noqa: ARG002
        raise NotModelledError(
            "NPUGraph.update needs auto_dispatch_capture, which is not modelled; use "
            "graph_task_update_begin and graph_task_update_end"
        )

    def debug_dump(self, debug_path: str) -> None:
        """Write what was captured as JSON: a list of names, in order."""
        if self._recording is None or not self._recording.is_complete:
            raise ReplayError(f"there is nothing to dump: {self._why_not}")
        names = [entry.name for entry in self._recording.entries]
        write_whole(Path(debug_path), json.dumps({"entries": names}, indent=1) + "\n")

    def super_kernel_optimize(
        self,
        optimize_options: Any = None,  # noqa: ARG002
        debug_options: Any = None,  # noqa: ARG002
    ) -> None:
        """Without effect, but refused where the device would: without a capture."""
        if self._recording is None or not self._recording.is_complete:
            raise ReplayError(f"there is nothing to optimize: {self._why_not}")


def super_kernel_scope_begin(scope_name: str | None = None) -> None:
    """Operators from here on may be fused; without effect."""


def super_kernel_scope_end(scope_name: str | None = None) -> None:
    """The end of such operators; without effect."""


def _counted(recording: Recording, stream: Stream) -> Iterator[Gate]:
    recording.replays_under_way += 1
    try:
        yield from Play(recording.entries, stream)
    finally:
        recording.replays_under_way -= 1


class graph:
    """Captures what runs inside into a graph, on a stream of its own by default.

    An exception that leaves it leaves the graph unusable and nothing else behind.
    """

    default_capture_stream: ClassVar[Stream | None] = None

    def __init__(
        self,
        npu_graph: NPUGraph,
        pool: Token | None = None,
        stream: Stream | None = None,
        auto_dispatch_capture: bool = False,
        capture_error_mode: str = "global",
    ) -> None:
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = Stream()
            stream = graph.default_capture_stream
        self.pool: tuple[Token, ...] = () if pool is None else (pool,)
        self.capture_stream = stream
        self.stream_ctx = StreamContext(stream)
        self.npu_graph = npu_graph
        self.capture_error_mode = capture_error_mode
        self.npu_graph.auto_dispatch_capture = auto_dispatch_capture

    def __enter__(self) -> None:
        synchronize()
        self.stream_ctx.__enter__()
        try:
            self.npu_graph.capture_begin(
                self.pool[0] if self.pool else None, self.capture_error_mode
            )
        except BaseException as error:
            self.stream_ctx.__exit__(type(error), error, error.__traceback__)
            raise

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        try:
            if exc_type is None:
                self.npu_graph.capture_end()
            else:
                self.npu_graph.abandon(f"{exc_type.__name__}: {exc_value}")
        finally:
            self.stream_ctx.__exit__(exc_type, exc_value, traceback)
