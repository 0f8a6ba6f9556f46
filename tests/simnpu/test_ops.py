"""The operators of the software NPU compute what attention is, and refuse what the
device's refuse."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.simnpu import ops
from ascend_shims.simnpu.errors import (
    HostLengthsMissingError,
    StaleLengthsError,
    StridedCacheError,
    WorkspaceError,
)

ops.register()
NPU = torch.ops.simnpu
BLOCK = 4


def dense(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, window: int
) -> torch.Tensor:
    """Attention of the last queries to all keys, one pair at a time."""
    count, heads, _ = query.shape
    out = torch.zeros(count, heads, values.shape[-1])
    groups = heads // keys.shape[1]
    for i in range(count):
        place = len(keys) - count + i
        first = 0 if window < 0 else max(0, place - window + 1)
        for h in range(heads):
            k, v = (
                keys[first : place + 1, h // groups],
                values[first : place + 1, h // groups],
            )
            weights = torch.softmax(k @ query[i, h] * 0.3, 0)
            out[i, h] = weights @ v
    return out


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[int], list[int], int, int, int]:
    """Query counts and lengths of requests, KV heads, query heads a KV head, window."""
    requests = draw(
        st.lists(
            st.tuples(st.integers(1, 5), st.integers(0, 9)), min_size=1, max_size=4
        )
    )
    counts = [count for count, _ in requests]
    lengths = [count + past for count, past in requests]
    window = draw(st.sampled_from([-1, 1, 3, 7]))
    return counts, lengths, draw(st.integers(1, 2)), draw(st.integers(1, 3)), window


@settings(deadline=None, max_examples=60)
@given(batches(), st.integers(0, 3), st.booleans())
def test_attention_over_blocks_is_dense_attention(
    batch: tuple[list[int], list[int], int, int, int], padding: int, apart: bool
) -> None:
    """Whatever the blocks, the split of K and V, and the padding."""
    counts, lengths, kv_heads, groups, window = batch
    width = 8
    torch.manual_seed(sum(lengths))
    per_request = -(-max(lengths) // BLOCK)
    table = torch.randperm(per_request * len(counts)).view(len(counts), -1)
    caches = []
    for _ in range(2):
        whole = torch.full((table.numel(), 2, BLOCK, kv_heads, width), math.nan)
        caches.append(whole[:, 0] if apart else whole[:, 0].clone())
    keys = [[torch.randn(n, kv_heads, width) for n in lengths] for _ in range(2)]
    for cache, tensors in zip(caches, keys, strict=True):
        for i, tensor in enumerate(tensors):
            for t, row in enumerate(tensor):
                cache[table[i, t // BLOCK], t % BLOCK] = row
    tokens = sum(counts)
    query = torch.randn(tokens + padding, kv_heads * groups, width)
    out = torch.full_like(query, math.nan)
    ends = torch.tensor(counts).cumsum(0).tolist()
    size = ops.workspace_size(*query.shape)
    NPU.fused_infer_attention(
        query=query,
        k_cache=caches[0],
        v_cache=caches[1],
        block_table=torch.cat((table, torch.zeros(padding, per_request).long())),
        query_ends=ends + [tokens] * padding,
        kv_lengths=lengths + [0] * padding,
        workspace=torch.empty(size, dtype=torch.uint8),
        out=out,
        scale=0.3,
        window=window,
    )
    start = 0
    for i, count in enumerate(counts):
        wanted = dense(query[start : start + count], keys[0][i], keys[1][i], window)
        torch.testing.assert_close(out[start : start + count], wanted)
        start += count
    assert out[tokens:].abs().sum() == 0


@settings(deadline=None, max_examples=40)
@given(batches())
def test_latent_attention_is_attention_with_joined_keys(
    batch: tuple[list[int], list[int], int, int, int],
) -> None:
    counts, lengths, _, heads, _ = batch
    rank, rope = 6, 2
    torch.manual_seed(sum(lengths))
    per_request = -(-max(lengths) // BLOCK)
    table = torch.randperm(per_request * len(counts)).view(len(counts), -1)
    joined = torch.randn(table.numel(), BLOCK, 1, rank + rope)
    latent_cache, rope_cache = (t.contiguous() for t in joined.split((rank, rope), -1))
    tokens = sum(counts)
    query = torch.randn(tokens, heads, rank + rope)
    outs = [torch.empty(tokens, heads, rank) for _ in range(2)]
    ends = torch.tensor(counts).cumsum(0).tolist()
    scratch = torch.empty(
        ops.workspace_size(tokens, heads, rank + rope), dtype=torch.uint8
    )
    NPU.mla_attention(
        query[..., :rank], query[..., rank:], latent_cache, rope_cache, table, ends,
        lengths, scratch, outs[0], 0.3,
    )  # fmt: skip
    NPU.fused_infer_attention(
        query, joined, latent_cache, table, ends, lengths, scratch, outs[1], 0.3
    )
    torch.testing.assert_close(outs[0], outs[1])


def test_rows_go_to_their_slots_and_padding_goes_nowhere() -> None:
    k_cache, v_cache = (torch.zeros(3, BLOCK, 1, 2) for _ in range(2))
    key = torch.arange(8.0).view(4, 1, 2)
    NPU.write_cache(key, -key, k_cache, v_cache, torch.tensor([5, -1, 0, 11]))
    wanted = torch.zeros(12, 2)
    wanted[5], wanted[0], wanted[11] = key[0, 0], key[2, 0], key[3, 0]
    assert k_cache.view(12, 2).equal(wanted)
    assert v_cache.view(12, 2).equal(-wanted)


@pytest.mark.parametrize("neox", [True, False])
def test_rotation_turns_each_pair_by_its_angle(neox: bool) -> None:
    x = torch.randn(5, 2, 10)
    angles = torch.randn(5, 3)
    cos, sin = angles.cos(), angles.sin()
    wide = [
        torch.cat((t, t), -1) if neox else t.repeat_interleave(2, -1)
        for t in (cos, sin)
    ]
    out = NPU.rotary_mul(x, *wide, neox)
    for i in range(3):
        a, b = (i, i + 3) if neox else (2 * i, 2 * i + 1)
        c, s = cos[:, None, i], sin[:, None, i]
        torch.testing.assert_close(out[..., a], x[..., a] * c - x[..., b] * s)
        torch.testing.assert_close(out[..., b], x[..., b] * c + x[..., a] * s)
    assert out[..., 6:].equal(x[..., 6:])


def attend(**changes: object) -> None:
    cache = torch.zeros(4, BLOCK, 1, 8)
    given_: dict[str, object] = {
        "query": torch.zeros(2, 1, 8),
        "k_cache": cache,
        "v_cache": cache.clone(),
        "block_table": torch.zeros(2, 1, dtype=torch.int32),
        "query_ends": [1, 2],
        "kv_lengths": [3, 1],
        "workspace": torch.empty(ops.workspace_size(2, 1, 8), dtype=torch.uint8),
        "out": torch.zeros(2, 1, 8),
        "scale": 1.0,
    }
    NPU.fused_infer_attention(**{**given_, **changes})


REFUSED = [
    ({"device_lengths": torch.tensor([3, 2])}, StaleLengthsError, "[3, 1], and those"),
    ({"kv_lengths": [3]}, HostLengthsMissingError, "2 requests have queries and 1"),
    (
        {"k_cache": torch.zeros(4, 1, BLOCK, 8).transpose(1, 2)[..., ::2]},
        StridedCacheError,
        "kv-cache",
    ),
    (
        {"workspace": torch.empty(8, dtype=torch.uint8)},
        WorkspaceError,
        f"needs a workspace of {ops.workspace_size(2, 1, 8)} bytes, not 8",
    ),
]


@pytest.mark.parametrize(("changes", "error", "said"), REFUSED)
def test_what_the_device_refuses_is_refused(
    changes: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as raised:
        attend(**changes)
    assert said in str(raised.value)


def test_what_it_takes_is_taken() -> None:
    attend(device_lengths=torch.tensor([3, 1]))
