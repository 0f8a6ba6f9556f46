"""How much of the device's memory is in use, and who holds it.

Memory is counted where it is asked for and given back when the storage that was
handed out dies. Storages die anywhere, in a garbage collection too, so what they
leave behind is queued and settled by whoever looks next: no count is ever read
while something is still owed.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import torch

from .errors import MemoryBudgetError, OutOfMemoryError
from .indices import device_index
from .modes import quiet

__all__ = [
    "GRANULE",
    "VARIABLE",
    "Lease",
    "Memory",
    "Segment",
    "account",
    "allocate",
    "another_storage",
    "at_death",
    "device_memory",
    "empty_cache",
    "max_memory_allocated",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "on_storage",
    "parse_bytes",
    "reset_peak_memory_stats",
    "rounded",
]

VARIABLE = "ASCEND_SHIMS_SIM_MEMORY"
GRANULE = 512
"""Bytes. Every allocation is rounded up to a multiple, as the device's is."""

_DEFAULT = 64 << 30
_UNITS = {"": 1, "k": 10, "m": 20, "g": 30, "t": 40}


def parse_bytes(text: str) -> int:
    """`512MiB`, `2 GiB`, `1.5g` or a plain number of bytes.

    Raises `MemoryBudgetError`.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", text.lower())
    size = 0
    if match:
        unit = _UNITS[match[2]]
        size = int(float(match[1]) * (1 << unit if match[2] else 1))
    if size <= 0:
        raise MemoryBudgetError(
            f"{VARIABLE}={text} is no size; write a number of bytes, or one with a "
            "unit, for example 512MiB or 2GiB"
        )
    return size


def rounded(nbytes: int) -> int:
    return -(-nbytes // GRANULE) * GRANULE


class Lease:
    """Memory that was handed out; it ends when the storage handed out dies.

    `memory` is another tensor of bytes on the same memory: whoever holds that one
    keeps the bytes, not the lease.
    """

    __slots__ = ("__weakref__", "memory", "owner")

    def __init__(self, memory: torch.Tensor, owner: object) -> None:
        self.memory = memory
        self.owner = owner
        """The pool it came from, or `None`."""

    def alias(self, like: torch.Tensor) -> torch.Tensor:
        """A tensor with the geometry of `like`, which lies in this memory."""
        return on_storage(self.memory, like)


def on_storage(memory: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A plain tensor shaped as `like` is, on the storage of `memory`."""
    return torch.empty(0, dtype=like.dtype).set_(
        memory.untyped_storage(), like.storage_offset(), like.size(), like.stride()
    )


def another_storage(memory: torch.Tensor) -> torch.Tensor:
    """A tensor of bytes on the same memory, with a storage of its own.

    It keeps the memory alive, and the storage of `memory` too.
    """
    return torch.from_numpy(memory.numpy())


class Segment(msgspec.Struct, frozen=True, eq=False):
    """One stretch of memory that the budget was charged for."""

    number: int
    memory: torch.Tensor

    @property
    def size(self) -> int:
        return self.memory.numel()


class Memory:
    """The memory of one device: a budget and what of it is used.

    Args:
        budget: bytes. Default: what `ASCEND_SHIMS_SIM_MEMORY` says, else 64 GiB.
    """

    def __init__(self, budget: int | None = None) -> None:
        if budget is None:
            text = os.environ.get(VARIABLE, "").strip()
            budget = parse_bytes(text) if text else _DEFAULT
        self.budget = budget
        self._reserved = 0
        self._allocated = 0
        self._peak = 0
        self._lock = threading.Lock()
        self._owed: deque[Callable[[], None]] = deque()
        self._leases: dict[int, Lease] = {}
        self._accounted: set[int] = set()
        self._segments: dict[int, Segment] = {}
        self._numbers = itertools.count(1)

    @contextmanager
    def settled(self) -> Iterator[None]:
        """The books, locked, with everything settled that was owed."""
        with self._lock:
            self._settle()
            try:
                yield
            finally:
                self._settle()

    def _settle(self) -> None:
        while self._owed:
            self._owed.popleft()()

    def owe(self, give_back: Callable[[], None]) -> None:
        """Settle `give_back` now, or when whoever has the books puts them down.

        For finalizers: they may run in the midst of any other method.
        """
        self._owed.append(give_back)
        if self._lock.acquire(blocking=False):
            try:
                self._settle()
            finally:
                self._lock.release()

    # The next six want the books to be `settled()`.

    def segment(self, size: int) -> Segment:
        """Fresh memory, from the budget. Raises `OutOfMemoryError`."""
        self.reserve(size)
        try:
            memory = torch.empty(size, dtype=torch.uint8)
        except BaseException:
            self.unreserve(size)
            raise
        segment = Segment(next(self._numbers), memory)
        self._segments[segment.number] = segment
        return segment

    def release(self, segment: Segment) -> None:
        del self._segments[segment.number]
        self.unreserve(segment.size)

    def reserve(self, nbytes: int) -> None:
        """Take from the budget. Raises `OutOfMemoryError`."""
        free = self.budget - self._reserved
        if nbytes > free:
            raise OutOfMemoryError(
                f"NPU out of memory: {nbytes} bytes were asked for, {free} of "
                f"{self.budget} are free ({self._allocated} are held by tensors). "
                f"{VARIABLE} sets the budget"
            )
        self._reserved += nbytes

    def unreserve(self, nbytes: int) -> None:
        self._reserved -= nbytes

    def lent(self, nbytes: int) -> None:
        """Reserved bytes went to a tensor."""
        self._allocated += nbytes
        self._peak = max(self._peak, self._allocated)

    def returned(self, nbytes: int) -> None:
        self._allocated -= nbytes

    def hand_out(
        self, memory: torch.Tensor, owner: object, give_back: Callable[[], None]
    ) -> torch.Tensor:
        """A tensor of bytes on `memory`; `give_back` follows when its storage dies.

        Wants the books to be `settled()`.
        """
        handed = another_storage(memory)
        storage = handed.untyped_storage()
        key = storage._cdata
        self._leases[key] = Lease(memory, owner)

        def end() -> None:
            del self._leases[key]
            give_back()

        at_death(storage, self.owe, end)
        return handed

    def lease_of(self, tensor: torch.Tensor) -> Lease | None:
        """The lease on a tensor's memory, if this package handed it out."""
        with self.settled():
            return self._leases.get(tensor.untyped_storage()._cdata)

    def allocate(self, nbytes: int) -> torch.Tensor:
        """A counted tensor of `nbytes` uninitialised bytes.

        Raises `OutOfMemoryError`.
        """
        size = rounded(nbytes)
        with quiet(), self.settled():
            segment = self.segment(size)
            self.lent(size)

            def end() -> None:
                self.returned(size)
                self.release(segment)

            return self.hand_out(segment.memory, None, end)[:nbytes]

    def account(self, tensor: torch.Tensor) -> None:
        """Count a tensor's storage, until it dies, once; memory from here is counted.

        Raises `OutOfMemoryError`.
        """
        storage = tensor.untyped_storage()
        key = storage._cdata
        size = rounded(storage.nbytes())
        with self.settled():
            if key in self._accounted or key in self._leases:
                return
            self.reserve(size)
            self.lent(size)
            self._accounted.add(key)

        def end() -> None:
            self._accounted.discard(key)
            self.returned(size)
            self.unreserve(size)

        at_death(storage, self.owe, end)

    def segment_of(self, tensor: torch.Tensor) -> int | None:
        """The number of the segment that a tensor lies in; none is used twice."""
        place = tensor.data_ptr()
        with self.settled():
            for segment in self._segments.values():
                if 0 <= place - segment.memory.data_ptr() < segment.size:
                    return segment.number
        return None

    @property
    def allocated(self) -> int:
        """Bytes that tensors hold."""
        with self.settled():
            return self._allocated

    @property
    def reserved(self) -> int:
        """Bytes that tensors and the pools of graphs hold."""
        with self.settled():
            return self._reserved

    @property
    def free(self) -> int:
        with self.settled():
            return self.budget - self._reserved

    @property
    def peak(self) -> int:
        """The most bytes that tensors held at once, since `reset_peak`."""
        with self.settled():
            return self._peak

    def reset_peak(self) -> None:
        with self.settled():
            self._peak = self._allocated

    @contextmanager
    def limited(self, budget: int | str) -> Iterator[None]:
        """Another budget for a while; a string is read as the variable is."""
        before = self.budget
        self.budget = parse_bytes(budget) if isinstance(budget, str) else budget
        try:
            yield
        finally:
            self.budget = before


def at_death(thing: Any, then: Callable[..., None], *args: object) -> None:
    """Call `then(*args)` when `thing` dies, but not at exit, when all goes."""
    weakref.finalize(thing, then, *args).atexit = False


_device: Memory | None = None
_making = threading.Lock()


def device_memory() -> Memory:
    """The one memory of this process."""
    global _device
    if _device is None:
        with _making:
            if _device is None:
                _device = Memory()
    return _device


def allocate(nbytes: int) -> torch.Tensor:
    """A counted tensor of bytes. Raises `OutOfMemoryError`."""
    return device_memory().allocate(nbytes)


def account(tensor: torch.Tensor) -> None:
    """Count a tensor's storage until it dies. Raises `OutOfMemoryError`."""
    device_memory().account(tensor)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes."""
    device_index(device)
    memory = device_memory()
    return memory.free, memory.budget


def memory_allocated(device: Any = None) -> int:
    device_index(device)
    return device_memory().allocated


def memory_reserved(device: Any = None) -> int:
    device_index(device)
    return device_memory().reserved


def max_memory_allocated(device: Any = None) -> int:
    device_index(device)
    return device_memory().peak


def reset_peak_memory_stats(device: Any = None) -> None:
    device_index(device)
    device_memory().reset_peak()


def empty_cache() -> None:
    """Without effect: unused memory goes back to the budget by itself."""
