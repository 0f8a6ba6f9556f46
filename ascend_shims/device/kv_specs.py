"""How the KV cache of an upstream layer divides, read from its cache spec.

`check_view` then holds upstream's own view of the cache against that, since a cache
dtype may pack values or keep scales in between, and such a page cannot be divided.
"""

from __future__ import annotations

from typing import Any

import torch

from ascend_shims.device.kv_layout import Parts
from ascend_shims.errors import ShimsError

__all__ = ["UnsplittableCacheError", "check_view", "layer_specs", "parts_of"]


class UnsplittableCacheError(ShimsError, ValueError):
    """A backend takes K and V apart, but a layer's cache cannot be divided so."""


def layer_specs(kv_cache_config: Any) -> dict[str, Any]:
    """The cache spec of each layer of an upstream `KVCacheConfig`, by name."""
    specs = {}
    for group in kv_cache_config.kv_cache_groups:
        own = getattr(group.kv_cache_spec, "kv_cache_specs", {})
        for name in group.layer_names:
            specs[name] = own.get(name, group.kv_cache_spec)
    return specs


def parts_of(name: str, layer: Any, spec: Any) -> Parts:
    """How a token's entry in the cache of a layer divides.

    Args:
        name: of the layer, for messages.
        layer: upstream's attention layer, which knows the dimensions of MLA.
        spec: upstream's `KVCacheSpec` of the layer.

    Raises:
        UnsplittableCacheError: it has no two parts.
    """
    from vllm.v1 import kv_cache_interface as specs

    if isinstance(spec, (specs.MLAAttentionSpec, specs.SlidingWindowMLASpec)):
        latent = getattr(layer, "kv_lora_rank", 0)
        rope = getattr(layer, "qk_rope_head_dim", 0)
        if latent + rope != spec.head_size:
            raise UnsplittableCacheError(
                f"{name}: an MLA cache divides into kv_lora_rank and "
                f"qk_rope_head_dim of its layer, but {latent} and {rope} do not add "
                f"up to its head size {spec.head_size}"
            )
        return Parts(spec.num_kv_heads, latent, rope, regions=False)
    if not isinstance(spec, specs.AttentionSpec):
        raise UnsplittableCacheError(
            f"{name}: {type(spec).__name__} describes no keys and values to divide"
        )
    size = spec.head_size
    # Releases before 0.28 have it on full attention only, where it may differ.
    other = getattr(spec, "head_size_v", size)
    return Parts(spec.num_kv_heads, size, other, regions=size == other)


def check_view(
    name: str, spec: Any, parts: Parts, view: torch.Tensor, num_blocks: int
) -> None:
    """That upstream's view of a layer holds what `parts` says, and nothing else.

    Raises:
        UnsplittableCacheError: it holds something else.
    """
    states = getattr(spec, "num_states", spec.block_size)
    expected = num_blocks * states * parts.heads * (parts.first + parts.second)
    tokens = num_blocks * states // max(view.shape[0], 1)
    if view.numel() == expected and tokens * view.shape[0] == num_blocks * states:
        return
    raise UnsplittableCacheError(
        f"{name}: a cache {list(view.shape)} of {view.dtype} does not hold "
        f"{num_blocks} blocks first, each of {states} tokens with {parts.heads} heads "
        f"of {parts.first} and {parts.second}. KV cache dtypes that pack values or "
        "keep scales beside them cannot be divided: use `auto` or `fp8`"
    )
