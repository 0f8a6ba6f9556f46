"""Operators of the software NPU, registered with torch as `torch.ops.simnpu`.

They compute on the CPU what the device's own compute, in float32, and refuse what
those refuse. Lengths are lists of numbers on the host, as on the device: a graph
keeps those that it was captured with.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch

from .errors import (
    HostLengthsMissingError,
    PackedCacheError,
    StaleLengthsError,
    StridedCacheError,
    WorkspaceError,
)

__all__ = ["know_group", "packed", "register", "workspace_size"]

_SCHEMAS = {
    "all_reduce": "(Tensor(a!) x, str group) -> ()",
    "rotary_mul": "(Tensor x, Tensor cos, Tensor sin, bool neox) -> Tensor",
    "write_cache": (
        "(Tensor key, Tensor value, Tensor(a!) k_cache, Tensor(b!) v_cache, "
        "Tensor slots) -> ()"
    ),
    "fused_infer_attention": (
        "(Tensor query, Tensor k_cache, Tensor v_cache, Tensor block_table, "
        "int[] query_ends, int[] kv_lengths, Tensor(a!) workspace, Tensor(b!) out, "
        "float scale, bool causal=True, int window=-1, float softcap=0.0, "
        "Tensor? sinks=None, Tensor? alibi=None, Tensor? device_lengths=None) -> ()"
    ),
    "mla_attention": (
        "(Tensor latent_query, Tensor rope_query, Tensor latent_cache, "
        "Tensor rope_cache, Tensor block_table, int[] query_ends, int[] kv_lengths, "
        "Tensor(a!) workspace, Tensor(b!) out, float scale, "
        "Tensor? device_lengths=None) -> ()"
    ),
}

_library: list[Any] = []

_WORKSPACE_UNIT = 512
"""Bytes. Workspaces are multiples of it."""

_WORKSPACE_FIXED = 16 << 20
"""Bytes that the operator takes whatever its size, as the device's takes some."""


def register() -> None:
    """Define the operators, once a process."""
    if _library:
        return
    library: Any = torch.library.Library("simnpu", "DEF")  # type: ignore[no-untyped-call]
    _library.append(library)
    for name, schema in _SCHEMAS.items():
        library.define(name + schema)
        library.impl(name, globals()[f"_{name}"], "CPU")


_groups: dict[str, Any] = {}
"""Process groups by the name that the operator is given: operators in a graph take
numbers and names, no objects."""


def know_group(name: str, group: Any) -> str:
    """Let `all_reduce` sum over `group` when it is given `name`. Returns the name."""
    _groups[name] = group
    return name


def _all_reduce(x: torch.Tensor, group: str) -> None:
    torch.distributed.all_reduce(x, group=_groups[group])


def workspace_size(num_tokens: int, num_heads: int, width: int) -> int:
    """Bytes of scratch that attention over `num_tokens` query tokens needs."""
    needed = _WORKSPACE_FIXED + num_tokens * num_heads * (width + 2) * 4
    return -(-needed // _WORKSPACE_UNIT) * _WORKSPACE_UNIT


def _rotary_mul(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, neox: bool
) -> torch.Tensor:
    """Rotate the left columns of `x` `[tokens, heads, head_size]`, as wide as `cos`
    `[tokens, rotary_dim]`; the others pass."""
    width = cos.shape[-1]
    turned, rest = x[..., :width], x[..., width:]
    c, s = cos.unsqueeze(1).to(x.dtype), sin.unsqueeze(1).to(x.dtype)
    if neox:
        left, right = turned.chunk(2, dim=-1)
        crossed = torch.cat((-right, left), dim=-1)
    else:
        even, odd = turned[..., ::2], turned[..., 1::2]
        crossed = torch.stack((-odd, even), dim=-1).flatten(-2)
    return torch.cat((turned * c + crossed * s, rest), dim=-1)


def _write_cache(
    key: torch.Tensor,
    value: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    slots: torch.Tensor,
) -> None:
    """Put rows of `key` and `value` `[tokens, heads, width]` into their slots.

    Caches are `[blocks, block_size, heads, width]`; a slot below 0 is padding.
    """
    for cache in (k_cache, v_cache):
        _check_cache(cache)
    num_tokens = min(len(slots), len(key))
    wanted = slots[:num_tokens]
    kept = (wanted >= 0).nonzero().flatten()
    block_size = k_cache.shape[1]
    blocks = wanted[kept] // block_size
    offsets = wanted[kept] % block_size
    k_cache[blocks, offsets] = key[kept].to(k_cache.dtype)
    v_cache[blocks, offsets] = value[kept].to(v_cache.dtype)


def _fused_infer_attention(
    query: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    query_ends: list[int],
    kv_lengths: list[int],
    workspace: torch.Tensor,
    out: torch.Tensor,
    scale: float,
    causal: bool = True,
    window: int = -1,
    softcap: float = 0.0,
    sinks: torch.Tensor | None = None,
    alibi: torch.Tensor | None = None,
    device_lengths: torch.Tensor | None = None,
) -> None:
    """Attention of each request's queries to its cached keys.

    `query` and `out` are `[tokens, heads, width]`; request `i` owns the query rows
    up to `query_ends[i]` and the first `kv_lengths[i]` cached tokens.
    """
    for cache in (k_cache, v_cache):
        _check_cache(cache)
    _check_lengths(query_ends, kv_lengths, device_lengths)
    _check_workspace(workspace, query)
    groups = query.shape[1] // k_cache.shape[2]
    spans = _spans(query_ends, kv_lengths, len(query))
    out[query_ends[-1] if query_ends else 0 :].zero_()
    for index, (start, end, length) in enumerate(spans):
        keys, values = (
            _gathered(cache, block_table[index], length).float()
            for cache in (k_cache, v_cache)
        )
        q = query[start:end].float().transpose(0, 1)
        k, v = (t.transpose(0, 1).repeat_interleave(groups, 0) for t in (keys, values))
        scores = q @ k.mT * scale
        if softcap:
            scores = softcap * torch.tanh(scores / softcap)
        distance = _distance(end - start, length)
        if alibi is not None:
            scores = scores - alibi.float()[:, None, None] * distance
        hidden = _hidden(distance, causal, window)
        if hidden is not None:
            scores = scores.masked_fill(hidden, -math.inf)
        out[start:end] = (_softmax(scores, sinks) @ v).transpose(0, 1).to(out.dtype)


def _mla_attention(
    latent_query: torch.Tensor,
    rope_query: torch.Tensor,
    latent_cache: torch.Tensor,
    rope_cache: torch.Tensor,
    block_table: torch.Tensor,
    query_ends: list[int],
    kv_lengths: list[int],
    workspace: torch.Tensor,
    out: torch.Tensor,
    scale: float,
    device_lengths: torch.Tensor | None = None,
) -> None:
    """Causal attention in the latent space: keys are latent and rope part side by
    side, values the latent part.

    `latent_query` and `out` are `[tokens, heads, kv_lora_rank]`, `rope_query`
    `[tokens, heads, qk_rope_head_dim]`.
    """
    for cache in (latent_cache, rope_cache):
        _check_cache(cache)
    _check_lengths(query_ends, kv_lengths, device_lengths)
    _check_workspace(workspace, latent_query)
    spans = _spans(query_ends, kv_lengths, len(latent_query))
    out[query_ends[-1] if query_ends else 0 :].zero_()
    for index, (start, end, length) in enumerate(spans):
        latent, rope = (
            _gathered(cache, block_table[index], length).float()[:, 0]
            for cache in (latent_cache, rope_cache)
        )
        scores = latent_query[start:end].float().transpose(0, 1) @ latent.T
        scores = scores + rope_query[start:end].float().transpose(0, 1) @ rope.T
        future = _distance(end - start, length) < 0
        scores = (scores * scale).masked_fill(future, -math.inf)
        out[start:end] = (_softmax(scores, None) @ latent).transpose(0, 1).to(out.dtype)


def _check_cache(cache: torch.Tensor) -> None:
    """Blocks may lie apart, each must be contiguous in itself."""
    inner = cache.shape[1:]
    strides = [math.prod(inner[i + 1 :]) for i in range(len(inner))]
    wrong = [
        size > 1 and stride != wanted
        for size, stride, wanted in zip(inner, cache.stride()[1:], strides, strict=True)
    ]
    if any(wrong):
        raise StridedCacheError(
            f"a cache {list(cache.shape)} with strides {list(cache.stride())} is not "
            "contiguous within its blocks; switch the gap kv-cache on"
        )


def _check_lengths(
    query_ends: list[int], kv_lengths: list[int], truth: torch.Tensor | None
) -> None:
    if len(query_ends) != len(kv_lengths):
        raise HostLengthsMissingError(
            f"{len(query_ends)} requests have queries and {len(kv_lengths)} have "
            "lengths; both are lists on the host with one entry a request"
        )
    if truth is None:
        return
    actual = truth[: len(kv_lengths)].tolist()
    if actual != kv_lengths:
        raise StaleLengthsError(
            f"attention was given the lengths {_few(kv_lengths)}, and those of this "
            f"step are {_few(actual)}: a graph was replayed without an update of its "
            "parameters; switch the gap graph-manager on (for a draft's graph, "
            "speculator-graph-manager)"
        )


def _few(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return f"[{shown}{', …' if len(numbers) > 8 else ''}]"


def _check_workspace(workspace: torch.Tensor, query: torch.Tensor) -> None:
    needed = workspace_size(*query.shape)
    if workspace.nbytes < needed:
        raise WorkspaceError(
            f"attention over a query {list(query.shape)} needs a workspace of "
            f"{needed} bytes, not {workspace.nbytes}"
        )


def _spans(
    query_ends: list[int], kv_lengths: list[int], num_tokens: int
) -> list[tuple[int, int, int]]:
    starts = [0, *query_ends][:-1]
    spans = [
        (start, min(end, num_tokens), length)
        for start, end, length in zip(starts, query_ends, kv_lengths, strict=True)
    ]
    # Padding requests have no length; they come last.
    return list(itertools.takewhile(lambda span: span[2] > 0, spans))


def _gathered(cache: torch.Tensor, blocks: torch.Tensor, length: int) -> torch.Tensor:
    """The first `length` cached tokens of one request, `[length, heads, width]`."""
    block_size = cache.shape[1]
    used = blocks[: -(-length // block_size)].long()
    return cache.index_select(0, used).flatten(0, 1)[:length]


def _distance(num_queries: int, length: int) -> torch.Tensor:
    """How far each key lies before each query, `[queries, keys]`."""
    last = torch.arange(length - num_queries, length).unsqueeze(1)
    return last - torch.arange(length)


def _hidden(distance: torch.Tensor, causal: bool, window: int) -> torch.Tensor | None:
    hidden = None
    if causal:
        hidden = distance < 0
    if window > 0:
        far = distance >= window
        hidden = far if hidden is None else hidden | far
    return hidden


def _softmax(scores: torch.Tensor, sinks: torch.Tensor | None) -> torch.Tensor:
    if sinks is None:
        return scores.softmax(-1)
    extra = sinks.float()[:, None, None].expand(-1, scores.shape[1], 1)
    return torch.cat((scores, extra), dim=-1).softmax(-1)[..., :-1]


def packed(cache: object) -> PackedCacheError:
    """The error for a cache that is one packed tensor."""
    shape = list(cache.shape) if isinstance(cache, torch.Tensor) else type(cache)
    return PackedCacheError(
        f"the operator takes K and V as two tensors [blocks, block_size, heads, "
        f"head_size], not one cache {shape}; switch the gap kv-cache on"
    )
