"""Memory pools of graphs.

A pool keeps what it took from the budget for as long as a graph may replay on it,
and hands the same addresses out again as soon as nobody holds the tensors that had
them: the next capture may overwrite what the last one left, since replays never
overlap.
"""

from __future__ import annotations

import itertools
import threading
import weakref

import msgspec
import torch

from .errors import CaptureError
from .memory import Memory, Segment, device_memory, rounded

__all__ = ["Pool", "new_token", "pool_of"]

_SMALL = 1 << 20
"""Bytes. Requests up to here never break up a segment that was made for more."""

Token = tuple[int, int]


class _Block(msgspec.Struct, eq=False):
    offset: int
    size: int
    lent: bool = False


class _Cut(msgspec.Struct, eq=False):
    """A segment, cut into blocks that cover it in order."""

    whole: Segment
    stream: int
    """Memory is reused in the order of a stream, so another one may not have it."""
    blocks: list[_Block] = msgspec.field(default_factory=list)

    @property
    def idle(self) -> bool:
        return not any(block.lent for block in self.blocks)

    def cut(self, block: _Block, size: int) -> None:
        """Lend the first `size` bytes of a free block."""
        if block.size > size:
            rest = _Block(block.offset + size, block.size - size)
            self.blocks.insert(self.blocks.index(block) + 1, rest)
            block.size = size
        block.lent = True

    def give_back(self, block: _Block) -> None:
        block.lent = False
        kept: list[_Block] = []
        for one in self.blocks:
            if kept and not kept[-1].lent and not one.lent:
                kept[-1].size += one.size
            else:
                kept.append(one)
        self.blocks = kept


class Pool:
    """Memory that captures with the same token share."""

    def __init__(self, token: Token, memory: Memory) -> None:
        self.token = token
        self._memory = memory
        self._cuts: list[_Cut] = []
        self._graphs = 0

    def join(self) -> None:
        """One more graph may replay on this memory."""
        with self._memory.settled():
            self._graphs += 1

    def leave(self) -> None:
        """One less. A finalizer may call it."""
        self._memory.owe(self._left)

    def _left(self) -> None:
        self._graphs -= 1
        self._trim()

    def allocate(self, nbytes: int, stream: int) -> torch.Tensor:
        """A tensor of `nbytes` bytes; its block is lent until its storage dies.

        Raises `OutOfMemoryError`.
        """
        size = rounded(nbytes)
        with self._memory.settled():
            segment, block = self._find(size, stream) or self._grow(size, stream)
            segment.cut(block, size)
            self._memory.lent(size)

            def end() -> None:
                self._memory.returned(size)
                segment.give_back(block)
                self._trim()

            memory = segment.whole.memory[block.offset : block.offset + size]
            return self._memory.hand_out(torch.from_numpy(memory.numpy()), self, end)[
                :nbytes
            ]

    def _find(self, size: int, stream: int) -> tuple[_Cut, _Block] | None:
        fitting = [
            (segment, block)
            for segment in self._cuts
            if segment.stream == stream
            and (segment.whole.size <= _SMALL) == (size <= _SMALL)
            for block in segment.blocks
            if not block.lent and block.size >= size
        ]
        return min(fitting, key=lambda found: found[1].size, default=None)

    def _grow(self, size: int, stream: int) -> tuple[_Cut, _Block]:
        block = _Block(0, size)
        cut = _Cut(self._memory.segment(size), stream, [block])
        self._cuts.append(cut)
        return cut, block

    def _trim(self) -> None:
        # A graph may replay on any address of its pool, lent or not.
        if self._graphs:
            return
        for segment in [one for one in self._cuts if one.idle]:
            self._cuts.remove(segment)
            self._memory.release(segment.whole)


_numbers = itertools.count(1)
_pools: weakref.WeakValueDictionary[Token, Pool] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def new_token() -> Token:
    return (0, next(_numbers))


def pool_of(token: object) -> Pool:
    """The pool behind a token; graphs and leases keep it.

    Raises `CaptureError`.
    """
    if not (
        isinstance(token, tuple)
        and len(token) == 2
        and all(isinstance(number, int) for number in token)
    ):
        raise CaptureError(
            f"{token!r} is no memory pool; pass what graph_pool_handle() or "
            "NPUGraph.pool() returned"
        )
    with _lock:
        pool = _pools.get(token)
        if pool is None:
            pool = _pools[token] = Pool(token, device_memory())
        return pool
