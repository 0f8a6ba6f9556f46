"""A kernel for Triton's interpreter, whatever TRITON_INTERPRET says."""

from __future__ import annotations

from typing import Any

import pytest

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402
from triton.runtime.interpreter import InterpretedFunction  # noqa: E402


def _add(left, right, out, count, number, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    total = tl.load(left + offsets, mask=mask) + tl.load(right + offsets, mask=mask)
    tl.store(out + offsets, total + number, mask=mask)


add: Any = InterpretedFunction(_add)
