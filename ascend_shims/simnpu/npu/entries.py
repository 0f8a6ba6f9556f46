"""What a graph is made of, and how it runs again.

Operators and kernel launches run on the storage they ran on when they were
captured, with the numbers they had then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import torch
from torch.utils import _pytree as pytree

from . import trees, watched
from .errors import ReplayError
from .kernels import Overload
from .queues import Gate

if TYPE_CHECKING:
    from .streams import Stream

__all__ = ["Call", "Constant", "Entry", "Launch", "Operator", "Pass", "Reset", "Set"]


class Call(msgspec.Struct, frozen=True):
    """Arguments of an operator, tensors by reference and numbers by value."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


class Operator:
    """One call of an operator.

    `results` are the tensors it gave, in order; `None` where it gave a view of what
    it was given, which needs nothing at replay.
    """

    __slots__ = ("call", "func", "result", "results")

    def __init__(
        self,
        func: Overload,
        call: Call,
        result: Any,
        results: Sequence[torch.Tensor | None],
    ) -> None:
        self.func = func
        self.call = call
        self.result = result
        """What the call returned, with tensors by reference."""
        self.results = tuple(results)

    @property
    def name(self) -> str:
        return str(self.func)

    def run(self) -> None:
        call = self.call
        result = self.func(*call.args, **call.kwargs)
        if isinstance(result, torch.Tensor):
            # By far the most frequent; the general way takes longer than many do.
            (recorded,) = self.results
            if recorded is not None:
                self._deliver(recorded, result)
            return
        for recorded, new in zip(self.results, trees.tensors(result), strict=True):
            if recorded is not None:
                self._deliver(recorded, new)
        for leaf in pytree.tree_leaves(result):
            if isinstance(leaf, torch.ScriptObject):
                _finish(leaf)

    def _deliver(self, recorded: torch.Tensor, new: torch.Tensor) -> None:
        if recorded.shape != new.shape:
            raise ReplayError(
                f"{self.name} gave {list(recorded.shape)} when it was captured and "
                f"{list(new.shape)} now; a shape that depends on data cannot be "
                "captured"
            )
        if new.data_ptr() == recorded.data_ptr():
            return
        if 0 in new.stride():
            # Many elements in one place: torch does not write to those.
            new = new.as_strided(*_distinct(new))
            recorded = recorded.as_strided(*_distinct(recorded))
        recorded.copy_(new)


def _distinct(tensor: torch.Tensor) -> tuple[list[int], tuple[int, ...]]:
    """Size and stride of a tensor without its repetitions."""
    stride = tensor.stride()
    size = [
        min(length, 1) if step == 0 else length
        for length, step in zip(tensor.shape, stride, strict=True)
    ]
    return size, stride


def _finish(work: torch.ScriptObject) -> None:
    """Wait for a collective, which the host does not do at replay."""
    from torch._C import _distributed_c10d as c10d

    c10d.Work.unbox(work).wait()


class Constant(msgspec.Struct):
    """A tensor that was made from Python numbers: each replay has them afresh."""

    made: torch.Tensor
    value: torch.Tensor
    name: ClassVar[str] = "constant"

    def run(self) -> None:
        self.made.copy_(self.value)


class Launch(msgspec.Struct):
    """One launch of a kernel that Triton's interpreter runs."""

    executor: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"triton.{getattr(self.executor.fn, '__name__', 'kernel')}"

    def run(self) -> None:
        self.executor(*self.args, **self.kwargs)


class Pass(msgspec.Struct):
    """Wait until an event is recorded."""

    gate: Gate
    name: ClassVar[str] = "wait"

    def work(self, stream: Stream) -> Iterator[Gate]:
        yield self.gate
        watched.waited(stream, self.gate.clock)


class Set(msgspec.Struct):
    """Record an external event."""

    gate: Gate
    name: ClassVar[str] = "record"

    def work(self, stream: Stream) -> Iterator[Gate]:
        self.gate.opener = None
        self.gate.clock = watched.recorded(stream)
        self.gate.open()
        yield from ()


class Reset(msgspec.Struct):
    """Clear an external event."""

    gate: Gate
    name: ClassVar[str] = "reset"

    def work(self, _stream: Stream) -> Iterator[Gate]:
        self.gate.shut()
        yield from ()


Entry = Operator | Constant | Launch | Pass | Set | Reset
