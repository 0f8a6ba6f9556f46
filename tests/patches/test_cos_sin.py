"""The cos/sin tables: what they hold, where, for whom and how long."""

from __future__ import annotations

import gc
import logging
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from ascend_shims.device.rope import TableTooSmallError, attention_ropes
from ascend_shims.patches import cos_sin

POSITIONS = 64


class Rope(nn.Module):
    """As upstream's rotary modules look from outside."""

    cos_sin_cache: torch.Tensor

    def __init__(
        self, base: float = 1e4, rotary_dim: int = 8, neox: bool = True
    ) -> None:
        super().__init__()
        self.rotary_dim, self.base, self.is_neox_style = rotary_dim, base, neox
        frequencies = base ** -(torch.arange(0, rotary_dim, 2) / rotary_dim)
        angles = torch.outer(torch.arange(POSITIONS).float(), frequencies)
        self.register_buffer(
            "cos_sin_cache", torch.cat((angles.cos(), angles.sin()), 1)
        )


class Attention(nn.Module):
    def get_kv_cache_spec(self, _config: object) -> None: ...


class Layer(nn.Module):
    def __init__(self, rope: nn.Module, name: str = "rotary_emb") -> None:
        super().__init__()
        self.add_module(name, rope)
        self.attn = Attention()


def model(*ropes: nn.Module) -> nn.Module:
    return nn.Sequential(*map(Layer, ropes))


class Buffers:
    def __init__(self, num_tokens: int) -> None:
        self.positions = torch.zeros(num_tokens, dtype=torch.int64)


class Batch:
    def __init__(self, positions: torch.Tensor) -> None:
        self.positions = positions
        self.num_tokens_after_padding = positions.shape[-1]


class Runner:
    """The part of a `GPUModelRunner` that the gap looks at."""

    def __init__(
        self,
        loaded: nn.Module | None = None,
        *,
        draft: nn.Module | None = None,
        mla: bool = False,
        max_num_tokens: int = 16,
        max_num_reqs: int = 4,
        num_speculative_steps: int = 0,
    ) -> None:
        self.model_config = SimpleNamespace(use_mla=mla)
        self.speculative_config = SimpleNamespace(draft_model_config=self.model_config)
        self.dtype, self.device = torch.float32, torch.device("cpu")
        self.max_num_tokens, self.max_num_reqs = max_num_tokens, max_num_reqs
        self.num_speculative_steps = num_speculative_steps
        self.input_buffers = Buffers(max_num_tokens)
        self.speculator: Any = None
        if draft is not None:
            self.speculator = SimpleNamespace(
                model=draft, input_buffers=Buffers(max_num_tokens)
            )
        if loaded is not None:
            self.model = loaded


def built(*args: Any, **kwargs: Any) -> Runner:
    runner = Runner.__new__(Runner)
    cos_sin.set_tables(Runner.__init__, runner, *args, **kwargs)
    return runner


def step(runner: Runner, positions: list[int]) -> None:
    batch = Batch(torch.tensor(positions))
    result = cos_sin.update_for_step(lambda _runner, batch: batch, runner, batch)
    assert result is batch


def dummy(buffers: Buffers, num_tokens: int) -> Batch:
    def make_dummy(*args: Any, **options: Any) -> Batch:
        assert args == (Batch, 1, num_tokens, buffers)
        assert options == {"max_query_len": 9}
        return Batch(buffers.positions[:num_tokens].zero_())

    batch: Batch = cos_sin.update_for_dummy(
        make_dummy, Batch, 1, num_tokens, input_buffers=buffers, max_query_len=9
    )
    return batch


def row(rope: Rope, position: int) -> tuple[list[float], list[float]]:
    """Cos and sin of one position, each as wide as the rope."""
    cos, sin = rope.cos_sin_cache[position].view(2, -1).tolist()
    if rope.is_neox_style:
        return cos * 2, sin * 2
    return [c for c in cos for _ in "xx"], [s for s in sin for _ in "xx"]


def rows(table: Any) -> list[tuple[list[float], list[float]]]:
    width = table.source.rotary_dim
    cos, sin = table.cos.view(-1, width), table.sin.view(-1, width)
    return list(zip(cos.tolist(), sin.tolist(), strict=True))


@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize("mla", [True, False])
def test_a_step_writes_its_rows_and_leaves_the_rest_valid(
    neox: bool, mla: bool
) -> None:
    rope = Rope(neox=neox)
    runner = built(model(rope), mla=mla, max_num_tokens=6)

    step(runner, [3, 9, 4])
    table = cos_sin.tables_of(runner)
    assert table is not None
    assert rows(table) == [row(rope, p) for p in (3, 9, 4, 0, 0, 0)]

    step(runner, [63])
    assert rows(table) == [row(rope, p) for p in (63, 9, 4, 0, 0, 0)]


@pytest.mark.parametrize(
    ("mla", "tokens", "reqs", "steps", "shape"),
    [
        (False, 16, 4, 0, (1, 16, 1, 8)),
        (True, 16, 4, 0, (16, 1, 1, 8)),
        (False, 16, 4, 3, (1, 16, 1, 8)),
        (False, 16, 4, 7, (1, 32, 1, 8)),
        (True, 4, 8, 2, (24, 1, 1, 8)),
    ],
)
def test_shape_and_capacity(
    mla: bool, tokens: int, reqs: int, steps: int, shape: tuple[int, ...]
) -> None:
    runner = built(
        model(Rope()),
        mla=mla,
        max_num_tokens=tokens,
        max_num_reqs=reqs,
        num_speculative_steps=steps,
    )
    step(runner, [1])
    table = cos_sin.tables_of(runner)
    assert table is not None
    assert tuple(table.cos.shape) == tuple(table.sin.shape) == shape
    assert table.capacity == max(shape[:2])
    assert table.cos.is_contiguous()
    assert table.cos.data_ptr() != table.sin.data_ptr()


def test_upstreams_own_decode_query_len_counts_when_it_is_larger() -> None:
    runner = built(model(Rope()), max_num_tokens=4, max_num_reqs=4)
    runner.decode_query_len = 3  # type: ignore[attr-defined]
    step(runner, [1])
    table = cos_sin.tables_of(runner)
    assert table is not None
    assert table.capacity == 12


@pytest.mark.parametrize("mla", [True, False])
def test_views_for_the_tokens_of_a_step(mla: bool) -> None:
    runner = built(model(Rope()), mla=mla)
    step(runner, [5, 6])
    table = cos_sin.tables_of(runner)
    assert table is not None
    cos, sin = table.for_tokens(2)
    assert tuple(cos.shape) == ((2, 1, 1, 8) if mla else (1, 2, 1, 8))
    assert (cos.data_ptr(), sin.data_ptr()) == (
        table.cos.data_ptr(),
        table.sin.data_ptr(),
    )
    with pytest.raises(TableTooSmallError, match="16 tokens was asked for 17"):
        table.for_tokens(17)
    with pytest.raises(TableTooSmallError):
        step(runner, [0] * 17)


def test_the_addresses_never_change() -> None:
    runner = built(model(Rope()), draft=model(Rope(5e5)))

    def addresses() -> list[int]:
        tables = cos_sin.tables_of(runner), cos_sin.draft_tables_of(runner)
        return [
            t.data_ptr() for table in tables if table for t in (table.cos, table.sin)
        ]

    dummy(runner.input_buffers, 8)
    dummy(runner.speculator.input_buffers, 8)
    first = addresses()
    assert len(set(first)) == 4
    for size in (1, 16, 3):
        step(runner, list(range(size)))
        dummy(runner.speculator.input_buffers, size)
        with torch.inference_mode():
            step(runner, list(range(size)))
        assert addresses() == first


def test_a_dummy_batch_is_the_batch_of_whose_buffers_it_is_made_of() -> None:
    target, draft = Rope(1e4), Rope(5e5)
    runner = built(model(target), draft=model(draft))
    other = built(model(target))
    step(runner, [1, 2])
    step(other, [3, 4])
    runner.speculator.input_buffers.positions[:2] = 7
    cos_sin.update_for_draft(lambda *_: None, runner.speculator, 2)

    dummy(runner.input_buffers, 1)
    dummy(Buffers(4), 4)
    mine, theirs = cos_sin.tables_of(runner), cos_sin.tables_of(other)
    drafted = cos_sin.draft_tables_of(runner)
    assert mine and theirs and drafted
    assert rows(mine)[:2] == [row(target, 0), row(target, 2)]
    assert rows(theirs)[:2] == [row(target, 3), row(target, 4)]
    assert rows(drafted)[:2] == [row(draft, 7), row(draft, 7)]

    dummy(runner.speculator.input_buffers, 1)
    assert rows(drafted)[:2] == [row(draft, 0), row(draft, 7)]
    assert rows(mine)[:2] == [row(target, 0), row(target, 2)]


@pytest.mark.parametrize("where", ["put there by a subclass", "context parallel"])
def test_buffers_that_came_after_the_constructor_are_the_targets_too(
    where: str,
) -> None:
    rope = Rope()
    runner: Any = built(model(rope))
    step(runner, [5])
    later = Buffers(16)
    if where == "context parallel":
        runner.pcp_manager = SimpleNamespace(input_buffers=later)
    else:
        runner.input_buffers = later
    dummy(later, 1)
    table = cos_sin.tables_of(runner)
    assert table is not None
    assert rows(table)[0] == row(rope, 0)


def test_a_draft_that_shares_the_rope_still_has_its_own_storage() -> None:
    rope = Rope()
    runner = built(model(rope), draft=model(rope))
    step(runner, [10, 20])
    runner.speculator.input_buffers.positions[:2] = torch.tensor([11, 21])
    calls = []
    cos_sin.update_for_draft(
        lambda *args, **kwargs: calls.append((args, kwargs)),
        runner.speculator,
        2,
        None,
        slot_mappings={},
    )
    assert calls == [((runner.speculator, 2, None), {"slot_mappings": {}})]
    target, draft = cos_sin.tables_of(runner), cos_sin.draft_tables_of(runner)
    assert target and draft
    assert rows(target)[:2] == [row(rope, 10), row(rope, 20)]
    assert rows(draft)[:2] == [row(rope, 11), row(rope, 21)]


def test_a_standalone_draft_reads_one_token_more_of_each_request() -> None:
    rope = Rope(5e5)
    runner = built(model(Rope()), draft=model(rope), max_num_tokens=8, max_num_reqs=2)
    positions = torch.arange(10)
    seen = cos_sin.update_for_standalone_draft(
        lambda _speculator, ids, positions, *rest: (ids, positions, rest),
        runner.speculator,
        "ids",  # type: ignore[arg-type]
        positions,
        "metadata",
    )
    assert seen == ("ids", positions, ("metadata",))
    table = cos_sin.draft_tables_of(runner)
    assert table is not None
    assert rows(table) == [row(rope, p) for p in range(10)]


def test_a_context_parallel_draft_uses_its_ranks_positions() -> None:
    rope = Rope()
    runner = built(model(Rope()), draft=model(rope))
    local = Batch(torch.tensor([31, 32]))
    runner.speculator.pcp_manager = SimpleNamespace(draft_prefill_batch=local)
    cos_sin.update_for_draft(lambda *_: None, runner.speculator, 2)
    table = cos_sin.draft_tables_of(runner)
    assert table is not None
    assert rows(table)[:2] == [row(rope, 31), row(rope, 32)]


def test_a_model_with_two_ropes_has_two_tables() -> None:
    local, far = Rope(1e4), Rope(1e6)
    assert list(attention_ropes(model(local, far, local, far))) == [local, far]
    runner = built(model(local, far, local, far))
    step(runner, [40])
    one, two = (cos_sin.tables_of(runner, rope) for rope in (local, far))
    assert one and two
    assert cos_sin.tables_of(runner) is one
    assert rows(one)[0] == row(local, 40)
    assert rows(two)[0] == row(far, 40)
    assert cos_sin.describe(runner).count("[1, 16, 1, 8]") == 2


def test_ropes_built_anew_in_every_layer_share_one_table() -> None:
    ropes = Rope(), Rope(), Rope()
    runner = built(model(*ropes))
    step(runner, [40])
    assert len({id(cos_sin.tables_of(runner, rope)) for rope in ropes}) == 1
    assert cos_sin.describe(runner).count("cos and sin") == 1
    assert cos_sin.tables_of(runner, Rope()) is None


def test_ropes_are_found_behind_missing_layers_and_under_any_name() -> None:
    tower = nn.Module()
    tower.rotary_pos_emb = Rope(1e2, rotary_dim=4)
    rope = Rope()
    stage = nn.Module()
    stage.visual = tower
    stage.layers = nn.ModuleList([nn.Identity(), nn.Identity(), Layer(rope, "pe")])
    runner = built(stage)
    step(runner, [2])
    table = cos_sin.tables_of(runner)
    assert table is not None
    assert table.source.module is rope
    assert cos_sin.tables_of(runner, tower.rotary_pos_emb) is None


class Fourier(Rope):
    def __init__(self) -> None:
        super().__init__()
        self.cos_sin_cache = self.cos_sin_cache.expand(2, -1, -1)


def test_models_without_a_rope_or_with_another_kind_say_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runner = built(model(nn.Identity()))
    assert cos_sin.describe(runner) == "target: no tables yet, no step has come"
    step(runner, [1])
    assert cos_sin.tables_of(runner) is None
    assert "no attention layer on this rank has a rotary" in cos_sin.describe(runner)
    assert not caplog.records

    runner = built(model(Fourier()))
    with caplog.at_level(logging.WARNING):
        step(runner, [1])
        step(runner, [2])
    assert cos_sin.tables_of(runner) is None
    said = "Fourier keeps a table [2, 64, 8] of torch.float32, not [positions, 8]"
    assert said in cos_sin.describe(runner)
    assert [said in record.getMessage() for record in caplog.records] == [True]


def test_a_runner_from_before_the_gap_was_on_is_served_from_its_next_step() -> None:
    rope = Rope()
    runner = Runner(model(rope))
    assert "while this runner was built" in cos_sin.describe(runner)
    assert cos_sin.tables_of(runner) is None
    step(runner, [8])
    table = cos_sin.tables_of(runner)
    assert table is not None
    assert rows(table)[0] == row(rope, 8)
    assert cos_sin.describe(runner) == (
        "target: cos and sin [1, 16, 1, 8] float32, neox"
    )


def test_the_model_may_come_after_the_first_dummy_and_may_be_loaded_again() -> None:
    runner = built()
    dummy(runner.input_buffers, 1)
    assert cos_sin.tables_of(runner) is None
    for rope in (Rope(1e4), Rope(1e6)):
        runner.model = model(rope)
        step(runner, [30])
        table = cos_sin.tables_of(runner)
        assert table is not None
        assert rows(table)[0] == row(rope, 30)


def test_multi_axis_positions_come_after_prepare_inputs() -> None:
    class MRotaryEmbedding(Rope):
        mrope_section, mrope_interleaved = (2, 1, 1), False

    rope = MRotaryEmbedding()
    runner = built(model(rope), max_num_tokens=4)
    state = SimpleNamespace(positions=torch.zeros(3, 5, dtype=torch.int64))
    runner.model_state = SimpleNamespace(rope_state=state)  # type: ignore[attr-defined]

    def prepare_positions(rope_state: Any, idx_mapping: str) -> str:
        rope_state.positions[:] = torch.tensor([[11], [22], [33]])
        return idx_mapping

    step(runner, [50, 51])
    assert cos_sin.update_for_mrope(prepare_positions, state, "mapping") == "mapping"
    table = cos_sin.tables_of(runner)
    assert table is not None
    t, h, w = (row(rope, p) for p in (11, 22, 33))
    mixed = tuple([*t[i][:2], h[i][2], w[i][3]] * 2 for i in (0, 1))
    assert rows(table) == [mixed, mixed, row(rope, 0), row(rope, 0)]
    assert cos_sin.describe(runner).endswith("neox (multi-axis positions)")

    cos_sin.update_for_mrope(lambda *_: None, SimpleNamespace(positions=None))
    dummy(runner.input_buffers, 3)
    assert rows(table)[2] == mixed


def test_nothing_outlives_the_runner() -> None:
    runner, other = built(model(Rope()), draft=model(Rope(5e5))), built(model(Rope()))
    step(runner, [1])
    step(other, [1])
    dummy(runner.speculator.input_buffers, 1)
    buffers, speculator, loaded = runner.input_buffers, runner.speculator, runner.model
    table, draft = cos_sin.tables_of(runner), cos_sin.draft_tables_of(runner)
    assert table and draft
    alive = [weakref.ref(t) for t in (runner, table.cos, table.sin, draft.cos)]
    del runner, table, draft
    gc.collect()
    assert [reference() for reference in alive] == [None] * 4

    unloaded = weakref.ref(other.model)
    del other.model
    gc.collect()
    assert unloaded() is None
    # Parts of a runner that is gone, still held by somebody, are nobody's now.
    dummy(buffers, 1)
    cos_sin.update_for_draft(lambda *_: None, speculator, 1)
    assert list(loaded.modules())


def test_a_failing_constructor_leaves_nothing_behind() -> None:
    def init(_runner: Runner) -> None:
        raise RuntimeError("no memory")

    runner = Runner.__new__(Runner)
    with pytest.raises(RuntimeError, match="no memory"):
        cos_sin.set_tables(init, runner)
    assert "while this runner was built" in cos_sin.describe(runner)


class Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Which operators ran."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(
        self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_a_step_waits_for_nothing_and_allocates_only_its_rows() -> None:
    runner = built(model(Rope()))
    step(runner, [0, 1, 2, 3])
    batch = Batch(torch.arange(4))
    with Operators() as operators:
        cos_sin.update_for_step(lambda *_: batch, runner)
    work = [name for name in operators.names if name in ("index_select", "copy_")]
    assert work == ["index_select", "copy_", "copy_"]
    views = {"alias", "slice", "split", "unsqueeze", "view"}
    assert set(operators.names) - set(work) <= views
