"""kv-cache on plain tensors: aligned, laid out and shared exactly as described."""

from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

kv_cache = pytest.importorskip("ascend_shims.patches.kv_cache")
GRANULE = kv_cache.GRANULE
CPU = torch.device("cpu")
DTYPES = (torch.int8, torch.float16, torch.bfloat16, torch.float32)


@pytest.fixture(params=[False, True], ids=["no-connector", "connector"], autouse=True)
def connector(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(kv_cache, "_has_connector", lambda: request.param)
    return bool(request.param)


@st.composite
def views(draw: st.DrawFn) -> list[list[tuple[str, Any, tuple[int, ...], int]]]:
    """Backings, each a list of views: name, dtype, shape, byte offset."""
    backings = []
    for number in range(draw(st.integers(1, 3))):
        group = []
        for layer in range(draw(st.integers(1, 4))):
            dtype = draw(st.sampled_from(DTYPES))
            shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
            offset = 4 * draw(st.integers(0, 64))
            group.append((f"b{number}.l{layer}", dtype, shape, offset))
        backings.append(group)
    return backings


def _upstream(described: Any) -> Any:
    """Something that allocates as upstream does: one zeroed buffer, views into it."""

    def allocate(
        _config: Any, second: Any, third: Any = None
    ) -> dict[str, torch.Tensor]:
        device = next(d for d in (second, third) if isinstance(d, torch.device))
        caches = {}
        for group in described:
            ends = [
                offset + torch.Size(shape).numel() * dtype.itemsize
                for _, dtype, shape, offset in group
            ]
            size = -(-max(ends) // 4) * 4
            buffer = torch.zeros(size, dtype=torch.int8, device=device)
            for name, dtype, shape, offset in group:
                flat = buffer.view(dtype)[offset // dtype.itemsize :]
                strides = torch.empty(shape, device="meta").stride()
                caches[name] = flat.as_strided(shape, strides, offset // dtype.itemsize)
        return caches

    return allocate


def _spelled(cache: torch.Tensor) -> Any:
    return cache.dtype, cache.shape, cache.stride()


@settings(max_examples=60, deadline=None)
@given(described=views())
def test_views_are_upstreams_on_aligned_memory(described: Any) -> None:
    upstream = _upstream(described)
    stock = upstream(None, CPU)
    ours = kv_cache.allocate_layers(upstream, None, None, CPU)

    assert list(ours) == list(stock)
    assert [_spelled(ours[n]) for n in ours] == [_spelled(stock[n]) for n in stock]
    assert all(not cache.any() for cache in ours.values())
    for group in described:
        names = [name for name, *_ in group]
        start = min(stock[n].untyped_storage().data_ptr() for n in names)
        base = ours[names[0]].data_ptr() - (stock[names[0]].data_ptr() - start)
        assert base % GRANULE == 0
        for name in names:
            assert ours[name].data_ptr() - base == stock[name].data_ptr() - start

    # What is written through one view reads the same through every other.
    for caches in (stock, ours):
        for number, name in enumerate(caches):
            caches[name].fill_(number + 1)
    for name in stock:
        assert torch.equal(
            ours[name].contiguous().view(torch.int8),
            stock[name].contiguous().view(torch.int8),
        )


@settings(max_examples=30, deadline=None)
@given(described=views())
def test_backings_are_listed_once_with_all_their_layers(described: Any) -> None:
    ours = kv_cache.allocate_layers(_upstream(described), None, None, CPU)
    listed = kv_cache.backings(ours)
    expected = sorted(tuple(sorted(name for name, *_ in g)) for g in described)
    assert sorted(backing.layers for backing in listed) == expected
    for backing in listed:
        for name in backing.layers:
            cache = ours[name]
            assert backing.base <= cache.data_ptr()
            last = cache.data_ptr() + cache.numel() * cache.itemsize
            assert last <= backing.base + backing.length
        storage = ours[backing.layers[0]].untyped_storage()
        assert backing.base + backing.length <= storage.data_ptr() + storage.nbytes()


def test_a_connector_gets_whole_granules(connector: bool) -> None:
    size = GRANULE + 12
    described = [[("l0", torch.int8, (size,), 0)]]
    (backing,) = kv_cache.backings(
        kv_cache.allocate_layers(_upstream(described), None, None, CPU)
    )
    assert backing.base % GRANULE == 0
    if connector:
        assert backing.length == 2 * GRANULE


def test_a_view_keeps_its_backing_alive() -> None:
    described = [[("l0", torch.int8, (GRANULE,), 0), ("l1", torch.int8, (8,), 0)]]
    caches = kv_cache.allocate_layers(_upstream(described), None, None, CPU)
    kept = caches.pop("l0")
    del caches
    gc.collect()
    kept.fill_(7)
    assert int(kept.sum(dtype=torch.int64)) == 7 * GRANULE


def test_one_tensor_under_two_names_stays_one_tensor() -> None:
    def upstream(_config: Any, _shared: Any, device: torch.device) -> Any:
        raw = torch.zeros(16, dtype=torch.int8, device=device)
        return {"a": raw, "b": raw}

    caches = kv_cache.allocate_layers(upstream, None, None, CPU)
    assert caches["a"] is caches["b"]


def test_no_layers_no_memory() -> None:
    assert kv_cache.allocate_layers(lambda *_: {}, None, None, CPU) == {}
    assert kv_cache.backings({}) == ()


def test_stock_memory_is_listed_as_it_is() -> None:
    stock = torch.zeros(64, dtype=torch.int8)
    (backing,) = kv_cache.backings({"l0": stock[1:]})
    storage = stock.untyped_storage()
    assert (backing.base, backing.length) == (storage.data_ptr(), storage.nbytes())


def test_several_backings_where_one_is_shared_are_refused() -> None:
    tensors = [
        SimpleNamespace(size=64, layers=["a", "b"]),
        SimpleNamespace(size=32, layers=["c"]),
    ]
    config = SimpleNamespace(kv_cache_tensors=tensors)
    with pytest.raises(
        kv_cache.SharedBackingError, match=r"32 bytes for c; 64 bytes for a, b"
    ):
        kv_cache.allocate_backing(lambda *_: {}, config, CPU)


def test_the_padding_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """How much memory alignment costs is a number, never taken silently."""
    with caplog.at_level("INFO", logger="ascend_shims.kv_cache"):
        kv_cache.allocate_layers(
            _upstream([[("l0", torch.int8, (GRANULE,), 0)]]), None, None, CPU
        )
    assert caplog.messages == [
        "1 KV cache backings aligned to 2 MiB, 2.0 MiB of padding"
    ]
