"""Operators for the tests: a kernel with host-side lists, and composites."""

from __future__ import annotations

import torch

from ascend_shims.simnpu import npu

ran: list[list[int]] = []
"""The lengths that the kernel ran with."""

_library = torch.library.Library("rigtest", "DEF")
_library.define(
    "attention(Tensor q, int[] lengths, *, Tensor? workspace=None, Tensor(a!) out)"
    " -> ()"
)
_library.define("mean(Tensor x) -> Tensor")
_library.define("other(Tensor(a!) x) -> ()")


def _attention(
    q: torch.Tensor,
    lengths: list[int],
    *,
    workspace: torch.Tensor | None = None,
    out: torch.Tensor,
) -> None:
    ran.append(list(lengths))
    out.copy_(q * float(sum(lengths)))


_library.impl("attention", _attention, "CPU")
_library.impl("mean", lambda x: x.mean().reshape(1), "CompositeExplicitAutograd")
_library.impl("other", lambda x: None, "CPU")
npu.kernel("rigtest::attention")
npu.kernel("rigtest::other")


@torch.library.custom_op("rigtest::scaled", mutates_args=("total",))
def scaled(x: torch.Tensor, total: torch.Tensor, factor: float) -> torch.Tensor:
    """Python code with an operator that mutates and one that gives something new."""
    result = x * factor
    total.add_(result.sum())
    return result


attention = torch.ops.rigtest.attention
mean = torch.ops.rigtest.mean
