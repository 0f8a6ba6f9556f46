"""MLA on a CPU, for vLLM releases whose own does not run there.

0.28 has an MLA backend for the CPU, but takes its prefill from FlashAttention,
which a CPU build cannot import, and drops a weight that MLA needs after
loading. vLLM keeps registers of attention and prefill backends, open to
plugins; `plugin.general` enters these two where the release lacks its own.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from vllm.model_executor.layers.linear import UnquantizedLinearMethod
from vllm.v1.attention.backends.mla.cpu_mla import CPUMLABackend, CPUMLAImpl
from vllm.v1.attention.backends.mla.prefill import MLAPrefillBackend

__all__ = ["CPUPrefill", "KeepWeight", "RigMLABackend", "ragged_attention"]


def ragged_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    query_starts: list[int],
    key_starts: list[int],
    scale: float,
    causal: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of each request to its own keys, computed in float32.

    `query` is [tokens, heads, d], `key` [keys, heads, d], `value`
    [keys, heads, dv]; request i owns rows `starts[i]:starts[i + 1]`. Gives
    [tokens, heads, dv] in the value's dtype and the logarithm of each softmax's
    denominator, [heads, tokens], float32. With `causal`, the last query row
    sees all keys.
    """
    outputs, denominators = [], []
    for (q0, q1), (k0, k1) in zip(
        itertools.pairwise(query_starts), itertools.pairwise(key_starts), strict=True
    ):
        q = query[q0:q1].float().transpose(0, 1)
        k = key[k0:k1].float().transpose(0, 1)
        scores = q @ k.mT * scale
        if causal:
            hidden = torch.ones(q1 - q0, k1 - k0, dtype=torch.bool)
            scores.masked_fill_(hidden.triu(1 + (k1 - k0) - (q1 - q0)), -torch.inf)
        denominator = scores.logsumexp(-1)
        weights = (scores - denominator.unsqueeze(-1)).exp()
        outputs.append((weights @ value[k0:k1].float().transpose(0, 1)).transpose(0, 1))
        denominators.append(denominator)
    return torch.cat(outputs).to(value.dtype), torch.cat(denominators, dim=1)


class CPUPrefill(MLAPrefillBackend):  # type: ignore[misc]
    """Plain attention, request by request."""

    @staticmethod
    def get_name() -> str:
        return "ASCEND_SHIMS_CPU"

    def run_prefill_new_tokens(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        return_softmax_lse: bool,
        out: torch.Tensor | None = None,
        output_scale: torch.Tensor | None = None,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        if out is not None or output_scale is not None:
            raise NotImplementedError("MLA prefill on the CPU allocates its output")
        starts = self._prefill_metadata.query_start_loc.tolist()
        output, denominators = ragged_attention(
            q, k, v, starts, starts, self.scale, causal=True
        )
        return (output, denominators) if return_softmax_lse else output

    def run_prefill_context_chunk(
        self,
        chunk: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        out: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if out is not None:
            raise NotImplementedError("MLA prefill on the CPU allocates its output")
        return ragged_attention(
            q,
            k,
            v,
            chunk.query_start_loc.tolist(),
            chunk.cu_seq_lens.tolist(),
            self.scale,
            causal=False,
        )


class KeepWeight(UnquantizedLinearMethod):  # type: ignore[misc]
    """Leaves the weight as loaded, where the CPU's would pack and drop it."""

    def process_weights_after_loading(self, layer: Any) -> None:
        layer.cpu_linear = torch.nn.functional.linear


class _Impl(CPUMLAImpl):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # MLA folds this projection into queries and outputs, once all weights
        # have been loaded and processed.
        self.kv_b_proj.quant_method = KeepWeight()


class RigMLABackend(CPUMLABackend):  # type: ignore[misc]
    """Upstream's MLA for the CPU, with the latent projection kept."""

    @staticmethod
    def get_impl_cls() -> type[_Impl]:
        return _Impl
