"""Multi-head latent attention of the software NPU.

All tokens go the way of decoding: queries are folded into the latent space, and the
operator reads the latent part and the rope part of the cache as two tensors. Upstream
sends prompts another way, by unfolded keys and values; the results are equal up to
the order in which numbers are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from vllm.v1.attention.backend import MultipleOf
from vllm.v1.attention.backends.mla.cpu_mla import CPUMLABackend, CPUMLAImpl

from . import ops
from .attention import FIAImpl, FIAMetadata, FIAMetadataBuilder, halves, run
from .cpu_mla import KeepWeight

__all__ = ["MLABackend", "MLAImpl", "MLAMetadata", "MLAMetadataBuilder"]


@dataclass
class MLAMetadata(FIAMetadata):
    """One step of one KV cache group, all of whose tokens decode."""

    num_prefills: int = 0
    decode: object = True
    """Upstream asks whether there is any."""
    prefill: None = None

    @property
    def num_decodes(self) -> int:
        return len(self.query_ends)

    @property
    def num_decode_tokens(self) -> int:
        return self.num_actual_tokens


class MLAMetadataBuilder(FIAMetadataBuilder):
    metadata = MLAMetadata


class MLABackend(CPUMLABackend):  # type: ignore[misc]
    """Upstream's own shapes; another operator beneath."""

    takes_split_kv = True

    @classmethod
    def get_supported_head_sizes(cls) -> list[int]:
        return []

    @staticmethod
    def get_supported_kernel_block_sizes(
        kv_cache_spec: Any = None,
    ) -> list[int | MultipleOf]:
        return [MultipleOf(16)]

    @classmethod
    def supports_block_size(cls, block_size: int | None) -> bool:
        return block_size is None or block_size % 16 == 0

    @staticmethod
    def get_name() -> str:
        # Upstream keeps one name for backends that it does not know.
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[MLAImpl]:
        return MLAImpl

    @staticmethod
    def get_builder_cls() -> type[MLAMetadataBuilder]:
        return MLAMetadataBuilder


class MLAImpl(CPUMLAImpl):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The layer folds this projection into queries and outputs, once all weights
        # have been loaded and processed.
        self.kv_b_proj.quant_method = KeepWeight()

    def forward_mqa(
        self,
        q: Any,
        kv_c_and_k_pe_cache: Any,
        attn_metadata: MLAMetadata,
        layer: Any,
    ) -> tuple[torch.Tensor, None]:
        """Attention of folded queries: `[tokens, heads, kv_lora_rank]`.

        Raises `PackedCacheError` for a cache that is one tensor.
        """
        latent_cache, rope_cache = halves(kv_c_and_k_pe_cache)
        width = self.kv_lora_rank
        latent, rope = (
            q if isinstance(q, tuple) else q.split((width, q.shape[-1] - width), -1)
        )
        out = torch.empty(latent.shape, dtype=latent.dtype, device=latent.device)
        arguments = {
            "latent_query": latent,
            "rope_query": rope,
            "latent_cache": latent_cache,
            "rope_cache": rope_cache,
            "block_table": attn_metadata.block_table,
            "out": out,
            "scale": self.scale,
        }
        size = ops.workspace_size(len(latent), self.num_heads, width)
        operator = torch.ops.simnpu.mla_attention
        run(operator, layer.layer_name, attn_metadata, size, arguments)
        return out, None

    def do_kv_cache_update(
        self,
        kv_c_normed: torch.Tensor,
        k_pe: torch.Tensor,
        kv_cache: Any,
        slot_mapping: torch.Tensor,
        kv_cache_dtype: str,
        k_scale: torch.Tensor,
    ) -> None:
        if isinstance(kv_cache, torch.Tensor) and kv_cache.numel() == 0:
            return
        latent_cache, rope_cache = halves(kv_cache)
        torch.ops.simnpu.write_cache(
            kv_c_normed.unsqueeze(1),
            k_pe.reshape(len(k_pe), 1, -1),
            latent_cache,
            rope_cache,
            slot_mapping,
        )

    # The very same function: a model may have both kinds of attention, and whoever
    # refreshes a graph calls each function once.
    update_graph_params = staticmethod(FIAImpl.update_graph_params)
