"""Capture: runs each operator, and keeps it."""

from __future__ import annotations

import threading
from typing import Any

import torch

from . import capturing, launches, trees
from .capturing import Capture
from .entries import Call, Constant, Entry, Operator
from .errors import TaskError
from .kernels import Overload, is_composite, redispatch
from .memory import device_memory, on_storage
from .modes import Mode, quiet
from .playing import is_playing
from .pools import Pool
from .streams import Stream, current_stream

__all__ = ["Aliases", "Recorder", "writes"]

_aten = torch.ops.aten

_EMPTY = frozenset(
    {
        _aten.empty.memory_format,
        _aten.empty_like.default,
        _aten.empty_permuted.default,
        _aten.empty_strided.default,
        _aten.new_empty.default,
        _aten.new_empty_strided.default,
    }
)
_LIFTED = frozenset({_aten.lift_fresh.default, _aten.lift_fresh_copy.default})
_UNTOUCHED = frozenset({"prim", "profiler"})
"""Namespaces of operators that never touch a tensor's contents."""

_PLAIN = (torch.Tensor, torch.nn.Parameter)


class Aliases:
    """Tensors for a graph to keep: its own, on the memory of those it was given.

    Memory of the graph's pool is not held by them, so that others may have it as
    soon as the caller lets go; all other memory is.
    """

    def __init__(self, pool: Pool | None) -> None:
        self._pool = pool
        self._known: dict[tuple[Any, ...], torch.Tensor] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        if (
            type(tensor) not in _PLAIN
            or tensor.layout is not torch.strided
            or tensor.device.type != "cpu"
            or tensor.is_quantized
            or tensor.is_conj()
            or tensor.is_neg()
        ):
            return tensor
        lease = device_memory().lease_of(tensor)
        pooled = lease is not None and lease.owner is self._pool
        memory = lease.memory if lease is not None and pooled else tensor
        key = (
            memory.untyped_storage()._cdata,
            tensor.storage_offset(),
            tuple(tensor.size()),
            tensor.stride(),
            tensor.dtype,
        )
        if key not in self._known:
            self._known[key] = on_storage(memory, tensor)
        return self._known[key]

    def within(self, tree: Any) -> Any:
        """Lists, tuples and dictionaries anew, with the tensors in them replaced."""
        return trees.mapped(tree, self.of)


def writes(func: Overload) -> bool:
    """Whether an operator says that it changes an argument."""
    return any(
        argument.alias_info is not None and argument.alias_info.is_write
        for argument in func._schema.arguments
    )


def storages(tree: Any) -> set[int]:
    return {
        tensor.untyped_storage()._cdata
        for tensor in trees.tensors(tree)
        if tensor.layout is torch.strided
    }


class Recorder(Mode):
    """Keeps what runs in one thread on the streams of one capture."""

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self._capture = capture
        self._aliases = Aliases(capture.pool)
        self._in_operator = False

    def start(self) -> None:
        launches.follow(self._launched)
        self.__enter__()

    def stop(self) -> None:
        self.__exit__(None, None, None)
        launches.unfollow(self._launched)

    def _records(self, stream: Stream) -> bool:
        return capturing.of_stream(stream) is self._capture

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        stream = current_stream()
        if not self._records(stream) or func.namespace in _UNTOUCHED:
            return func(*args, **kwargs)
        if is_composite(func):
            with self:
                return redispatch(func, args, kwargs)
        if func in _EMPTY:
            with quiet():
                served = self._from_pool(func, args, kwargs, stream)
            if served is not None:
                return served
        self._in_operator = True
        try:
            result = func(*args, **kwargs)
        finally:
            self._in_operator = False
        if torch.Tag.inplace_view not in func.tags:
            with quiet():
                self._keep(func, args, kwargs, result, stream)
        return result

    def _keep(
        self,
        func: Overload,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
        stream: Stream,
    ) -> None:
        if func in _LIFTED:
            made = self._aliases.of(result)
            self._add(Constant(made, made.clone()), stream)
            return
        given = storages((args, kwargs))
        tensors = trees.tensors(result)
        # Whether it is a view is told by the address: some operators give a view or a
        # copy depending on what they are given.
        fresh = [tensor for tensor in tensors if not storages(tensor) <= given]
        only_views = not fresh and bool(func._schema.returns)
        if func.namespace == "aten" and only_views and not writes(func):
            return
        if func in _EMPTY:
            return
        self._add(
            Operator(
                func,
                Call(self._aliases.within(args), self._aliases.within(kwargs)),
                self._aliases.within(result),
                [
                    self._aliases.of(tensor) if storages(tensor) - given else None
                    for tensor in tensors
                ],
            ),
            stream,
        )

    def _add(self, entry: Entry, stream: Stream) -> None:
        self._capture.add(entry, stream)
        if self._capture.group is not None:
            self._capture.group.append(entry)

    def _from_pool(
        self,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        stream: Stream,
    ) -> torch.Tensor | None:
        """What an `empty` asks for, from the pool; `None` if not device memory."""
        like = args[0] if args and isinstance(args[0], torch.Tensor) else None
        device = kwargs.get("device") or (like.device if like is not None else None)
        if kwargs.get("pin_memory") or (device is not None and device.type != "cpu"):
            return None
        meta = {"device": torch.device("meta"), "pin_memory": False}
        asked = func(*args, **{**kwargs, **meta})
        if asked.layout is not torch.strided or not asked.numel():
            return None
        nbytes = asked.untyped_storage().nbytes()
        memory = self._capture.pool.allocate(nbytes, stream.stream_id)
        return on_storage(memory, asked)

    def _launched(self, launching: launches.Launching, run: launches.Run) -> None:
        stream = current_stream()
        if (
            threading.get_ident() != self._capture.thread
            or self._in_operator
            or is_playing()
            or not self._records(stream)
        ):
            run(launching)
            return
        if self._capture.group is not None:
            raise TaskError(
                "a Triton kernel was launched in a task group; only operators can be "
                "updated"
            )
        with quiet():
            entry, now = launches.frozen(launching, self._aliases.of)
        run(now)
        self._add(entry, stream)
