"""Memory for a KV cache, in pieces that a transfer engine can register.

Such an engine registers whole units of 2 MiB. A backing is one piece: it starts at
a multiple of that and is a storage of its own, so `untyped_storage()` of a view
tells base and length. All pieces are cut from one allocation, since an allocator
gives no alignment and each would cost up to 2 MiB more; it lives as long as a view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import torch

__all__ = ["GRANULE", "Backing", "allocate", "backings", "padding_bound", "round_up"]

GRANULE = 2 * 1024 * 1024
"""Bytes. What a transfer engine registers memory in."""


class Backing(msgspec.Struct, frozen=True):
    """One piece of a KV cache, as a connector registers it."""

    base: int
    """Address of its first byte."""
    length: int
    """Bytes from `base` that belong to it."""
    layers: tuple[str, ...]
    """Names of the layers with a view into it, sorted."""


def round_up(size: int) -> int:
    """The next multiple of `GRANULE`."""
    return -(-size // GRANULE) * GRANULE


def padding_bound(*, divided: int, others: int) -> int:
    """Bytes that alignment adds at most to a KV cache of that many layers.

    Each piece that starts at a multiple of `GRANULE` is preceded, or at the end of
    a backing followed, by less than one: two pieces for a layer that is divided into
    K and V. One more goes where the whole allocation starts.

    Args:
        divided: layers with K and V apart.
        others: layers with one tensor.
    """
    return (1 + 2 * divided + others) * GRANULE


def allocate(
    lengths: Sequence[int], device: torch.device, *, whole: bool
) -> tuple[list[torch.UntypedStorage], int]:
    """Zeroed storages of the given lengths, each at a multiple of `GRANULE`.

    Args:
        lengths: bytes.
        device: where.
        whole: lengths are rounded up to a multiple of `GRANULE`, too.

    Returns:
        The storages in order, and the bytes that were taken for all of them: at
        most `GRANULE` a storage, and one more, above the sum of `lengths`.
    """
    if not lengths:
        return [], 0
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + round_up(length))
    end = starts[-1] if whole else starts[-2] + lengths[-1]
    memory = torch.zeros(end + GRANULE, dtype=torch.int8, device=device)
    first = round_up(memory.data_ptr()) - memory.data_ptr()
    storage = memory.untyped_storage()
    pieces = []
    for start, length in zip(starts, lengths, strict=False):
        size = round_up(length) if whole else length
        # A slice of a storage is one itself, and keeps the whole alive.
        pieces.append(storage[first + start : first + start + size])
    return pieces, memory.nbytes


def backings(
    caches: Mapping[str, torch.Tensor | tuple[torch.Tensor, ...]],
) -> tuple[Backing, ...]:
    """The pieces of memory behind a KV cache, each once, in order of address.

    Args:
        caches: views by layer name, as upstream hands them to a connector, or as
            they are bound to layers: parts of one layer share a storage.
    """
    layers: dict[tuple[int, int], list[str]] = {}
    for name, view in caches.items():
        whole = view[0] if isinstance(view, tuple) else view
        storage = whole.untyped_storage()
        layers.setdefault((storage.data_ptr(), storage.nbytes()), []).append(name)
    return tuple(
        Backing(base, length, tuple(sorted(names)))
        for (base, length), names in sorted(layers.items())
    )
