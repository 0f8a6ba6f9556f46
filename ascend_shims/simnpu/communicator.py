"""Collectives of the software NPU, over gloo.

Upstream's communicator for devices without kernels of their own does with torch's
collectives what is needed. Only the sum is an operator here, since it is part of
forward passes and so of graphs, which record operators.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.distributed.device_communicators.xpu_communicator import XpuCommunicator

from . import ops

__all__ = ["SimNPUCommunicator"]


class SimNPUCommunicator(XpuCommunicator):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        ops.register()
        self._name = ops.know_group(self.unique_name, self.device_group)

    def all_reduce(
        self, input_: torch.Tensor, *args: Any, **kwargs: Any
    ) -> torch.Tensor:
        """The sum over all ranks of the group, in a tensor of its own."""
        output = input_.clone()
        torch.ops.simnpu.all_reduce(output, self._name)
        return output

    def all_gatherv(
        self, input_: Any, dim: int = 0, sizes: list[int] | None = None
    ) -> Any:
        """The rows of all ranks, one after the other: gloo gathers only equal parts,
        so that each rank adds its own to zeros. `dim` is 0, as upstream asks for."""
        if not isinstance(input_, torch.Tensor):
            return [self.all_gatherv(one, dim, sizes) for one in input_]
        rows, own = self._share(sizes, len(input_))
        gathered = input_.new_zeros((rows, *input_.shape[1:]))
        gathered[own] = input_
        return self.all_reduce(gathered)

    def reduce_scatterv(
        self,
        input_: torch.Tensor,
        dim: int = -1,
        sizes: list[int] | None = None,
    ) -> torch.Tensor:
        """This rank's rows of the sum over all ranks."""
        _, own = self._share(sizes, len(input_) // self.world_size)
        return self.all_reduce(input_)[own].clone()

    def _share(self, sizes: list[int] | None, each: int) -> tuple[int, slice]:
        """All rows of the group, and which of them are this rank's."""
        counts = sizes or [each] * self.world_size
        start = sum(counts[: self.rank_in_group])
        return sum(counts), slice(start, start + counts[self.rank_in_group])
