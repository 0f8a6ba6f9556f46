"""Tables of cos and sin against upstream's own rotary modules, bit for bit."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("vllm")

import torch

from ascend_shims.device.rope import (
    RopeTable,
    UnsupportedRopeError,
    source_of,
)

pytestmark = pytest.mark.vllm

LENGTH = 96
CPU = torch.device("cpu")

KINDS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"rope_type": "linear", "factor": 4.0},
    "ntk": {"rope_type": "ntk", "factor": 2.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0, "max_trained_positions": 48},
    "dynamic-alpha": {"rope_type": "dynamic", "alpha": 1000.0},
    "proportional": {"rope_type": "proportional"},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    },
    "yarn": {
        "rope_type": "yarn",
        "factor": 3.0,
        "original_max_position_embeddings": 32,
    },
    "deepseek_yarn": {
        "rope_type": "deepseek_yarn",
        "factor": 3.0,
        "original_max_position_embeddings": 32,
        "mscale": 0.707,
        "mscale_all_dim": 1.0,
    },
    "deepseek_v4": {
        "rope_type": "deepseek_yarn",
        "factor": 3.0,
        "original_max_position_embeddings": 32,
        "is_deepseek_v4": True,
    },
}
DTYPES = torch.float32, torch.bfloat16, torch.float16


@pytest.fixture(scope="module", autouse=True)
def upstream_config() -> Iterator[None]:
    from vllm.config import VllmConfig, set_current_vllm_config

    with set_current_vllm_config(VllmConfig()):
        yield


def rope(
    kind: dict[str, Any],
    head: int = 64,
    *,
    partial: float = 1.0,
    neox: bool = True,
    dtype: torch.dtype = torch.float32,
    theta: float = 1e4,
) -> Any:
    from vllm.model_executor.layers.rotary_embedding import get_rope

    parameters = {"rope_theta": theta, "partial_rotary_factor": partial, **kind}
    return get_rope(head, LENGTH, neox, parameters, dtype)


def queries(module: Any, positions: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """`[tokens, heads, head_size]`, the same at every call."""
    generator = torch.Generator().manual_seed(int(positions.sum()))
    shape = positions.shape[-1], 3, module.head_size
    return torch.randn(shape, generator=generator).to(dtype)


def rotated_by_upstream(
    module: Any, positions: torch.Tensor, x: torch.Tensor
) -> torch.Tensor:
    forward = getattr(module, "forward_native", module.forward)
    # Deepseek's forward takes heads apart, the others flattened.
    kind = type(module).__name__
    flat = x.clone() if kind.startswith("Deepseek") else x.flatten(1)
    query: torch.Tensor = forward(positions, flat, flat.clone())[0]
    return query.view_as(x)


def rotated_by_table(
    table: RopeTable, x: torch.Tensor, *, last: bool = False
) -> torch.Tensor:
    """What an operator that knows nothing but cos and sin makes of `x`."""
    width, tokens = table.source.rotary_dim, x.shape[0]
    cos, sin = (t.view(tokens, 1, width) for t in table.for_tokens(tokens))
    start = x.shape[-1] - width if last else 0
    part = x[..., start : start + width]
    if table.source.neox:
        left, right = part.chunk(2, dim=-1)
        turned = torch.cat((-right, left), dim=-1)
    else:
        turned = torch.stack((-part[..., 1::2], part[..., ::2]), dim=-1).flatten(-2)
    x = x.clone()
    x[..., start : start + width] = (part * cos + turned * sin).to(x.dtype)
    return x


@functools.cache
def table_of(
    kind: str, head: int, partial: float, neox: bool, dtype: torch.dtype, mla: bool
) -> RopeTable:
    module = rope(KINDS[kind], head, partial=partial, neox=neox, dtype=dtype)
    return RopeTable.allocate(source_of(module, dtype), 24, mla=mla, device=CPU)


tables = st.builds(
    table_of,
    kind=st.sampled_from(sorted(KINDS)),
    head=st.sampled_from([32, 64, 128]),
    partial=st.sampled_from([0.5, 1.0]),
    neox=st.booleans(),
    dtype=st.sampled_from(DTYPES),
    mla=st.booleans(),
)


@settings(max_examples=300, deadline=None)
@given(tables, st.lists(st.integers(0, LENGTH - 1), min_size=1, max_size=24))
def test_rows_are_upstreams_and_rotate_as_upstream_does(
    table: RopeTable, positions: list[int]
) -> None:
    module, width = table.source.module, table.source.rotary_dim
    where = torch.tensor(positions)
    addresses = table.cos.data_ptr(), table.sin.data_ptr()
    before = table.cos.clone(), table.sin.clone()
    table.refresh(where)

    tokens = len(positions)
    half = width // 2
    for t, columns in ((table.cos, slice(half)), (table.sin, slice(half, None))):
        rows = t.view(table.capacity, width)[:tokens]
        own = module.cos_sin_cache[where][:, columns]  # type: ignore[index]
        assert rows.dtype == own.dtype
        both = (
            (rows[:, :half], rows[:, half:])
            if table.source.neox
            else (rows[:, ::2], rows[:, 1::2])
        )
        assert all(torch.equal(part, own) for part in both)
    assert (table.cos.data_ptr(), table.sin.data_ptr()) == addresses
    for t, old in zip((table.cos, table.sin), before, strict=True):
        assert torch.equal(
            t.view(table.capacity, width)[tokens:],
            old.view(table.capacity, width)[tokens:],
        )

    # Deepseek V4 turns queries of any dtype in float32, and their last columns.
    v4 = type(module).__name__ == "DeepseekV4ScalingRotaryEmbedding"
    assert not v4 or table.cos.dtype == torch.float32
    x = queries(module, where, torch.bfloat16 if v4 else table.cos.dtype)
    assert torch.equal(
        rotated_by_table(table, x, last=v4), rotated_by_upstream(module, where, x)
    )


@pytest.mark.parametrize("mla", [True, False])
@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize("head", [128, 192])
@pytest.mark.parametrize("rotary_dim", [32, 64, 96, 128, 192])
def test_partial_rotary(head: int, rotary_dim: int, neox: bool, mla: bool) -> None:
    if rotary_dim > head:
        rotary_dim = head
    module = rope({"rope_dim": rotary_dim}, head, neox=neox)
    table = RopeTable.allocate(source_of(module, torch.float32), 5, mla=mla, device=CPU)
    shape = (5, 1, 1, rotary_dim) if mla else (1, 5, 1, rotary_dim)
    assert tuple(table.cos.shape) == tuple(table.sin.shape) == shape
    positions = torch.tensor([0, 1, 50, LENGTH - 1, 7])
    table.refresh(positions)
    x = queries(module, positions, torch.float32)
    assert torch.equal(
        rotated_by_table(table, x), rotated_by_upstream(module, positions, x)
    )


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_position_to_the_longest(kind: str) -> None:
    module = rope(KINDS[kind], dtype=torch.bfloat16)
    positions = torch.arange(LENGTH)
    table = RopeTable.allocate(
        source_of(module, torch.bfloat16), LENGTH, mla=False, device=CPU
    )
    table.refresh(positions)
    cos = module.cos_sin_cache[:LENGTH].chunk(2, -1)[0]
    assert torch.equal(table.cos[0, :, 0, : cos.shape[1]], cos)
    assert len(torch.unique(table.cos.float().view(LENGTH, -1), dim=0)) > LENGTH // 2


def test_rows_are_valid_before_the_first_step() -> None:
    module = rope(KINDS["deepseek_yarn"], neox=False)
    table = RopeTable.allocate(
        source_of(module, torch.float32), 4, mla=True, device=CPU
    )
    assert module.mscale != 1.0
    expected = torch.full_like(table.cos, module.cos_sin_cache[0, 0])
    assert torch.equal(table.cos, expected)
    assert torch.equal(table.sin, torch.zeros_like(table.sin))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("default", torch.bfloat16), ("deepseek_yarn", torch.float32)],
)
def test_a_float32_rope_in_a_bfloat16_model(kind: str, expected: torch.dtype) -> None:
    # Most forwards cast their table to the query's dtype at the first call.
    module = rope(KINDS[kind], head=32, theta=12345.0)
    table = RopeTable.allocate(
        source_of(module, torch.bfloat16), 8, mla=False, device=CPU
    )
    assert table.cos.dtype == expected
    positions = torch.arange(8)
    table.refresh(positions)
    before = table.cos.clone()
    x = queries(module, positions, torch.bfloat16)
    out = rotated_by_upstream(module, positions, x)
    assert module.cos_sin_cache.dtype == expected
    if out.dtype == x.dtype:
        assert torch.equal(rotated_by_table(table, x), out)
    table.refresh(positions)
    assert torch.equal(table.cos, before)


def _multi_axis() -> dict[str, Any]:
    from vllm.model_executor.layers import rotary_embedding as upstream
    from vllm.model_executor.layers.rotary_embedding import ernie45_vl_rope

    def own(name: str, *args: Any, neox: bool = True, **kwargs: Any) -> Any:
        cls = getattr(upstream, name, None)
        if cls is None:
            cls = getattr(ernie45_vl_rope, name, None)
        if cls is None:
            return None
        return cls(64, 64, LENGTH, 1e4, neox, torch.float32, *args, **kwargs)

    return {
        "sections": own("MRotaryEmbedding", [16, 8, 8]),
        "sections, pairs": own("MRotaryEmbedding", [8, 12, 12], neox=False),
        "interleaved": own("MRotaryEmbedding", [12, 10, 10], True),
        "interleaved, uneven": own("MRotaryEmbedding", [20, 8, 4], True),
        "yarn": own("MRotaryEmbedding", [16, 8, 8], scaling_factor=2.0),
        "ernie": own("Ernie4_5_VLRotaryEmbedding", [11, 11, 10], neox=False),
        "bailing": own("BailingMRotaryEmbedding", [10, 11, 11], neox=False),
        "pangu": own("MRotaryEmbeddingInterleaved", [12, 10, 10]),
        "xdrope": _xdrope(upstream),
    }


def _xdrope(upstream: Any) -> Any:
    cls = getattr(upstream, "XDRotaryEmbedding", None)
    args = 64, 64, LENGTH, 1e4, True, 100.0, torch.float32, [8, 8, 8, 8]
    return cls and cls(*args)


@pytest.mark.parametrize(
    "kind",
    [
        "sections",
        "sections, pairs",
        "interleaved",
        "interleaved, uneven",
        "yarn",
        "ernie",
        "bailing",
        "pangu",
        "xdrope",
    ],
)
def test_multi_axis_positions(kind: str) -> None:
    module = _multi_axis()[kind]
    if module is None:
        pytest.skip("this release has no such rope")
    source = source_of(module, torch.float32)
    assert source.axes is not None
    num_axes = 4 if kind == "xdrope" else 3
    generator = torch.Generator().manual_seed(1)
    positions = torch.randint(LENGTH, (num_axes, 9), generator=generator)
    table = RopeTable.allocate(source, 12, mla=False, device=CPU)
    table.refresh(positions)
    x = queries(module, positions, torch.float32)
    expected = rotated_by_upstream(module, positions, x)
    assert torch.equal(rotated_by_table(table, x), expected)

    # Equal axes are plain rope.
    table.refresh(positions[:1].expand(num_axes, -1))
    same = table.cos.clone()
    table.refresh(positions[0])
    assert torch.equal(table.cos, same)
    assert not torch.equal(rotated_by_table(table, x), expected)


def test_multi_axis_positions_need_a_multi_axis_rope() -> None:
    table = table_of("default", 64, 1.0, True, torch.float32, False)
    with pytest.raises(UnsupportedRopeError, match=r"takes positions \[tokens\]"):
        table.refresh(torch.zeros(3, 4, dtype=torch.int64))


@pytest.mark.parametrize("max_model_len", [32, LENGTH])
def test_longrope_uses_the_table_that_upstream_chose(
    max_model_len: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vllm.model_executor.layers.rotary_embedding import (
        Phi3LongRoPEScaledRotaryEmbedding as LongRope,
    )

    config = SimpleNamespace(model_config=SimpleNamespace(max_model_len=max_model_len))
    monkeypatch.setitem(
        LongRope.__init__.__globals__, "get_current_vllm_config", lambda: config
    )
    factors = [1.0 + i / 8 for i in range(16)], [3.0 + i for i in range(16)]
    module = LongRope(32, 32, LENGTH, 32, 1e4, True, torch.float32, *factors)
    table = RopeTable.allocate(
        source_of(module, torch.float32), 6, mla=False, device=CPU
    )
    positions = torch.tensor([0, 5, 31, max_model_len - 1])
    table.refresh(positions)
    x = queries(module, positions, torch.float32)
    assert torch.equal(
        rotated_by_table(table, x), rotated_by_upstream(module, positions, x)
    )


def test_ropes_that_are_no_table_of_rows_are_refused() -> None:
    fourier = {
        "use_fope": True,
        "num_key_value_heads": 2,
        "num_inv_freq": 8,
        "fope_sep_head": True,
        "fope_init_factor": 0.1,
    }
    with pytest.raises(UnsupportedRopeError, match=r"FourierRotary\w+ keeps a table"):
        source_of(rope(fourier, head=32), torch.float32)
    vision = rope({"rope_type": "mllama4"}, head=16, dtype=torch.complex64)
    with pytest.raises(UnsupportedRopeError, match=r"of torch.complex64, not"):
        source_of(vision, torch.float32)
    with pytest.raises(UnsupportedRopeError, match="keeps no single cos/sin table"):
        source_of(torch.nn.Identity(), torch.float32)


def test_which_ropes_turn_alike() -> None:
    def read(**kwargs: Any) -> Any:
        return source_of(rope({}, **kwargs), torch.float32)

    assert read().turns_like(read())
    assert not read().turns_like(read(theta=5e5))
    assert not read().turns_like(read(neox=False))
    assert not read().turns_like(read(partial=0.5))
    ropes = _multi_axis()
    plain, other = (source_of(ropes[k], torch.float32) for k in ("sections", "pangu"))
    assert torch.equal(plain.table()[:LENGTH], other.table()[:LENGTH])
    assert not plain.turns_like(other)
