"""K and V as the NPU's attention operators take them: two tensors a layer.

Upstream binds one packed tensor to a layer, `[blocks, heads, tokens, 2 * size]`.
A backend whose operators want two says so with a class attribute,

    class MyBackend(AttentionBackend):
        takes_split_kv = True

and its layers get `layer.kv_cache = (k, v)`, each `[blocks, tokens, heads, size]`,
or `(latent, rope)` with one head for MLA. Inside a block, `[tokens, heads, size]`
is contiguous; blocks may lie further apart than one of them is long. Both parts
are in one storage. Such a backend's `get_kv_cache_shape` has blocks first.

One tensor a layer stays where upstream wants one (its block copies, KV connectors):
`[blocks, 2, tokens, heads, size]`, of which `split` gives the parts; for MLA, and
where K and V have different sizes, upstream's own shape over pages that hold first
all of the one part and then all of the other, of which `split_page` gives them.
"""

from __future__ import annotations

import torch

from ascend_shims.errors import ShimsError

__all__ = [
    "NotAPageError",
    "Pair",
    "split",
    "split_latent",
    "split_page",
    "takes_split",
]

Pair = tuple[torch.Tensor, torch.Tensor]


class NotAPageError(ShimsError, ValueError):
    """A tensor whose blocks do not hold two parts one after the other."""


def takes_split(backend: type) -> bool:
    """Whether an attention backend's operators take K and V as two tensors."""
    return bool(getattr(backend, "takes_split_kv", False))


def split(view: torch.Tensor) -> Pair:
    """K and V, each `[blocks, tokens, heads, size]`, of a `[blocks, 2, …]` view.

    Raises:
        NotAPageError: `view` is not `[blocks, 2, tokens, heads, size]`.
    """
    if view.dim() != 5 or view.shape[1] != 2:
        raise NotAPageError(
            "split takes a view [blocks, 2, tokens, heads, size], "
            f"not one of shape {list(view.shape)}"
        )
    return view[:, 0], view[:, 1]


def split_latent(view: torch.Tensor, lora: int, rope: int) -> Pair:
    """The parts of an MLA cache: `[blocks, tokens, 1, lora]` and `[…, 1, rope]`.

    Args:
        view: `[blocks, …]`, each block one dense run of elements.
        lora: `kv_lora_rank`.
        rope: `qk_rope_head_dim`.
    """
    return split_page(view, 1, lora, rope)


def split_page(view: torch.Tensor, heads: int, first: int, second: int) -> Pair:
    """Two parts of each block, `[tokens, heads, first]` before `[…, second]`.

    Args:
        view: `[blocks, …]`, each block one dense run of elements.
        heads: heads of both parts.
        first: elements a token and head in the part that comes first.
        second: elements a token and head in the other.

    Raises:
        NotAPageError: a block is not one run, or holds no whole number of tokens.
    """
    page = _run(view)
    tokens, rest = divmod(page, heads * (first + second))
    if rest:
        raise NotAPageError(
            f"a block of {page} elements holds no whole number of tokens with "
            f"{heads} heads of {first} and {second}"
        )
    start = view.storage_offset()
    parts = [(first, start), (second, start + tokens * heads * first)]
    one, other = (
        view.as_strided(
            (view.shape[0], tokens, heads, size),
            (view.stride(0), heads * size, size, 1),
            offset,
        )
        for size, offset in parts
    )
    return one, other


def _run(view: torch.Tensor) -> int:
    """Elements of a block of `view`, which must lie one after the other."""
    page = view[:1].numel()
    axes = zip(view.shape[1:], view.stride()[1:], strict=True)
    reach = 1 + sum((n - 1) * stride for n, stride in axes)
    if reach != page:
        raise NotAPageError(
            f"a block of {page} elements is spread over {reach}: shape "
            f"{list(view.shape)}, stride {list(view.stride())}"
        )
    return page
