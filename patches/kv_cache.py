"""`kv-cache`: K and V apart, on backings that start where Ascend's transfers want them.

Upstream decides sizes, views and aliasing. It is asked for them on the `meta`
device, where an allocation is only a description; the views are then laid out
again on memory in pieces of 2 MiB. So there is no second copy of its layout rules
here, and never a second cache in memory. Layers whose attention backend takes
upstream's packed tensor keep exactly upstream's views.

Layers whose backend takes K and V apart (`ascend_shims.device.kv` says how) get
them so; `ascend_shims.device.kv_layout` says where they lie.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any

import msgspec
import torch
from torch.utils.weak import WeakTensorKeyDictionary

from ascend_shims.device import kv
from ascend_shims.device.kv_layout import Parts, realise
from ascend_shims.device.kv_memory import GRANULE, Backing, backings, padding_bound
from ascend_shims.device.kv_specs import (
    UnsplittableCacheError,
    check_view,
    layer_specs,
    parts_of,
)
from ascend_shims.errors import ShimsError

__all__ = [
    "GRANULE",
    "Backing",
    "SharedBackingError",
    "UnsplittableCacheError",
    "allocate_backing",
    "allocate_layers",
    "backings",
    "bind_pairs",
    "copy_by_block",
    "keep_layers",
    "keep_manager_blocks",
    "reserve_padding",
    "reshape_layers",
    "zero_pairs",
]

log = logging.getLogger("ascend_shims.kv_cache")

META = torch.device("meta")

_Caches = dict[str, torch.Tensor]


class SharedBackingError(ShimsError, ValueError):
    """Layers that must share one backing are described with several sizes."""


class _Call(msgspec.Struct):
    """One call of `init_kv_cache`: whose caches are allocated, and what came out."""

    layers: Mapping[str, Any]
    """Attention layers by name, upstream's forward context."""
    device: torch.device | None = None
    """Where the raw tensors were asked for, before they were described on meta."""
    caches: _Caches = msgspec.field(default_factory=dict)
    """What was laid out; held so that an `id` stays that of one tensor."""
    pairs: dict[int, kv.Pair] = msgspec.field(default_factory=dict)
    """By `id` of a tensor in `caches`: its parts."""
    described: int = 0
    """Bytes of the caches as upstream planned them."""
    taken: int = 0
    """Bytes that were allocated for them."""

    def split(self, names: Iterable[str]) -> Iterator[str]:
        """Those of `names` whose backend takes K and V apart."""
        for name in names:
            layer = self.layers.get(name)
            if layer is not None and kv.takes_split(_backend(layer)):
                yield name


# By tensor of a runner's list: what its blocks are copied by. Goes with the tensor.
_by_block: MutableMapping[torch.Tensor, tuple[torch.Tensor, ...]] = (
    WeakTensorKeyDictionary()
)

_current: ContextVar[_Call | None] = ContextVar("kv_cache_call", default=None)


def keep_layers(call: Callable[..., _Caches], *args: Any, **kwargs: Any) -> _Caches:
    """Around `init_kv_cache`: its layers are known while their caches are made."""
    given = inspect.signature(call).bind(*args, **kwargs).arguments
    current = _Call(given["forward_context"])
    token = _current.set(current)
    try:
        caches = call(*args, **kwargs)
    finally:
        _current.reset(token)
    _tell_excess(current, given["vllm_config"].cache_config)
    return caches


def reserve_padding(
    call: Callable[..., Any],
    vllm_config: Any,
    kv_cache_specs: list[dict[str, Any]],
    available_memory: list[int],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Stands before `get_kv_cache_configs`, where the engine plans the KV cache.

    What alignment may cost each worker is taken off the memory that is planned
    with, so that blocks and padding together stay within it.
    """
    layers = vllm_config.compilation_config.static_forward_context
    kept = [_most_padding(specs, layers) for specs in kv_cache_specs]
    log.info(
        "%.1f MiB of the KV cache memory are kept for its alignment",
        max(kept, default=0) / 2**20,
    )
    planned = [
        memory - padding for memory, padding in zip(available_memory, kept, strict=True)
    ]
    return call(vllm_config, kv_cache_specs, planned, *args, **kwargs)


def allocate_layers(
    call: Callable[..., _Caches],
    kv_cache_config: Any,
    shared_layers: Any,
    device: torch.device,
) -> _Caches:
    """Stands before `_allocate_kv_cache` of `vllm.v1.worker.gpu.attn_utils`.

    Returns raw int8 tensors by layer name, each of the size that the configuration
    says, sharing memory exactly where upstream's do. Within `init_kv_cache` they stay
    descriptions: `reshape_layers` lays out the views that upstream makes of them.
    """
    described = call(kv_cache_config, shared_layers, META)
    current = _current.get()
    if current is None:
        return _realise(described, device, {})
    current.device = device
    return described


def reshape_layers(call: Callable[..., _Caches], *args: Any, **kwargs: Any) -> _Caches:
    """Stands before `_reshape_kv_cache`: views of what `allocate_layers` described."""
    described = call(*args, **kwargs)
    current = _current.get()
    if current is None or current.device is None:
        return described
    given = inspect.signature(call).bind(*args, **kwargs).arguments
    return _lay_out(described, given["kv_cache_config"], current.device, current)


def allocate_backing(
    call: Callable[..., _Caches],
    kv_cache_config: Any,
    device: torch.device,
    *args: Any,
    **kwargs: Any,
) -> _Caches:
    """Stands before `allocate_kv_cache` as `vllm.v1.worker.gpu.attn_utils` sees it.

    Returns one tensor a layer on one aligned backing: upstream's view `[B, H, N, C]`,
    or for a layer that takes K and V apart one of those that
    `ascend_shims.device.kv` describes.

    Raises:
        SharedBackingError: the configuration describes several backings.
        UnsplittableCacheError: a layer's cache cannot be divided as its backend asks.
    """
    _check_one_backing(kv_cache_config)
    described = call(kv_cache_config, META, *args, **kwargs)
    current = _current.get()
    if current is None:
        return _realise(described, device, {})
    return _lay_out(described, kv_cache_config, device, current)


def keep_manager_blocks(
    call: Callable[..., _Caches], kv_caches: _Caches, attn_groups: Any
) -> _Caches:
    """Stands before `map_kv_caches_to_kernel_blocks` as `attn_utils` sees it.

    That looks for tokens and heads where a packed view has them. Split caches are
    divided already, and pass.
    """
    current = _current.get()
    pairs = {} if current is None else current.pairs
    packed = {name: c for name, c in kv_caches.items() if id(c) not in pairs}
    mapped = call(packed, attn_groups)
    return {name: mapped.get(name, cache) for name, cache in kv_caches.items()}


def bind_pairs(
    call: Callable[..., None],
    kv_caches: _Caches,
    forward_context: dict[str, Any],
    *args: Any,
    **kwargs: Any,
) -> None:
    """Stands before `bind_kv_cache_to_layers`, or `bind_kv_cache` before 0.30.

    Binds `(k, v)` to the layers that take them apart. What upstream keeps in a list
    of its own is still one tensor a layer.

    Raises:
        UnsplittableCacheError: a cache was made packed for a backend that takes it
            split, or the other way round.
    """
    current = _current.get()
    if current is None:
        return call(kv_caches, forward_context, *args, **kwargs)
    wanted = set(current.split(kv_caches))
    layers = dict(forward_context)
    for name, cache in kv_caches.items():
        known = current.pairs.get(id(cache))
        if (known is None) == (name in wanted):
            _refuse_binding(name, layers[name], packed=known is None)
        if known is not None:
            layers[name] = _Bound(layers[name], known)
    return call(kv_caches, layers, *args, **kwargs)


def zero_pairs(call: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Stands before `KVBlockZeroer.__init__`, which takes one tensor a layer.

    A layer with two would be passed over, and new blocks of a hybrid model would
    hold what was in them before. It is shown two layers instead.
    """
    given = inspect.signature(call).bind(*args, **kwargs)
    layers = dict(given.arguments["static_forward_context"])
    groups = []
    for group in given.arguments["attn_groups_iter"]:
        names = []
        for name in group.layer_names:
            names.append(name)
            if name in layers and _is_pair(layers[name]):
                names.append(f"{name}.v")
                k, v = layers[name].kv_cache
                layers[name], layers[names[-1]] = _Shown(k), _Shown(v)
        groups.append(_Group(group, names))
    given.arguments.update(static_forward_context=layers, attn_groups_iter=groups)
    return call(*given.args, **given.kwargs)


def copy_by_block(
    call: Callable[..., None],
    kv_caches: Iterable[torch.Tensor],
    *args: Any,
    **kwargs: Any,
) -> None:
    """Stands before `copy_kv_cache_blocks_inplace`.

    That copies whole blocks of a backing, for which it must consist of nothing but
    as many equal blocks, or (from 0.29) of each layer where it does not. Backings
    that were extended or hold K and V in regions are shown in pieces that do.
    """
    pieces = [piece for c in kv_caches for piece in _by_block.get(c, (c,))]
    return call(pieces, *args, **kwargs)


class _Shown(msgspec.Struct, frozen=True):
    """As much of a layer as upstream's zeroing looks at."""

    kv_cache: torch.Tensor


class _Group:
    """An attention group with other layers than its own."""

    def __init__(self, group: Any, layer_names: list[str]) -> None:
        self._group = group
        self.layer_names = layer_names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)


class _Bound(msgspec.Struct, frozen=True):
    """A layer as upstream's binding sees it, that takes its own cache instead."""

    layer: Any
    pair: kv.Pair

    def bind_kv_cache(self, _packed: torch.Tensor) -> None:
        # Not through the layer's own method: those expect the packed tensor.
        self.layer.kv_cache = self.pair


def _most_padding(specs: Mapping[str, Any], layers: Mapping[str, Any]) -> int:
    """Bytes that alignment may add to the caches of a worker.

    Workers in other processes have their layers there, and any of them may take K
    and V apart.
    """
    packed = sum(
        name in layers and not kv.takes_split(_backend(layers[name])) for name in specs
    )
    return padding_bound(divided=len(specs) - packed, others=packed) if specs else 0


def _tell_excess(current: _Call, cache_config: Any) -> None:
    limit = cache_config.kv_cache_memory_bytes
    if limit is None or current.taken <= limit:
        return
    log.warning(
        "the KV cache takes %d bytes, %d of them padding for its alignment: %d more "
        "than kv_cache_memory_bytes=%d. Lower num_gpu_blocks_override, or raise "
        "kv_cache_memory_bytes to %d",
        current.taken,
        current.taken - current.described,
        current.taken - limit,
        limit,
        current.taken,
    )


def _is_pair(layer: Any) -> bool:
    cache = getattr(layer, "kv_cache", None)
    return (
        isinstance(cache, tuple) and len(cache) == 2 and kv.takes_split(_backend(layer))
    )


def _backend(layer: Any) -> type:
    backend: type = layer.get_attn_backend()
    return backend


def _refuse_binding(name: str, layer: Any, *, packed: bool) -> None:
    backend = _backend(layer).__name__
    if packed:
        raise UnsplittableCacheError(
            f"{name}: {backend} takes K and V apart, but its cache was allocated "
            "packed, by something other than `allocate_kv_cache` (HiSparse does so): "
            "use that feature with a backend that takes packed caches"
        )
    raise UnsplittableCacheError(
        f"{name}: it shares the cache of a layer whose backend takes K and V apart, "
        f"while {backend} takes them packed: use one backend for both"
    )


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


def _lay_out(
    described: _Caches, kv_cache_config: Any, device: torch.device, current: _Call
) -> _Caches:
    """`_realise`, with the caches divided whose layers ask for it."""
    specs = layer_specs(kv_cache_config)
    parts: dict[str, Parts] = {}
    seen: set[int] = set()
    for name in current.split(described):
        # A layer that shares another's cache comes after it, with the same tensor.
        if id(described[name]) in seen:
            continue
        seen.add(id(described[name]))
        parts[name] = parts_of(name, current.layers[name], specs[name])
        check_view(
            name, specs[name], parts[name], described[name], kv_cache_config.num_blocks
        )
    return _realise(described, device, parts, current)


def _realise(
    described: _Caches,
    device: torch.device,
    parts: Mapping[str, Parts],
    current: _Call | None = None,
) -> _Caches:
    try:
        real = realise(described, device, parts, whole=_has_connector())
    except kv.NotAPageError as error:
        raise UnsplittableCacheError(
            f"{error}. A backend that takes K and V apart needs whole pages where "
            f"layers share a backing ({', '.join(parts)}): set "
            "VLLM_KV_CACHE_LAYOUT=LBNHC"
        ) from error
    for cache in real.caches.values():
        if id(cache) in real.by_block:
            _by_block[cache] = real.by_block[id(cache)]
    if current is not None:
        current.caches.update(real.caches)
        current.pairs.update(real.pairs)
        current.described += real.described
        current.taken += real.taken
    log.info(
        "%d KV cache backings aligned to 2 MiB, %.1f MiB of padding",
        real.backings,
        (real.taken - real.described) / 2**20,
    )
    return real.caches
