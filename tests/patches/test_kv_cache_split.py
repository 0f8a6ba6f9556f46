"""kv-cache on plain tensors, for backends that take K and V apart.

Every test compares with what upstream describes: the same blocks, the same bytes
shared and nothing else, K and V where the operators want them.
"""

from __future__ import annotations

import gc
import itertools
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.device import kv
from ascend_shims.device.kv_layout import Parts, Realised, realise
from ascend_shims.device.kv_memory import (
    GRANULE,
    allocate,
    backings,
    padding_bound,
)

CPU = torch.device("cpu")
DTYPES = (torch.uint8, torch.float16, torch.bfloat16, torch.float32)


@dataclass(frozen=True)
class Layer:
    """One layer of a made-up cache, packed as upstream packs it: `[B, H, N, C]`."""

    name: str
    blocks: int
    heads: int
    tokens: int
    first: int
    second: int
    dtype: torch.dtype
    divided: bool
    tokens_first: bool
    """Physically `[B, N, H, C]` rather than `[B, H, N, C]`."""
    extra: int = 0
    """Bytes after each page."""

    @property
    def content(self) -> int:
        return self.first + self.second

    @property
    def page(self) -> int:
        cells = self.heads * self.tokens * self.content
        return cells * self.dtype.itemsize + self.extra

    def view(self, raw: torch.Tensor, offset: int, stride: int) -> torch.Tensor:
        """Its packed view, whose blocks start `stride` bytes apart."""
        row, width = self.content, self.dtype.itemsize
        inner = (
            (row, self.heads * row) if self.tokens_first else (self.tokens * row, row)
        )
        shape = (self.blocks, self.heads, self.tokens, row)
        strides = (stride // width, *inner, 1)
        return raw.view(self.dtype).as_strided(shape, strides, offset // width)

    @property
    def parts(self) -> Parts:
        same = self.first == self.second
        return Parts(self.heads, self.first, self.second, regions=same)


@dataclass(frozen=True)
class Cache:
    """Layers on one backing, and where each of them starts."""

    layers: tuple[Layer, ...]
    offsets: tuple[int, ...]
    strides: tuple[int, ...]
    size: int

    @property
    def names(self) -> list[str]:
        return [layer.name for layer in self.layers]

    def views(self, device: torch.device) -> dict[str, torch.Tensor]:
        raw = torch.zeros(self.size, dtype=torch.int8, device=device)
        places = zip(self.layers, self.offsets, self.strides, strict=True)
        return {one.name: one.view(raw, offset, step) for one, offset, step in places}

    def realise(self, *, whole: bool = False) -> Realised:
        parts = {layer.name: layer.parts for layer in self.layers if layer.divided}
        return realise(self.views(torch.device("meta")), CPU, parts, whole=whole)


@st.composite
def layer(draw: st.DrawFn, name: str, *, blocks: int, divided: bool) -> Layer:
    heads = draw(st.integers(1, 3))
    first = draw(st.integers(1, 6))
    second = draw(st.sampled_from([first, draw(st.integers(1, 6))]))
    return Layer(
        name,
        blocks,
        heads,
        draw(st.integers(1, 4)),
        first,
        second,
        draw(st.sampled_from(DTYPES)),
        divided,
        draw(st.booleans()),
        # Four bytes is what every dtype here divides.
        4 * draw(st.integers(0, 2)),
    )


def _padded(size: int) -> int:
    return -(-size // 4) * 4


@st.composite
def apart(draw: st.DrawFn) -> Cache:
    """Layers one after the other: each has a contiguous range of its own."""
    blocks = draw(st.integers(1, 5))
    layers = [
        draw(layer(f"l{i}", blocks=blocks, divided=draw(st.integers(0, 3)) > 0))
        for i in range(draw(st.integers(1, 4)))
    ]
    strides = [_padded(one.page) for one in layers]
    ends = list(itertools.accumulate(step * blocks for step in strides))
    return Cache(tuple(layers), (0, *ends[:-1]), tuple(strides), ends[-1])


@st.composite
def shared(draw: st.DrawFn) -> Cache:
    """Two groups whose layers overlay each other, layer by layer and page by page."""
    blocks = draw(st.integers(1, 5))
    number = draw(st.integers(1, 3))
    layers = [
        draw(layer(f"{group}{i}", blocks=blocks, divided=draw(st.booleans())))
        for group in "ab"
        for i in range(number)
    ]
    page = max(_padded(one.page) for one in layers)
    outermost = draw(st.booleans())
    step = page * number if outermost else page
    offsets = [i * (page if outermost else page * blocks) for i in range(number)] * 2
    strides = (step,) * len(layers)
    return Cache(tuple(layers), tuple(offsets), strides, page * number * blocks)


caches = st.one_of(apart(), shared())


def _packed_block(one: Layer, pair: kv.Pair, block: int) -> torch.Tensor:
    """A block of a divided cache in upstream's order `[H, N, C]`."""
    k, v = pair
    return torch.cat([k[block], v[block]], dim=-1).transpose(0, 1)


def _write_block(one: Layer, pair: kv.Pair, block: int, packed: torch.Tensor) -> None:
    k, v = packed.transpose(0, 1).split([one.first, one.second], dim=-1)
    pair[0][block].copy_(k)
    pair[1][block].copy_(v)


def _bytes(view: torch.Tensor) -> set[int]:
    """The addresses of all bytes of a view."""
    index = torch.zeros((), dtype=torch.int64)
    for n, stride in zip(view.shape, view.stride(), strict=True):
        index = index.unsqueeze(-1) + torch.arange(n) * stride
    starts = view.data_ptr() + index.flatten() * view.itemsize
    return {int(s) + i for s in starts for i in range(view.itemsize)}


def _block_bytes(real: Realised, name: str, block: int) -> set[int]:
    pair = real.pairs.get(id(real.caches[name]))
    views = [real.caches[name]] if pair is None else list(pair)
    return set().union(*(_bytes(view[block]) for view in views))


@settings(max_examples=80, deadline=None)
@given(cache=caches, data=st.data())
def test_what_upstream_holds_is_held_here_block_for_block(
    cache: Cache, data: st.DataObject
) -> None:
    """Each block is owned by one layer of those that overlay it, as upstream does."""
    stock, real = cache.views(CPU), cache.realise()
    number = itertools.count(1)
    for block in range(cache.layers[0].blocks):
        start = {offset: data.draw(st.integers(0, 1)) for offset in cache.offsets}
        owners = [
            one
            for i, one in enumerate(cache.layers)
            if cache.offsets.count(cache.offsets[i]) == 1
            or (i >= len(cache.layers) // 2) == start[cache.offsets[i]]
        ]
        assert owners
        for one in owners:
            shape = stock[one.name][block].shape
            value = torch.arange(shape.numel()).reshape(shape) + next(number)
            stock[one.name][block] = value.to(one.dtype)
            if one.divided:
                pair = real.pairs[id(real.caches[one.name])]
                _write_block(one, pair, block, stock[one.name][block])
            else:
                real.caches[one.name][block] = stock[one.name][block]
        for one in owners:
            pair_of = real.pairs.get(id(real.caches[one.name]))
            held = (
                real.caches[one.name][block]
                if pair_of is None
                else _packed_block(one, pair_of, block)
            )
            assert torch.equal(held, stock[one.name][block])


@settings(max_examples=60, deadline=None)
@given(cache=caches)
def test_layers_share_bytes_exactly_where_upstreams_do(cache: Cache) -> None:
    stock, real = cache.views(CPU), cache.realise()
    blocks = range(cache.layers[0].blocks)
    cells = list(itertools.product(cache.names, blocks))
    theirs = {(n, b): _bytes(stock[n][b]) for n, b in cells}
    ours = {(n, b): _block_bytes(real, n, b) for n, b in cells}
    assert {cell: len(ours[cell]) for cell in cells} == {
        cell: len(theirs[cell]) for cell in cells
    }
    for one, other in itertools.combinations(cells, 2):
        assert bool(ours[one] & ours[other]) == bool(theirs[one] & theirs[other])


@settings(max_examples=60, deadline=None)
@given(cache=shared())
def test_on_a_shared_backing_every_page_keeps_its_bytes(cache: Cache) -> None:
    stock, real = cache.views(CPU), cache.realise()
    start = stock[cache.names[0]].untyped_storage().data_ptr()
    base = real.caches[cache.names[0]].untyped_storage().data_ptr()
    for name in cache.names:
        assert real.caches[name].untyped_storage().data_ptr() == base
        assert real.caches[name].untyped_storage().nbytes() == cache.size
        for block in range(cache.layers[0].blocks):
            theirs = {address - start for address in _bytes(stock[name][block])}
            ours = {address - base for address in _block_bytes(real, name, block)}
            assert ours == theirs


@settings(max_examples=60, deadline=None)
@given(cache=caches, whole=st.booleans())
def test_the_operators_find_what_they_ask_for(cache: Cache, whole: bool) -> None:
    real = cache.realise(whole=whole)
    wanted = [one for one in cache.layers if one.divided]
    assert len(real.pairs) == len(wanted)
    alone = len(set(cache.offsets)) == len(cache.offsets)
    for one in wanted:
        view = real.caches[one.name]
        k, v = real.pairs[id(view)]
        assert k.shape == (one.blocks, one.tokens, one.heads, one.first)
        assert v.shape == (one.blocks, one.tokens, one.heads, one.second)
        assert k.dtype == v.dtype == one.dtype
        assert k[0].is_contiguous()
        assert v[0].is_contiguous()
        assert view.shape[0] == one.blocks
        if one.first == one.second:
            assert view.shape == (one.blocks, 2, one.tokens, one.heads, one.first)
            again = kv.split(view)
            assert [part.data_ptr() for part in again] == [k.data_ptr(), v.data_ptr()]
        if one.first == one.second and alone:
            assert k.is_contiguous()
            assert v.is_contiguous()
            assert k.data_ptr() % GRANULE == v.data_ptr() % GRANULE == 0


@settings(max_examples=60, deadline=None)
@given(cache=caches, whole=st.booleans())
def test_backings_are_aligned_and_padding_is_bounded(cache: Cache, whole: bool) -> None:
    real = cache.realise(whole=whole)
    (backing,) = backings(real.caches)
    assert backing.layers == tuple(sorted(cache.names))
    assert backing.base % GRANULE == 0
    if whole:
        assert backing.length % GRANULE == 0
    for name in cache.names:
        for view in real.pairs.get(id(real.caches[name]), (real.caches[name],)):
            held = _bytes(view)
            assert backing.base <= min(held)
            assert max(held) < backing.base + backing.length
    assert real.described == cache.size
    divided = sum(one.divided for one in cache.layers)
    bound = padding_bound(divided=divided, others=len(cache.layers) - divided)
    assert real.taken - real.described <= bound
    assert backing.length + GRANULE == real.taken


@settings(max_examples=60, deadline=None)
@given(cache=caches, whole=st.booleans(), data=st.data())
def test_blocks_are_copied_whole_by_what_stands_for_them(
    cache: Cache, whole: bool, data: st.DataObject
) -> None:
    """As upstream before 0.29 does: a storage is so many equal blocks, nothing else."""
    blocks = cache.layers[0].blocks
    source = data.draw(st.integers(0, blocks - 1))
    target = data.draw(st.integers(0, blocks - 1))
    real = cache.realise(whole=whole)
    for number, cached in enumerate(real.caches.values()):
        cached.copy_(torch.arange(cached.numel()).reshape(cached.shape) % 113 + number)
    before = {n: c.clone() for n, c in real.caches.items()}
    for cached in real.caches.values():
        for piece in real.by_block.get(id(cached), (cached,)):
            assert piece.shape[0] == blocks
            piece[target] = piece[source]
    overlaid = len(set(cache.offsets)) < len(cache.offsets)
    for name, cached in real.caches.items():
        assert torch.equal(cached[target], cached[source])
        for block in range(blocks):
            if block != target:
                assert torch.equal(cached[block], before[name][block]) or overlaid


def test_a_view_keeps_its_memory_alive() -> None:
    one = Layer("l0", 4, 2, 3, 4, 4, torch.float16, True, True)
    cache = Cache((one,), (0,), (one.page,), one.page * 4)
    k, v = cache.realise().pairs.popitem()[1]
    gc.collect()
    k.fill_(3)
    v.fill_(5)
    assert float(k.sum()) == 3 * k.numel()
    assert float(v.sum()) == 5 * v.numel()


def test_a_layer_that_shares_anothers_cache_gets_the_same_tensor() -> None:
    one = Layer("l0", 4, 2, 3, 4, 4, torch.float16, True, True)
    cache = Cache((one,), (0,), (one.page,), one.page * 4)
    described = cache.views(torch.device("meta"))
    described["l9"] = described["l0"]
    real = realise(described, CPU, {"l0": one.parts}, whole=False)
    assert real.caches["l9"] is real.caches["l0"]
    assert len(real.pairs) == 1


def test_heads_outside_blocks_are_fine_alone_and_refused_where_pages_are_shared() -> (
    None
):
    def described() -> dict[str, torch.Tensor]:
        raw = torch.zeros(2 * 3 * 4 * 8, dtype=torch.int8, device="meta")
        # Physically [H, B, N, C].
        return {"l0": raw.as_strided((3, 2, 4, 8), (32, 96, 8, 1))}

    parts = {"l0": Parts(2, 4, 4, regions=True)}
    real = realise(described(), CPU, parts, whole=False)
    k, v = real.pairs[id(real.caches["l0"])]
    assert k.is_contiguous()
    assert v.is_contiguous()
    overlaid = described()
    overlaid["l1"] = overlaid["l0"].view(3, 2, 4, 8)
    with pytest.raises(kv.NotAPageError, match=r"64 elements is spread over 128"):
        realise(overlaid, CPU, parts, whole=False)


def test_latent_and_rope_lie_one_after_the_other_in_each_page() -> None:
    page = torch.arange(3 * 4 * 6).reshape(3, 1, 4, 6)
    latent, rope = kv.split_latent(page, 4, 2)
    assert latent.shape == (3, 4, 1, 4)
    assert rope.shape == (3, 4, 1, 2)
    assert latent[1].flatten().tolist() == list(range(24, 40))
    assert rope[1].flatten().tolist() == list(range(40, 48))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((3, 4, 2, 8), r"\[blocks, 2, tokens, heads, size\], not .*\[3, 4, 2, 8\]"),
        ((3, 1, 4, 2, 8), r"not one of shape \[3, 1, 4, 2, 8\]"),
    ],
)
def test_split_says_what_it_takes(shape: tuple[int, ...], said: str) -> None:
    with pytest.raises(kv.NotAPageError, match=said):
        kv.split(torch.zeros(shape))


def test_a_page_of_half_a_token_is_refused() -> None:
    with pytest.raises(kv.NotAPageError, match=r"7 elements holds no whole number"):
        kv.split_page(torch.zeros(2, 7), 1, 2, 1)


def test_a_backend_says_that_it_takes_k_and_v_apart() -> None:
    class Packed:
        pass

    class Apart:
        takes_split_kv = True

    class Heir(Apart):
        pass

    found = [kv.takes_split(backend) for backend in (Packed, Apart, Heir)]
    assert found == [False, True, True]


def test_nothing_is_taken_for_nothing() -> None:
    assert allocate([], CPU, whole=True) == ([], 0)


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 3 * GRANULE), min_size=1, max_size=4),
    whole=st.booleans(),
)
def test_pieces_are_exact_aligned_and_never_overlap(
    lengths: list[int], whole: bool
) -> None:
    pieces, taken = allocate(lengths, CPU, whole=whole)
    sizes = [piece.nbytes() for piece in pieces]
    if whole:
        assert sizes == [-(-length // GRANULE) * GRANULE for length in lengths]
    else:
        assert sizes == lengths
    starts = [piece.data_ptr() for piece in pieces]
    assert [start % GRANULE for start in starts] == [0] * len(lengths)
    for (start, size), after in zip(
        zip(starts, sizes, strict=True), starts[1:], strict=False
    ):
        assert start + size <= after
    assert taken - sum(lengths) <= (1 + len(lengths)) * GRANULE
