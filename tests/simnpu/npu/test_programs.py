"""Random programs: replay on new inputs equals running them anew, bit for bit."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.simnpu import npu
from ascend_shims.simnpu.npu import hazards

from . import kernels, operators  # noqa: F401 - defines torch.ops.rigtest

Tensors = list[torch.Tensor | None]

SHAPES = [(6,), (2, 3), (3, 2), (1, 6), (2, 1, 3)]


@dataclass(frozen=True)
class Step:
    """One line of a program; `a` and `b` choose among the tensors there are."""

    name: str
    a: int
    b: int
    number: int


def fit(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """`value` in a shape that goes with `like`."""
    flat = value.reshape(-1)
    if flat.numel() < like.numel():
        return flat.sum().to(like.dtype)
    return flat[: like.numel()].reshape(like.shape).to(like.dtype)


def writable(tensor: torch.Tensor) -> bool:
    return 0 not in tensor.stride()


def in_place(x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor | None:
    if writable(x):
        [operator.iadd, operator.isub, operator.imul][n % 3](x, fit(y, x).clone())
    return None


def out(x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor | None:
    if writable(x):
        torch.add(fit(y, x).expand(x.shape).clone(), n, out=x)
    return None


def out_of_nothing(x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
    made = torch.empty(0, dtype=x.dtype)
    torch.mul(x, n, out=made)
    return made


def uninitialised(x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
    made = [
        lambda: torch.empty_like(x),
        lambda: x.new_empty(x.shape),
        lambda: torch.empty(x.shape, dtype=x.dtype),
        lambda: torch.empty_strided(x.shape, x.contiguous().stride(), dtype=x.dtype),
    ][n % 4]()
    if writable(made):
        return made.copy_(x)
    return x.clone()


def scaled(x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor | None:
    if writable(y) and y.is_floating_point() and x.dtype == y.dtype:
        total = torch.zeros((), dtype=x.dtype)
        made = torch.ops.rigtest.scaled(x, total, float(n))
        return made + total
    return None


def add_kernel(x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
    left, right = x.contiguous().clone(), fit(y, x).expand(x.shape).contiguous()
    made = torch.empty(x.shape, dtype=x.dtype)
    count = x.numel()
    kernels.add[lambda meta: (-(-count // meta["BLOCK"]),)](
        left, right, made, count, n, BLOCK=4
    )
    return made


STEPS: dict[str, Callable[[torch.Tensor, torch.Tensor, int], torch.Tensor | None]] = {
    "in place": in_place,
    "out": out,
    "out of nothing": out_of_nothing,
    "uninitialised": uninitialised,
    "custom": scaled,
    "triton": add_kernel,
    "add": lambda x, y, n: x + fit(y, x) * n,
    "cat": lambda x, y, n: torch.cat([x.reshape(-1), y.reshape(-1)])[:6],
    "where": lambda x, y, n: torch.where(x > n, x, fit(y, x)),
    "reshape": lambda x, y, n: (
        x.reshape(-1)[:6].reshape(SHAPES[n % 5]) if x.numel() >= 6 else x.reshape(-1)
    ),
    "transpose": lambda x, y, n: x.transpose(0, -1),
    "slice": lambda x, y, n: x[: max(1, n % 3)],
    "step": lambda x, y, n: x.reshape(-1)[:: 1 + n % 2],
    "expand": lambda x, y, n: x.reshape(-1)[:3].expand(2, -1),
    "to": lambda x, y, n: x.to([torch.float32, torch.float64, torch.int32][n % 3]),
    "contiguous": lambda x, y, n: x.contiguous(),
    "constant": lambda x, y, n: torch.tensor([n, n + 1, n + 2], dtype=x.dtype),
    "squeeze in place": lambda x, y, n: x.clone().unsqueeze_(0).mul_(2),
    "sort": lambda x, y, n: x.reshape(-1).sort().values,
}

programs = st.lists(
    st.builds(
        Step,
        st.sampled_from([*STEPS, "forget"]),
        st.integers(0, 30),
        st.integers(0, 30),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=14,
)


def run(program: Sequence[Step], inputs: Sequence[torch.Tensor]) -> Tensors:
    tensors: Tensors = list(inputs)
    for step in program:
        held = [one for one in tensors if one is not None]
        x, y = held[step.a % len(held)], held[step.b % len(held)]
        if step.name == "forget":
            index = step.a % len(tensors)
            # Inputs are the caller's.
            if index >= len(inputs):
                tensors[index] = None
            continue
        made = STEPS[step.name](x, y, step.number)
        tensors.append(made)
    return tensors


def fresh(seed: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(-4, 5, (2, 3), generator=generator).float(),
        torch.randint(-4, 5, (6,), generator=generator).double(),
        torch.randint(-4, 5, (3, 2), generator=generator, dtype=torch.int32),
    ]


def same(one: Tensors, other: Tensors) -> None:
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        assert (left is None) == (right is None)
        if left is not None:
            torch.testing.assert_close(left, right, rtol=0, atol=0, equal_nan=True)


@pytest.mark.filterwarnings("ignore:the graph is empty")
@settings(max_examples=60, deadline=None)
@given(
    programs,
    st.sampled_from([torch.inference_mode, torch.no_grad, nullcontext]),
    st.booleans(),
)
def test_replay_equals_eager(
    program: list[Step],
    context: Callable[[], AbstractContextManager[object]],
    watched: bool,
) -> None:
    watch: Any = hazards.watching if watched else functools.partial(nullcontext, [])
    inputs = fresh(0)
    graph = npu.NPUGraph()
    with context(), watch() as found:
        with npu.graph(graph):
            tensors = run(program, inputs)
        npu.synchronize()
        same(tensors, run(program, fresh(0)))
        for seed in (1, 2):
            expected = run(program, fresh(seed))
            for buffer, value in zip(inputs, fresh(seed), strict=True):
                buffer.copy_(value)
            npu.synchronize()
            if graph._recording is not None and graph._recording.entries:
                graph.replay()
                same(tensors, expected)
            npu.synchronize()
    assert found == []
    graph.reset()
