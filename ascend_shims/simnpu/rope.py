"""Rotary embeddings by an operator that takes separate cos and sin.

The device's operator looks nothing up: it takes a row of cos and a row of sin for
each token, from buffers that somebody has filled for the step. Every rotary class
of upstream is served through vLLM's own register of platform operators, by a
subclass whose forward takes the step's tables in place of the positions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ascend_shims.device.rope import UnsupportedRopeError, source_of
from ascend_shims.device.tables import table_for

from . import ops
from .errors import RopeTablesMissingError

__all__ = ["register"]


class _FromTables:
    """Mixed in before a rotary class: rotates by the step's tables."""

    def forward(self, positions: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        table = table_for(self)  # type: ignore[arg-type]
        if table is None:
            if not _is_served(self):
                return super().forward(positions, *args, **kwargs)  # type: ignore[misc]
            raise RopeTablesMissingError(
                f"{type(self).__name__} rotates with cos and sin that are set once "
                "and refreshed before each step, and nobody has set them; switch "
                "the gap cos-sin on"
            )
        query, key = _query_and_key(*args, **kwargs)
        cos, sin = table.for_tokens(positions.shape[-1])
        return _rotated(self, query, key, cos, sin, table.source.neox)


def _query_and_key(
    query: torch.Tensor, key: torch.Tensor | None = None, *_: Any, **__: Any
) -> tuple[torch.Tensor, torch.Tensor | None]:
    return query, key


def _is_served(rope: Any) -> bool:
    try:
        source_of(rope, torch.float32)
    except UnsupportedRopeError:
        return False
    return True


def _rotated(
    rope: Any,
    query: torch.Tensor,
    key: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    neox: bool,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    num_tokens = cos.numel() // cos.shape[-1]
    width = rope.rotary_dim
    flat_cos, flat_sin = (t.reshape(num_tokens, width) for t in (cos, sin))
    found = [
        None
        if one is None
        else torch.ops.simnpu.rotary_mul(
            one.reshape(num_tokens, -1, rope.head_size), flat_cos, flat_sin, neox
        ).view(one.shape)
        for one in (query, key)
    ]
    assert found[0] is not None
    return found[0], found[1]


def register() -> None:
    """Serve every rotary class that upstream has loaded, once a process."""
    from vllm.model_executor.custom_op import CustomOp, op_registry_oot
    from vllm.model_executor.layers import rotary_embedding
    from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbeddingBase

    ops.register()
    for name in sorted(vars(rotary_embedding)):
        cls = getattr(rotary_embedding, name)
        if not isinstance(cls, type) or not issubclass(cls, RotaryEmbeddingBase):
            continue
        if cls.__name__ in op_registry_oot or not issubclass(cls, nn.Module):
            continue
        served = type(cls.__name__, (_FromTables, cls), {"__module__": __name__})
        CustomOp.register_oot(served, name=cls.__name__)
