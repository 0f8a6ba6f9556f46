"""Kernels with what upstream's use, run by Triton's interpreter; see `results`.

A process of its own runs them, with `TRITON_INTERPRET=1` from its start: Triton's own
device functions, as `tl.sum`, are interpreted only then.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
import triton
import triton.language as tl


@triton.jit
def _mixed(value, by):
    return value * by + 1


@triton.jit
def _slots(positions, table, out, count, PAGE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        position = tl.load(positions + row * count + at, mask=at < count, other=0)
        page = tl.load(table + position // PAGE)
        slot = page.to(tl.int64) * PAGE + position % PAGE
        tl.store(out + row * count + at, slot, mask=at < count)


@triton.jit
def _sampled(logits, noise, out, best, count, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(logits + row * count + at, mask=at < count, other=float("-inf"))
    drawn = tl.rand(tl.randint(seed, row), at)
    drawn = -tl.log(-tl.log(tl.maximum(drawn, 1e-7)))
    tl.store(noise + row * count + at, drawn, mask=at < count)
    value, index = tl.max(values + drawn, axis=0, return_indices=True)
    tl.store(best + row, index)
    tl.store(out + row, value)


@triton.jit
def _reduced(x, out, count, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < count, other=0.0)
    tl.store(out, tl.sum(values, axis=0))
    tl.store(out + 1, tl.max(values, axis=0))
    tl.store(out + 2, tl.argmax(values, axis=0).to(tl.float32))
    tl.store(out + 3, tl.sum(tl.exp(values - tl.max(values, axis=0)), axis=0))
    tl.store(out + 4 + at, tl.cumsum(values, axis=0))
    tl.store(out + 4 + BLOCK + at, tl.where(values > 0, tl.sqrt(tl.abs(values)), -1.0))


@triton.jit
def _cast(x, out, wide, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    narrow = tl.load(x + at).to(tl.bfloat16)
    tl.store(out + at, narrow)
    tl.store(wide + at, _mixed(narrow.to(tl.float32), 3.0).to(tl.int32))


@triton.jit
def _product(x, y, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    square = at[:, None] * SIZE + at[None, :]
    left, right = tl.load(x + square), tl.load(y + square)
    total = tl.dot(left, right)
    for _ in tl.static_range(2):
        total += tl.trans(left)
    tl.store(out + square, total)


@triton.jit
def _overflowing(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    left, right = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, left + right)
    tl.store(out + BLOCK + at, left - right)
    tl.store(out + 2 * BLOCK + at, left * right)


def _floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def results() -> dict[str, list[Any]]:
    """What each kernel gives, by its name."""
    found: dict[str, list[Any]] = {}

    def keep(kernel: Any, *outputs: torch.Tensor) -> None:
        found[kernel.__name__] = [
            one.contiguous().view(torch.uint8).flatten().tolist() for one in outputs
        ]

    positions = torch.arange(20, dtype=torch.int32).repeat(3)
    table = torch.tensor([7, 2, 9, 4, 1], dtype=torch.int32)
    slots = torch.zeros(60, dtype=torch.int64)
    _slots[(3,)](positions, table, slots, 20, PAGE=4, BLOCK=8)
    keep(_slots, slots)

    noise, values = torch.zeros(2, 50), torch.zeros(2)
    best = torch.zeros(2, dtype=torch.int64)
    _sampled[(2,)](_floats(2, 50), noise, values, best, 50, 2**40 + 7, BLOCK=64)
    keep(_sampled, noise, values, best)

    reduced = torch.zeros(4 + 2 * 32)
    _reduced[(1,)](_floats(27), reduced, 27, BLOCK=32)
    keep(_reduced, reduced)

    narrow, wide = torch.zeros(16, dtype=torch.bfloat16), torch.zeros(16).int()
    _cast[(1,)](_floats(16) * 100, narrow, wide, BLOCK=16)
    keep(_cast, narrow, wide)

    product = torch.zeros(16, 16)
    _product[(1,)](_floats(16, 16), _floats(16, 16) + 1, product, SIZE=16)
    keep(_product, product)

    edges = torch.tensor([2**31 - 1, -(2**31), 5, -7], dtype=torch.int32)
    sums = torch.zeros(12, dtype=torch.int32)
    _overflowing[(1,)](edges, edges.flip(0).contiguous(), sums, BLOCK=4)
    keep(_overflowing, sums)
    return found


if __name__ == "__main__":
    if sys.argv[1] == "quick":
        from ascend_shims.simnpu.interpreter import quicken

        assert quicken()
    print(json.dumps(results()))
