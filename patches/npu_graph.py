"""`npu-graph`: `torch.cuda` names that Model Runner V2 uses, served by the NPU.

Each name gets an object of its own: `torch.compile` keys on them, and refuses one
object under two names.

In a FULL graph every attention operator holds a workspace for its number of tokens.
The memory belongs to the capture's pool, which the graph keeps alive; what keeps it
from being used again by the next capture is only our own reference. So when a
capture ends, well or badly, that reference becomes a weak one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ascend_shims.device import graphs
from ascend_shims.device.npu import npu, weak_ref_tensor

__all__ = [
    "CUDAGraph",
    "Event",
    "GenericEvent",
    "Stream",
    "current_device",
    "current_stream",
    "default_stream",
    "graph",
    "graph_pool_handle",
    "is_current_stream_capturing",
    "lock_workspace",
    "mem_get_info",
    "set_stream",
    "stream",
    "synchronize",
    "weak_reference",
    "weak_references",
]

_npu: Any = npu()

_SCOPE = "capture"
"""Names the operators that may be fused: all of a capture."""


class Event(_npu.Event):  # type: ignore[misc]
    """Stands for `torch.cuda.Event`."""


class GenericEvent(_npu.Event):  # type: ignore[misc]
    """Stands for `torch.Event`, whose first argument is a device."""

    def __new__(cls, device: Any = None, **kwargs: Any) -> Any:
        return super().__new__(cls, **_of_event(kwargs))

    def __init__(self, device: Any = None, **kwargs: Any) -> None:
        super().__init__(**_of_event(kwargs))


class Stream(_npu.Stream):  # type: ignore[misc]
    """Stands for `torch.cuda.Stream`."""


class CUDAGraph(_npu.NPUGraph):  # type: ignore[misc]
    """Stands for `torch.cuda.CUDAGraph`."""


class graph(_npu.graph):  # type: ignore[misc]
    """Stands for `torch.cuda.graph`: a capture that gives its workspaces back.

    With `ASCEND_SHIMS_SUPER_KERNEL=1` its operators are fused into super kernels.
    """

    def __enter__(self) -> Any:
        entered = super().__enter__()
        self._fuses = False
        if _wants_super_kernels():
            try:
                _npu.super_kernel_scope_begin(_SCOPE)
            except BaseException as error:
                self.__exit__(type(error), error, error.__traceback__)
                raise
            self._fuses = True
        return entered

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any:
        try:
            try:
                if self._fuses:
                    _npu.super_kernel_scope_end(_SCOPE)
            finally:
                left = super().__exit__(kind, error, traceback)
            if self._fuses and kind is None:
                self.npu_graph.super_kernel_optimize()
            return left
        finally:
            _let_go()


def _wants_super_kernels() -> bool:
    said = os.environ.get("ASCEND_SHIMS_SUPER_KERNEL", "").strip().lower()
    return said in ("1", "true", "on", "yes")


def _of_event(kwargs: dict[str, Any]) -> dict[str, Any]:
    names = ("enable_timing", "blocking", "interprocess")
    return {name: kwargs[name] for name in names if name in kwargs}


def _let_go() -> None:
    """Hold the workspaces of captured operators weakly from now on."""
    for params in graphs.stores():
        for num_tokens, workspace in params.workspaces.items():
            if num_tokens not in params.weak:
                params.workspaces[num_tokens] = weak_ref_tensor(workspace)
                params.weak.add(num_tokens)


def stream(_: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Stands before `torch.cuda.stream`."""
    return _npu.stream(*args, **kwargs)


def default_stream(_: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Stands before `torch.cuda.default_stream`."""
    return _npu.default_stream(*_on_npu(args), **kwargs)


def current_stream(_: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Stands before `torch.cuda.current_stream`."""
    return _npu.current_stream(*_on_npu(args), **kwargs)


def set_stream(_: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Stands before `torch.cuda.set_stream`."""
    return _npu.set_stream(*args, **kwargs)


def synchronize(_: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Stands before `torch.cuda.synchronize`."""
    return _npu.synchronize(*_on_npu(args), **kwargs)


def current_device(_: Callable[..., Any]) -> Any:
    """Stands before `torch.cuda.current_device`."""
    return _npu.current_device()


def mem_get_info(_: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Stands before `torch.cuda.mem_get_info`: free and total bytes."""
    return _npu.mem_get_info(*_on_npu(args), **kwargs)


def graph_pool_handle(_: Callable[..., Any]) -> Any:
    """Stands before `torch.cuda.graph_pool_handle`."""
    return _npu.graph_pool_handle()


def is_current_stream_capturing(_: Callable[..., Any]) -> Any:
    """Stands before `torch.cuda.is_current_stream_capturing`."""
    return _npu.is_current_stream_capturing()


def weak_reference(_: Callable[..., Any], tensor: Any) -> Any:
    """Stands before `weak_ref_tensor` of `vllm.compilation.breakable_cudagraph`."""
    return weak_ref_tensor(tensor)


def weak_references(_: Callable[..., Any], tensors: Any) -> Any:
    """Stands before `weak_ref_tensors` there: a tensor, or a list or tuple of them."""
    if isinstance(tensors, (list, tuple)):
        return type(tensors)(weak_ref_tensor(tensor) for tensor in tensors)
    return weak_ref_tensor(tensors)


def _on_npu(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Upstream passes its own device, which the NPU's functions need not take."""
    return args if args and getattr(args[0], "type", args[0]) == "npu" else ()


def lock_workspace(
    call: Callable[..., Any], runner: Any, *args: Any, **kwargs: Any
) -> Any:
    """Around `GPUModelRunner.capture_model`, before 0.30: as later releases do.

    The workspace that layers share is part of the graphs captured with it. Growing it
    later would leave them with memory that is no longer theirs, so that it raises
    AssertionError from here on. Source: `vllm.v1.worker.workspace`.
    """
    from vllm.v1.worker import workspace

    result = call(runner, *args, **kwargs)
    if workspace.is_workspace_manager_initialized():
        workspace.lock_workspace()
    return result
