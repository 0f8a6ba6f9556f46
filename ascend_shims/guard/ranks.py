"""How the ranks agree to stop at the same step.

A rank that leaves a step alone leaves the others waiting in a collective. So a
detection becomes a vote: before each step all ranks reduce one flag, and act on
it before the next step. The reduction of one step is collected at the next,
when it has long been done: that keeps pipeline stages from waiting for each
other, and no rank can be ahead of another by more than the one step.
"""

from __future__ import annotations

import msgspec
import torch
import torch.distributed as dist

__all__ = ["Ranks", "Vote"]


class Ranks(msgspec.Struct, frozen=True):
    """The ranks that run steps together."""

    group: dist.ProcessGroup
    """On the host side."""
    stages_behind: int = 0
    """How many pipeline stages come after this rank's."""


class Vote:
    """One flag of every rank, once a step.

    A stage waits for the stage before it even to begin a step. So the last stage
    leaves before the step that the vote names, and each one before it a step
    later than its successor, having sent it what it waits for.
    """

    def __init__(self, ranks: Ranks) -> None:
        self._ranks = ranks
        self._cast: tuple[dist.Work, torch.Tensor] | None = None
        self._steps_to_go: int | None = None

    def cast(self, stop: bool) -> bool:
        """Vote, once a lockstep step on every rank; whether this rank is to leave
        now, because some rank voted so before."""
        if self._steps_to_go is None and self._outcome():
            self._steps_to_go = self._ranks.stages_behind
        if self._steps_to_go is not None:
            if self._steps_to_go == 0:
                self._steps_to_go = None
                return True
            self._steps_to_go -= 1
            # Others have left or are about to: nobody reduces any more.
            return False
        flag = torch.tensor([int(stop)], dtype=torch.int32, device="cpu")
        work = dist.all_reduce(
            flag, op=dist.ReduceOp.MAX, group=self._ranks.group, async_op=True
        )
        assert work is not None  # this rank is in the group
        self._cast = (work, flag)
        return False

    def _outcome(self) -> bool:
        if self._cast is None:
            return False
        work, flag = self._cast
        self._cast = None
        work.wait()
        return bool(flag.item())
