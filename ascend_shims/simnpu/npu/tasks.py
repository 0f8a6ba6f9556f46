"""Task groups: operators in a graph whose arguments can be replaced later."""

from __future__ import annotations

import threading
import weakref
from typing import Any

import msgspec

from . import capturing, trees
from .entries import Call, Operator
from .errors import TaskError
from .kernels import Overload, is_composite, redispatch
from .modes import Mode, is_innermost, quiet
from .recorder import Aliases
from .recording import Recording
from .streams import Stream, current_stream

__all__ = [
    "TaskGroup",
    "graph_task_group_begin",
    "graph_task_group_end",
    "graph_task_update_begin",
    "graph_task_update_end",
    "is_updating",
]

_FIXED = frozenset({"workspace", "out"})
"""Arguments that keep their memory even where the operator does not say it writes."""


class TaskGroup(msgspec.Struct, frozen=True, eq=False):
    """What `graph_task_group_end` gives: operators of one graph."""

    tasks: tuple[Operator, ...]
    recording: weakref.ref[Recording]

    def __repr__(self) -> str:
        return f"<task group: {', '.join(task.name for task in self.tasks)}>"


def graph_task_group_begin(stream: Stream) -> None:
    """The operators that are captured from here on can be updated together."""
    capture = _captured(stream, "graph_task_group_begin")
    if capture.group is not None:
        raise TaskError(
            "a task group is open already; call graph_task_group_end before the next "
            "graph_task_group_begin"
        )
    capture.group = []


def graph_task_group_end(stream: Stream) -> TaskGroup:
    """The handle of the operators captured since `graph_task_group_begin`."""
    capture = _captured(stream, "graph_task_group_end")
    if capture.group is None:
        raise TaskError("no task group is open; call graph_task_group_begin first")
    entries, capture.group = capture.group, None
    tasks = tuple(entry for entry in entries if isinstance(entry, Operator))
    if not tasks:
        raise TaskError(
            "no operator was called between graph_task_group_begin and "
            "graph_task_group_end"
        )
    return TaskGroup(tasks, weakref.ref(capture.recording))


def _captured(stream: Stream, name: str) -> capturing.Capture:
    capture = capturing.of_stream(stream)
    if capture is None:
        raise TaskError(f"{name}: {stream} is not being captured; call it in a capture")
    return capture


class _Update(Mode):
    """Takes the arguments of the operators of a group, and does not run them."""

    def __init__(self, stream: Stream, group: TaskGroup, recording: Recording) -> None:
        super().__init__()
        self.stream = stream
        self.broken = False
        self._group = group
        self._aliases = Aliases(recording.pool)
        self._calls: list[Call] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if self.broken or current_stream() != self.stream:
            return func(*args, **kwargs)
        tasks, done = self._group.tasks, len(self._calls)
        if done < len(tasks) and func is tasks[done].func:
            with quiet():
                return self._take(tasks[done], args, kwargs)
        if is_composite(func):
            with self:
                return redispatch(func, args, kwargs)
        if func.namespace == "aten":
            # New arguments are computed on the host, between whiles.
            return func(*args, **kwargs)
        self.broken = True
        wanted = tasks[done].name if done < len(tasks) else "no further operator"
        raise TaskError(
            f"{func} was called in the update of {self._group}, where {wanted} was "
            "to come; call the operators of the group again, in their order"
        )

    def _take(self, task: Operator, args: tuple[Any, ...], kwargs: Any) -> Any:
        before = _by_name(task.func, task.call.args, task.call.kwargs)
        after = _by_name(task.func, args, kwargs)
        for name in _fixed(task.func):
            if _places(before.get(name)) != _places(after.get(name)):
                self.broken = True
                raise TaskError(
                    f"{task.name}: the update passes other memory as {name} than the "
                    "capture did; pass the very tensors that were captured"
                )
        self._calls.append(
            Call(self._aliases.within(args), self._aliases.within(kwargs))
        )
        return task.result

    def commit(self) -> None:
        """The arguments taken are those of all replays from now on."""
        if self.broken:
            return
        tasks = self._group.tasks
        if len(self._calls) != len(tasks):
            raise TaskError(
                f"the update of {self._group} called {len(self._calls)} of its "
                f"{len(tasks)} operators on {self.stream}; call each once, with that "
                "stream current"
            )
        for task, call in zip(tasks, self._calls, strict=True):
            task.call = call


def _by_name(func: Overload, args: tuple[Any, ...], kwargs: Any) -> dict[str, Any]:
    names = [argument.name for argument in func._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _fixed(func: Overload) -> list[str]:
    return [
        argument.name
        for argument in func._schema.arguments
        if argument.name in _FIXED
        or (argument.alias_info is not None and argument.alias_info.is_write)
    ]


def _places(value: Any) -> list[Any]:
    return [
        (tensor.data_ptr(), tensor.size(), tensor.stride(), tensor.dtype)
        for tensor in trees.tensors(value)
    ]


_local = threading.local()


def is_updating() -> bool:
    """Whether this thread is in the midst of an update."""
    return getattr(_local, "update", None) is not None


def graph_task_update_begin(stream: Stream, handle: TaskGroup) -> None:
    """What this thread calls on `stream` now replaces the arguments of the group."""
    if not isinstance(handle, TaskGroup):
        raise TaskError(
            f"{handle!r} is no task group; pass what graph_task_group_end returned"
        )
    earlier: _Update | None = getattr(_local, "update", None)
    if earlier is not None:
        if not earlier.broken:
            raise TaskError(
                "an update is under way in this thread; call graph_task_update_end "
                "before the next graph_task_update_begin"
            )
        _leave(earlier)
    if capturing.of_stream(stream) is not None:
        raise TaskError(f"{stream} is being captured; update on another stream")
    recording = handle.recording()
    if recording is None or not recording.is_complete:
        raise TaskError(f"the graph of {handle} was reset, is gone or never finished")
    update = _Update(stream, handle, recording)
    update.__enter__()
    _local.update = update


def graph_task_update_end(stream: Stream) -> None:
    """Ends the update; replays use the new arguments from now on."""
    update: _Update | None = getattr(_local, "update", None)
    if update is None or update.stream != stream:
        raise TaskError(
            f"no update is under way on {stream} in this thread; call "
            "graph_task_update_begin first"
        )
    _leave(update)
    update.commit()


def _leave(update: _Update) -> None:
    if not is_innermost(update):
        raise TaskError(
            "another dispatch mode was entered during the update and is active still; "
            "leave it before graph_task_update_end"
        )
    update.__exit__(None, None, None)
    _local.update = None
