"""A KV cache laid out on aligned memory, K and V apart where that is asked for.

Upstream's cache is described by tensors on the `meta` device: their storages,
shapes, strides and offsets say which layers share which bytes. `realise` makes the
same on memory of `kv_memory`, and divides the caches that have `Parts`:

- where no two views of a storage share bytes, K and V become two regions, each
  contiguous and each from a multiple of 2 MiB on;
- elsewhere, and for parts of different sizes (MLA), each page keeps its place and
  its bytes, and holds first all of K and then all of V.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import msgspec
import torch

from ascend_shims.device import kv, kv_memory
from ascend_shims.device.kv_memory import round_up

__all__ = ["Parts", "Realised", "realise"]


class Parts(msgspec.Struct, frozen=True):
    """What a token's entry in a divided cache consists of, in elements."""

    heads: int
    first: int
    """K a head; for MLA the latent part."""
    second: int
    """V a head; for MLA the rope part."""
    regions: bool
    """Whether K and V may lie in regions of their own; then they are of one size."""


class Realised(msgspec.Struct, frozen=True):
    """A KV cache in memory."""

    caches: dict[str, torch.Tensor]
    """One tensor a layer, for upstream's dictionary; one object under several names
    where one was described so."""
    pairs: dict[int, kv.Pair]
    """By `id` of a tensor in `caches`: its parts, where it was divided."""
    by_block: dict[int, tuple[torch.Tensor, ...]]
    """By `id` of a tensor in `caches` whose storage is not, as described, so many
    equal blocks: the same bytes as tensors on storages that are."""
    backings: int
    described: int
    """Bytes that were described."""
    taken: int
    """Bytes that were allocated; what is above `described` is padding."""


class _Plan(msgspec.Struct, frozen=True):
    """How one backing is laid out, in bytes."""

    length: int
    starts: dict[int, tuple[int, int | None]]
    """By `id` of a described view: where it starts, and where its region of V."""
    moved: bool
    """Whether views lie elsewhere in the backing than they were described."""


def realise(
    described: Mapping[str, torch.Tensor],
    device: torch.device,
    parts: Mapping[str, Parts],
    *,
    whole: bool,
) -> Realised:
    """What `described` describes, zeroed, on aligned memory of `device`.

    Args:
        described: tensors on `meta` by layer name. Those of one storage share a
            backing; blocks are their first dimension where they are divided.
        device: where the real ones go.
        parts: by layer name, how its tensor is divided; the rest stay as described.
        whole: backings reach to a multiple of `GRANULE`, too.

    Raises:
        NotAPageError: a page that is to be divided in its place is not one run of
            bytes.
    """
    by_view = {id(described[name]): found for name, found in parts.items()}
    storages: dict[int, list[torch.Tensor]] = {}
    for view in {id(view): view for view in described.values()}.values():
        storages.setdefault(view.untyped_storage()._cdata, []).append(view)
    plans = [_plan(views, by_view) for views in storages.values()]
    lengths = [plan.length for plan in plans]
    pieces, taken = kv_memory.allocate(lengths, device, whole=whole)
    real: dict[int, torch.Tensor] = {}
    pairs: dict[int, kv.Pair] = {}
    by_block: dict[int, tuple[torch.Tensor, ...]] = {}
    for views, plan, piece in zip(storages.values(), plans, pieces, strict=True):
        exact = views[0].untyped_storage().nbytes()
        for view in views:
            start, second = plan.starts[id(view)]
            cache = _placed(view, piece, start)
            if id(view) in by_view:
                cache, pair = _divide(cache, by_view[id(view)], second)
                pairs[id(cache)] = pair
            if second is not None:
                by_block[id(cache)] = tuple(_on_its_own(part) for part in pair)
            elif plan.moved:
                by_block[id(cache)] = (_on_its_own(cache),)
            elif piece.nbytes() != exact:
                by_block[id(cache)] = (_placed(cache, piece[:exact], start),)
            real[id(view)] = cache
    return Realised(
        {name: real[id(view)] for name, view in described.items()},
        pairs,
        by_block,
        len(pieces),
        sum(views[0].untyped_storage().nbytes() for views in storages.values()),
        taken,
    )


def _plan(views: list[torch.Tensor], parts: Mapping[int, Parts]) -> _Plan:
    views = sorted(views, key=_start)
    starts: dict[int, tuple[int, int | None]]
    alone = all(
        _start(view) + _reach(view) <= _start(after)
        for view, after in itertools.pairwise(views)
    )
    regions = {id(v) for v in views if id(v) in parts and parts[id(v)].regions}
    if not alone or not regions:
        size = views[0].untyped_storage().nbytes()
        starts = {id(view): (_start(view), None) for view in views}
        return _Plan(size, starts, moved=False)
    end = 0
    starts = {}
    for view in views:
        start, second = round_up(end), None
        end = start + _reach(view)
        if id(view) in regions:
            half = view.numel() * view.itemsize // 2
            second = round_up(start + half)
            end = second + half
        starts[id(view)] = start, second
    return _Plan(end, starts, moved=True)


def _start(view: torch.Tensor) -> int:
    return int(view.storage_offset()) * view.itemsize


def _reach(view: torch.Tensor) -> int:
    """Bytes from the first of a view to its last."""
    axes = zip(view.shape, view.stride(), strict=True)
    return (1 + sum((n - 1) * stride for n, stride in axes)) * view.itemsize


def _placed(
    described: torch.Tensor, storage: torch.UntypedStorage, start: int
) -> torch.Tensor:
    real = torch.empty(0, dtype=described.dtype, device=storage.device)
    offset = start // described.itemsize
    return real.set_(storage, offset, described.size(), described.stride())


def _on_its_own(view: torch.Tensor) -> torch.Tensor:
    """`view` on a storage of just its bytes."""
    start = _start(view)
    piece = view.untyped_storage()[start : start + _reach(view)]
    return _placed(view, piece, 0)


def _divide(
    cache: torch.Tensor, parts: Parts, second: int | None
) -> tuple[torch.Tensor, kv.Pair]:
    """The tensor for upstream's dictionary, and its parts."""
    if second is None:
        pair = kv.split_page(cache, parts.heads, parts.first, parts.second)
        if not parts.regions:
            return cache, pair
        block, apart = cache.stride(0), pair[0][:1].numel()
    else:
        block = cache[:1].numel() // 2
        apart = (second - _start(cache)) // cache.itemsize
    width = parts.heads * parts.first
    tokens = cache[:1].numel() // (2 * width)
    whole = cache.as_strided(
        (cache.shape[0], 2, tokens, parts.heads, parts.first),
        (block, apart, width, parts.first, 1),
    )
    return whole, kv.split(whole)
