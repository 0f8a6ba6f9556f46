"""Cos and sin of one rotary embedding, as the NPU's rope operators take them.

Upstream's rotary modules keep one table `[positions, rotary_dim]`, the cosines
in the left half and the sines in the right, and look rows up in it while they
rotate. The NPU operators look nothing up: they take one row of cos and one row
of sin for every token of the step, full width, in buffers whose address a
captured graph may hold. `RopeSource` reads the first, `RopeTable` is the second.

Layout of a row of width `rotary_dim`, with `c[i]` the cosine of frequency `i`
and `h` the number of frequencies (sin alike):

- neox: `c[0] … c[h-1] c[0] … c[h-1]`, which fits a rotation of halves;
- interleaved (GPT-J): `c[0] c[0] c[1] c[1] …`, which fits a rotation of pairs.

Either way `x * cos + rotate(x) * sin` is what upstream computes, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import torch
from torch import nn

from ascend_shims.errors import ShimsError

__all__ = [
    "RopeSource",
    "RopeTable",
    "TableTooSmallError",
    "UnsupportedRopeError",
    "attention_ropes",
    "source_of",
]


class UnsupportedRopeError(ShimsError):
    """A rotary embedding whose cos and sin are not rows of a plain table."""


class TableTooSmallError(ShimsError):
    """More tokens were asked of a table than it has rows for."""


class RopeSource(msgspec.Struct, frozen=True, eq=False):
    """How to read one upstream rotary module."""

    module: nn.Module
    rotary_dim: int
    neox: bool
    dtype: torch.dtype
    """What upstream rotates with: the dtype of its table, or of the query where
    its forward casts the table to that."""

    axes: torch.Tensor | None
    """For multi-axis rope, int64 `[rotary_dim]`: the row of a `[axes, tokens]`
    position tensor that each column of the table is looked up by."""

    def table(self) -> torch.Tensor:
        """Upstream's own table `[positions, rotary_dim]`.

        Read afresh each time: upstream swaps the tensor when it casts it.
        """
        table = _table_of(self.module)
        assert table is not None
        return table

    def rows(self, positions: torch.Tensor) -> torch.Tensor:
        """Rows `[tokens, rotary_dim]` for `[tokens]` or `[axes, tokens]` positions.

        Raises `UnsupportedRopeError` for multi-axis positions of a rope that has
        a single axis.
        """
        table = self.table().to(positions.device)
        if positions.dim() == 1:
            return table.index_select(0, positions)
        if self.axes is None:
            raise UnsupportedRopeError(
                f"{type(self.module).__name__} takes positions [tokens], "
                f"not {list(positions.shape)}"
            )
        return table.gather(0, positions.index_select(0, self.axes).t())

    def turns_like(self, other: RopeSource) -> bool:
        """Whether one table of cos and sin serves both modules. Waits for the device.

        Some models build the same rope anew in every layer.
        """
        mine, theirs = self.table(), other.table()
        return (
            (self.neox, self.dtype, mine.dtype, mine.shape)
            == (other.neox, other.dtype, theirs.dtype, theirs.shape)
            and _equal(self.axes, other.axes)
            and _equal(mine, theirs)
        )


class RopeTable(msgspec.Struct, frozen=True, eq=False):
    """Cos and sin of the tokens of one step, at addresses that never change.

    `cos` and `sin` are `[T, 1, 1, rotary_dim]` for MLA and `[1, T, 1, rotary_dim]`
    otherwise, `T` being the capacity in tokens. Rows beyond the current step hold
    what an earlier step or position 0 put there.
    """

    source: RopeSource
    cos: torch.Tensor
    sin: torch.Tensor
    mla: bool

    @classmethod
    def allocate(
        cls, source: RopeSource, capacity: int, *, mla: bool, device: torch.device
    ) -> RopeTable:
        """A table for `capacity` tokens, every row that of position 0."""
        shape = (*((capacity, 1) if mla else (1, capacity)), 1, source.rotary_dim)
        # A step may run inside or outside inference mode; a tensor born inside
        # could not be written outside.
        with torch.inference_mode(False):
            cos = torch.empty(shape, dtype=source.dtype, device=device)
            table = cls(source, cos, torch.empty_like(cos), mla)
            table.refresh(torch.zeros(capacity, dtype=torch.int64, device=device))
        return table

    @property
    def capacity(self) -> int:
        return self.cos.shape[0 if self.mla else 1]

    def for_tokens(self, num_tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Views of cos and sin for the first `num_tokens` tokens of the step.

        Raises `TableTooSmallError`.
        """
        self._check(num_tokens)
        if self.mla:
            return self.cos[:num_tokens], self.sin[:num_tokens]
        return self.cos[:, :num_tokens], self.sin[:, :num_tokens]

    def refresh(self, positions: torch.Tensor) -> None:
        """Write the rows of the step's positions, `[tokens]` or `[axes, tokens]`.

        Everything stays on the device: nothing waits for the positions' values.
        Raises `TableTooSmallError`.
        """
        self._check(positions.shape[-1])
        cos, sin = self.source.rows(positions).chunk(2, dim=-1)
        self._write(self.cos, cos)
        self._write(self.sin, sin)

    def _write(self, buffer: torch.Tensor, half: torch.Tensor) -> None:
        num_tokens, frequencies = half.shape
        if self.source.neox:
            rows = buffer.view(self.capacity, 2, frequencies)[:num_tokens]
            rows.copy_(half.unsqueeze(1))
        else:
            rows = buffer.view(self.capacity, frequencies, 2)[:num_tokens]
            rows.copy_(half.unsqueeze(2))

    def __str__(self) -> str:
        dtype = str(self.cos.dtype).removeprefix("torch.")
        style = "neox" if self.source.neox else "interleaved"
        return f"cos and sin {list(self.cos.shape)} {dtype}, {style}"

    def _check(self, num_tokens: int) -> None:
        if num_tokens > self.capacity:
            raise TableTooSmallError(
                f"a table of {self.capacity} tokens was asked for {num_tokens}; "
                "allocate it for the larger of max_num_batched_tokens and "
                "max_num_reqs * decode_query_len"
            )


def source_of(module: nn.Module, query_dtype: torch.dtype) -> RopeSource:
    """Read a rotary module of a model that computes in `query_dtype`.

    Raises `UnsupportedRopeError` where cos and sin are not rows of one real table
    (Fourier, dual-chunk and complex ropes).
    """
    kind = type(module).__name__
    rope: Any = module
    table = _table_of(module)
    if table is None:
        raise UnsupportedRopeError(f"{kind} keeps no single cos/sin table")
    if table.dim() != 2 or table.is_complex() or table.shape[1] != rope.rotary_dim:
        raise UnsupportedRopeError(
            f"{kind} keeps a table {list(table.shape)} of {table.dtype}, "
            f"not [positions, {rope.rotary_dim}] of real numbers"
        )
    axes = _axes_of(module)
    return RopeSource(
        module=module,
        rotary_dim=rope.rotary_dim,
        # The one class without the attribute (LongRoPE) is neox only.
        neox=getattr(rope, "is_neox_style", True),
        dtype=query_dtype if _casts_its_table(module) else table.dtype,
        axes=None if axes is None else torch.tensor(axes * 2, device=table.device),
    )


def attention_ropes(model: nn.Module) -> Iterator[nn.Module]:
    """The rotary modules that a model's attention layers use, in model order.

    They are found by structure, for they stand under many names and a pipeline
    stage lacks layers: a rotary module whose owner also holds, at whatever depth,
    a layer with a KV cache. That leaves out the ropes of vision and audio towers,
    which turn by other positions than the step's.
    """
    seen: set[int] = set()
    for owner in model.modules():
        ropes = [
            child
            for child in owner.children()
            if _is_rope(child) and id(child) not in seen
        ]
        if ropes and any(map(_has_kv_cache, owner.modules())):
            seen.update(map(id, ropes))
            yield from ropes


def _equal(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return torch.equal(one, other)


def _is_rope(module: nn.Module) -> bool:
    # Attention layers may carry a `rotary_dim` too, but no `base`.
    return hasattr(module, "rotary_dim") and hasattr(module, "base")


def _has_kv_cache(module: nn.Module) -> bool:
    return hasattr(module, "get_kv_cache_spec")


def _table_of(module: Any) -> torch.Tensor | None:
    table: torch.Tensor | None = getattr(module, "cos_sin_cache", None)
    if table is not None:
        return table
    both: torch.Tensor | None = getattr(module, "long_short_cos_sin_cache", None)
    if both is None:
        return None
    # LongRoPE stacks two tables and decides at construction which one serves.
    short: int = module.original_max_position_embeddings
    return both[short:] if module.use_long_rope else both[:short]


def _casts_its_table(module: nn.Module) -> bool:
    # Some forwards cast the table to the query's dtype on first use, others
    # (deepseek's) rotate with it as it is; only their code says which.
    forward = getattr(type(module), "forward_native", None)
    code = getattr(forward, "__code__", None)
    return code is not None and "_match_cos_sin_cache_dtype" in code.co_names


def _axes_of(module: nn.Module) -> list[int] | None:
    """The position axis of each frequency, or `None` for a single axis."""
    for cls in type(module).__mro__:
        if layout := _LAYOUTS.get(cls.__name__):
            return layout(module)
    return None


def _one_after_another(sections: list[int]) -> list[int]:
    return [axis for axis, width in enumerate(sections) for _ in range(width)]


def _space_then_time(height: int, width: int, time: int) -> list[int]:
    return [1 + i % 2 for i in range(height + width)] + [0] * time


def _mrope(module: Any) -> list[int] | None:
    sections = module.mrope_section
    if not sections:
        return None
    if not module.mrope_interleaved:
        return _one_after_another(sections)
    # T H W T H W … while the section of an axis lasts, T where it has run out.
    axes = (i % 3 for i in range(module.rotary_dim // 2))
    return [axis if i < 3 * sections[axis] else 0 for i, axis in enumerate(axes)]


def _mrope_of_ernie(module: Any) -> list[int] | None:
    sections = module.mrope_section
    return _space_then_time(*sections) if sections else None


def _mrope_of_bailing(module: Any) -> list[int]:
    time, height, width = module.mrope_section
    return _space_then_time(height, width, time)


def _mrope_of_pangu(module: Any) -> list[int]:
    axes: list[int] = module.mrope_dim
    return axes[: module.rotary_dim // 2]


def _xdrope(module: Any) -> list[int]:
    return _one_after_another(module.xdrope_section)


_LAYOUTS: dict[str, Callable[[Any], list[int] | None]] = {
    "BailingMRotaryEmbedding": _mrope_of_bailing,
    "Ernie4_5_VLRotaryEmbedding": _mrope_of_ernie,
    "MRotaryEmbedding": _mrope,
    "MRotaryEmbeddingInterleaved": _mrope_of_pangu,
    "XDRotaryEmbedding": _xdrope,
}
