"""`extract-hidden-states`: the dump of hidden states on a backing of its own.

Upstream overlays cache groups on one backing, which is sound as long as every group
reads its own blocks only. A dump is read by a connector, after the step and by block,
so its layers (`HiddenStateCacheSpec`) get memory that no other layer writes to.

Upstream's own allocation is asked twice, once for all other layers and once for
these; what else is patched there holds for both.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["count_dump", "separate_dump"]

log = logging.getLogger("ascend_shims.extract_hidden_states")

_Caches = dict[str, torch.Tensor]


def separate_dump(
    call: Callable[..., _Caches],
    kv_cache_config: Any,
    device: torch.device,
    layout: Any,
    *args: Any,
    **kwargs: Any,
) -> _Caches:
    """Stands before `allocate_kv_cache` as `vllm.v1.worker.gpu.attn_utils` sees it.

    Returns upstream's view `[B, H, N, C]` of each layer, those of a dump on one
    backing of their own with a whole page of `page_size_bytes` a block.
    """
    dumps = _dumps(kv_cache_config)
    if not dumps:
        return call(kv_cache_config, device, layout, *args, **kwargs)
    rest = _without(kv_cache_config, dumps)
    own = _alone(kv_cache_config, dumps, layout)
    caches = call(rest, device, layout, *args, **kwargs)
    caches.update(call(own, device, layout, *args, **kwargs))
    order = [name for t in kv_cache_config.kv_cache_tensors for name in t.layers]
    return {name: caches[name] for name in order}


def count_dump(
    call: Callable[..., Any],
    vllm_config: Any,
    kv_cache_specs: list[dict[str, Any]],
    available_memory: list[int],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Stands before `get_kv_cache_configs`, where the engine plans the KV cache.

    A dump of its own costs its pages once more for every block. They are planned
    with, so that all caches stay within the memory there is.
    """
    configs = call(vllm_config, kv_cache_specs, available_memory, *args, **kwargs)
    if not any(_dumps(config) for config in configs):
        return configs
    planned = [
        _left(memory, config)
        for memory, config in zip(available_memory, configs, strict=True)
    ]
    log.info(
        "%.1f MiB of the KV cache memory are kept for hidden states",
        max(m - p for m, p in zip(available_memory, planned, strict=True)) / 2**20,
    )
    return call(vllm_config, kv_cache_specs, planned, *args, **kwargs)


def _dumps(kv_cache_config: Any) -> dict[str, Any]:
    """The specs of the layers that dump hidden states."""
    from vllm.v1.kv_cache_interface import HiddenStateCacheSpec

    found = {}
    for group in kv_cache_config.kv_cache_groups:
        own = getattr(group.kv_cache_spec, "kv_cache_specs", {})
        for name in group.layer_names:
            spec = own.get(name, group.kv_cache_spec)
            if isinstance(spec, HiddenStateCacheSpec):
                found[name] = spec
    return found


def _without(kv_cache_config: Any, dumps: dict[str, Any]) -> Any:
    tensors = [
        tensor
        for tensor in kv_cache_config.kv_cache_tensors
        if dumps.keys().isdisjoint(tensor.layers)
    ]
    return dataclasses.replace(kv_cache_config, kv_cache_tensors=tensors)


def _alone(kv_cache_config: Any, dumps: dict[str, Any], layout: Any) -> Any:
    """The same configuration with those layers only, on a backing that they fill."""
    from vllm.v1.kv_cache_interface import compute_layout_strides

    blocks = kv_cache_config.num_blocks
    size = sum(spec.page_size_bytes for spec in dumps.values()) * blocks
    tensors = []
    offset = 0
    for tensor in kv_cache_config.kv_cache_tensors:
        if dumps.keys().isdisjoint(tensor.layers):
            continue
        spec, number = dumps[tensor.layers[0]], len(tensor.layers)
        layer, block, *_ = compute_layout_strides(spec, blocks, number, layout)
        tensors.append(
            dataclasses.replace(
                tensor,
                size=size,
                offset=offset,
                layer_stride=layer,
                block_stride=block,
            )
        )
        offset += spec.page_size_bytes * number * blocks
    return dataclasses.replace(kv_cache_config, kv_cache_tensors=tensors)


def _left(memory: int, config: Any) -> int:
    """What to plan with, so that pages of a dump fit beside what is planned."""
    page: int = sum(spec.page_size_bytes for spec in _dumps(config).values())
    tensors = config.kv_cache_tensors
    if not page or not tensors:
        return memory
    block: int = tensors[0].size // config.num_blocks
    return memory // (block + page) * block
