"""`kv-cache`: a KV cache whose backings start where Ascend's transfers want them.

The data-transfer engine registers memory in units of 2 MiB: each backing must
start at a multiple of 2 MiB, and where a KV connector is configured its memory
must extend to a multiple of 2 MiB too.

Upstream decides sizes, views and aliasing. It is asked for them on the `meta`
device, where an allocation is only a description, and the views it returns are
laid out again, one for one, on aligned memory. So there is no second copy of
its layout rules here, and never a second cache in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

__all__ = [
    "GRANULE",
    "Backing",
    "SharedBackingError",
    "allocate_backing",
    "allocate_layers",
    "backings",
]

log = logging.getLogger("ascend_shims.kv_cache")

GRANULE = 2 * 1024 * 1024
"""Bytes. What a transfer engine registers memory in."""

_Caches = dict[str, torch.Tensor]


class SharedBackingError(ValueError):
    """Layers that must share one backing are described with several sizes."""


@dataclass(frozen=True)
class Backing:
    """One allocation of a KV cache, as a connector registers it."""

    base: int
    """Address of its first byte."""
    length: int
    """Bytes from `base` that belong to it."""
    layers: tuple[str, ...]
    """Names of the layers with a view into it, sorted."""


def allocate_layers(
    call: Callable[..., _Caches],
    kv_cache_config: Any,
    shared_layers: Any,
    device: torch.device,
) -> _Caches:
    """Stands before `_allocate_kv_cache` of `vllm.v1.worker.gpu.attn_utils`.

    Returns raw int8 tensors by layer name, each of the size that the
    configuration says, sharing memory exactly where upstream's do.
    """
    described = call(kv_cache_config, shared_layers, torch.device("meta"))
    return _realise(described, device)


def allocate_backing(
    call: Callable[..., _Caches],
    kv_cache_config: Any,
    device: torch.device,
    *args: Any,
    **kwargs: Any,
) -> _Caches:
    """Stands before `allocate_kv_cache` as `vllm.v1.worker.gpu.attn_utils` sees it.

    Returns upstream's views, `[B, H, N, C]` a layer, on one aligned backing.

    Raises:
        SharedBackingError: the configuration describes several backings.
    """
    _check_one_backing(kv_cache_config)
    described = call(kv_cache_config, torch.device("meta"), *args, **kwargs)
    return _realise(described, device)


def backings(caches: Mapping[str, torch.Tensor]) -> tuple[Backing, ...]:
    """The allocations behind a KV cache, each once, in order of address.

    Args:
        caches: views by layer name, as upstream hands them to a connector.

    For memory that was not laid out here, a backing is the storage as it is.
    """
    by_storage: dict[int, list[str]] = {}
    for name, view in caches.items():
        by_storage.setdefault(view.untyped_storage().data_ptr(), []).append(name)
    return tuple(
        _backing(start, [caches[name] for name in names], sorted(names))
        for start, names in sorted(by_storage.items())
    )


def _backing(start: int, views: list[torch.Tensor], names: list[str]) -> Backing:
    storage_end = start + views[0].untyped_storage().nbytes()
    base = _up(start)
    if min(view.data_ptr() for view in views) < base:
        return Backing(start, storage_end - start, tuple(names))
    used = max(_end(view) for view in views) - base
    length = _up(used) if base + _up(used) <= storage_end else used
    return Backing(base, length, tuple(names))


def _end(view: torch.Tensor) -> int:
    """The address after the last byte that a view reaches."""
    reach = sum(
        (n - 1) * stride for n, stride in zip(view.shape, view.stride(), strict=True)
    )
    return view.data_ptr() + (reach + 1) * view.itemsize


def _up(size: int) -> int:
    return -(-size // GRANULE) * GRANULE


def _check_one_backing(kv_cache_config: Any) -> None:
    tensors = kv_cache_config.kv_cache_tensors
    sizes = sorted({tensor.size for tensor in tensors})
    if len(sizes) <= 1:
        return
    layers = {
        size: ", ".join(n for t in tensors if t.size == size for n in t.layers)
        for size in sizes
    }
    listed = "; ".join(f"{size} bytes for {names}" for size, names in layers.items())
    raise SharedBackingError(
        f"the layers of a KV cache share one backing, but it is described as {listed}"
    )


def _has_connector() -> bool:
    from vllm.distributed.kv_transfer import has_kv_transfer_group

    return bool(has_kv_transfer_group())


def _aligned(size: int, device: torch.device, extend: bool) -> tuple[torch.Tensor, int]:
    """Zeroed memory with `size` bytes from an aligned address on.

    Returns the whole allocation and the offset, in bytes, of that address.
    """
    usable = _up(size) if extend else size
    # An allocator gives no alignment of 2 MiB: take that much more, and start
    # where a multiple of it falls.
    memory = torch.zeros(usable + GRANULE, dtype=torch.int8, device=device)
    start = memory.data_ptr()
    return memory, _up(start) - start


def _realise(described: _Caches, device: torch.device) -> _Caches:
    """The tensors that `described` describes, on aligned memory of `device`."""
    extend = _has_connector()
    memories: dict[int, tuple[torch.Tensor, int]] = {}
    views: dict[int, torch.Tensor] = {}
    caches: _Caches = {}
    padding = 0
    for name, meta in described.items():
        storage = meta.untyped_storage()
        if storage._cdata not in memories:
            memories[storage._cdata] = _aligned(storage.nbytes(), device, extend)
            padding += memories[storage._cdata][0].nbytes - storage.nbytes()
        if id(meta) not in views:
            views[id(meta)] = _view(meta, *memories[storage._cdata])
        caches[name] = views[id(meta)]
    log.info(
        "%d KV cache backings aligned to 2 MiB, %.1f MiB of padding",
        len(memories),
        padding / 2**20,
    )
    return caches


def _view(meta: torch.Tensor, memory: torch.Tensor, offset: int) -> torch.Tensor:
    real = torch.empty(0, dtype=meta.dtype, device=memory.device)
    start = offset // meta.itemsize + meta.storage_offset()
    return real.set_(memory.untyped_storage(), start, meta.size(), meta.stride())
