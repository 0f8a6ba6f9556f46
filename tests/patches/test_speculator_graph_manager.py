"""speculator-graph-manager on plain objects: who knows whom, and what a replay gets.

That tokens are right with it is in `tests/real/test_rig_drafts.py`.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.device import graphs, replays
from ascend_shims.device.lengths import beside, host_view
from ascend_shims.patches import graph_manager, speculator_graph_manager

MAX_REQS = 4
LIMIT = 30


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    @contextmanager
    def context(refresh: replays.Refresh, num_tokens: int) -> Iterator[Any]:
        yield SimpleNamespace(attn_metadata=refresh.attn_metadata)

    monkeypatch.setattr(replays, "_forward_context", context)
    monkeypatch.setattr(
        replays, "npu", lambda: SimpleNamespace(Stream=lambda: object())
    )
    yield


class Manager:
    """Of upstream's graph managers: what it captured, and that it replays."""

    def __init__(self) -> None:
        self.graphs: dict[Any, object] = {}
        self.replayed: list[Any] = []

    def run_fullgraph(self, desc: Any) -> None:
        self.replayed.append((desc, graphs.owned(), graphs.replayed()))


class Impl:
    updates: list[dict[str, Any]] = []  # noqa: RUF012

    @staticmethod
    def update_graph_params(
        stream: Any,
        context: Any,
        num_tokens: int,
        vllm_config: Any,
        speculative_config: Any,
        draft_attn_metadatas: Any = None,
    ) -> None:
        Impl.updates.append(
            {
                "stream": stream,
                "params": graphs.owned(),
                "num_tokens": num_tokens,
                "metadata": context.attn_metadata,
                "passes": draft_attn_metadatas,
            }
        )


def group(impl: type) -> Any:
    backend = SimpleNamespace(get_impl_cls=lambda: impl)
    return SimpleNamespace(backend=backend)


class Speculator:
    """An autoregressive one, of three draft tokens."""

    advance_draft_positions = True
    num_speculative_steps = 3
    max_model_len = LIMIT
    num_query_per_req = 4
    _group_causal = False

    def __init__(self, model_state: Any) -> None:
        self.model_state = model_state
        self.vllm_config = self.speculative_config = object()
        self.attn_groups = [[group(Impl), group(Impl)], [group(object)]]
        self.input_buffers, self.target_input_buffers = buffers(), buffers()
        self.prefill_cudagraph_manager: Manager | None = None
        self.decode_cudagraph_manager: Manager | None = None
        self.query_cudagraph_manager: Manager | None = None
        self.cudagraph_manager: Manager | None = None

    def init_cudagraph_manager(self) -> None:
        self.prefill_cudagraph_manager = Manager()
        self.decode_cudagraph_manager = Manager()

    def _build_uniform_attn_metadata(self, **asked: Any) -> dict[str, Any]:
        found = host_view(self.input_buffers.seq_lens)
        assert found is not None
        asked["seq_lens_cpu_upper_bound"] = asked["seq_lens_cpu_upper_bound"].tolist()
        return {"lengths": found.tolist(), **asked}


class Buffers:
    def __init__(self) -> None:
        self.seq_lens = torch.zeros(MAX_REQS, dtype=torch.int32)
        self.host_lengths = beside(self.seq_lens)


def buffers() -> Any:
    return Buffers()


class State:
    """Of a model state: it prepares the target's metadata."""


class Runner:
    def __init__(self) -> None:
        self.speculator = Speculator(State())

    def initialize_kv_cache(self) -> None:
        speculator_graph_manager.adopt(
            Speculator.init_cudagraph_manager, self.speculator
        )


def built() -> Runner:
    Impl.updates.clear()
    runner = Runner()
    graph_manager.initialize(Runner.initialize_kv_cache, runner)
    return runner


def desc(num_tokens: int, **more: Any) -> Any:
    return SimpleNamespace(num_tokens=num_tokens, num_reqs=num_tokens, **more)


class Desc(SimpleNamespace):
    __hash__ = object.__hash__


def replay(manager: Manager | None, num_tokens: int, **more: Any) -> Desc:
    assert manager is not None
    wanted = Desc(num_tokens=num_tokens, num_reqs=num_tokens, **more)
    manager.graphs[wanted] = object()
    speculator_graph_manager.replay(Manager.run_fullgraph, manager, wanted)
    return wanted


class TestWhoKnowsWhom:
    def test_every_manager_knows_its_speculator_and_the_runners_stream(self) -> None:
        runner = built()
        made = runner.speculator
        for manager in (made.prefill_cudagraph_manager, made.decode_cudagraph_manager):
            assert manager is not None
            assert manager.speculator.input_buffers is made.input_buffers  # type: ignore[attr-defined]
            assert manager.update_stream is runner.update_stream  # type: ignore[attr-defined]
        assert made.update_stream is runner.update_stream  # type: ignore[attr-defined]

    def test_each_has_parameters_of_its_own(self) -> None:
        one, other = built().speculator, built().speculator
        params = [
            speculator_graph_manager.params_of(manager)
            for made in (one, other)
            for manager in (
                made.prefill_cudagraph_manager,
                made.decode_cudagraph_manager,
            )
        ]
        assert [p.name for p in params if p] == ["draft prefill", "draft decode"] * 2
        assert len(set(map(id, params))) == 4

    def test_a_single_manager_is_the_drafts(self) -> None:
        speculator = Speculator(State())
        runner = SimpleNamespace(update_stream=object())

        def init(made: Speculator) -> None:
            made.cudagraph_manager = Manager()

        graph_manager.initialize(
            lambda _: speculator_graph_manager.adopt(init, speculator), runner
        )
        params = speculator_graph_manager.params_of(speculator.cudagraph_manager)
        assert params is not None
        assert params.name == "draft"

    def test_outside_of_a_runner_nobody_is_known(self) -> None:
        speculator = Speculator(State())
        speculator_graph_manager.adopt(Speculator.init_cudagraph_manager, speculator)
        manager = speculator.decode_cudagraph_manager
        assert speculator_graph_manager.params_of(manager) is None
        wanted = replay(manager, 2)
        assert manager is not None
        assert manager.replayed == [(wanted, None, None)]
        assert not Impl.updates or Impl.updates[-1]["num_tokens"] != 2

    def test_nobody_is_kept_alive(self) -> None:
        runner = built()
        gone = [
            weakref.ref(runner.speculator),
            weakref.ref(runner.speculator.decode_cudagraph_manager),  # type: ignore[arg-type]
        ]
        runner.speculator = None  # type: ignore[assignment]
        gc.collect()
        assert [reference() for reference in gone] == [None, None]

    def test_a_capture_goes_into_the_managers_own_parameters(self) -> None:
        made = built().speculator
        for manager in (
            made.prefill_cudagraph_manager,
            made.decode_cudagraph_manager,
            Manager(),
        ):
            seen = speculator_graph_manager.capture(
                lambda _: (graphs.owned(), graphs.is_capturing()), manager
            )
            params = speculator_graph_manager.params_of(manager)
            assert seen == (params, params is not None)


class TestAReplay:
    def test_a_prefill_has_the_targets_metadata(self) -> None:
        made = built().speculator
        metadata = {"layer": object()}
        graph_manager.remember_step(lambda _: metadata, made.model_state)
        wanted = replay(made.prefill_cudagraph_manager, 8)
        (update,) = Impl.updates
        params = speculator_graph_manager.params_of(made.prefill_cudagraph_manager)
        assert update == {
            "stream": made.update_stream,  # type: ignore[attr-defined]
            "params": params,
            "num_tokens": 8,
            "metadata": metadata,
            "passes": [metadata],
        }
        manager = made.prefill_cudagraph_manager
        assert manager is not None
        assert manager.replayed == [(wanted, params, manager.graphs[wanted])]

    def test_a_decode_has_what_the_speculator_built_and_counts_up(self) -> None:
        made = built().speculator
        made.input_buffers.host_lengths.set([5, 29])
        seen = []
        for number in range(2):
            metadata = {"pass": number}
            speculator_graph_manager.remember_pass(lambda _, m=metadata: m, made)
            replay(made.decode_cudagraph_manager, 4)
            seen.append(host_view(made.input_buffers.seq_lens).tolist())  # type: ignore[union-attr]
        assert [update["passes"] for update in Impl.updates] == [
            [{"pass": 0}],
            [{"pass": 1}],
        ]
        # Padding counts as it does on the device; the last pass adds none.
        assert seen == [[6, 30, 1, 1], [6, 30, 1, 1]]

    def test_a_draft_on_the_targets_cache_does_not_count(self) -> None:
        made = built().speculator
        made.advance_draft_positions = False
        made.input_buffers.host_lengths.set([5])
        speculator_graph_manager.remember_pass(lambda _: {"pass": 0}, made)
        replay(made.decode_cudagraph_manager, 1)
        assert host_view(made.input_buffers.seq_lens).tolist() == [5, 0, 0, 0]  # type: ignore[union-attr]

    def test_nothing_built_is_no_reason_to_forget(self) -> None:
        made = built().speculator
        made.input_buffers.host_lengths.set([5])
        speculator_graph_manager.remember_pass(lambda _: {"pass": 0}, made)
        speculator_graph_manager.remember_pass(lambda _: None, made)
        replay(made.decode_cudagraph_manager, 1)
        assert Impl.updates[-1]["passes"] == [{"pass": 0}]

    @given(
        st.integers(2, 6),
        st.integers(0, 6),
        st.lists(st.integers(1, LIMIT), max_size=3, min_size=1),
    )
    def test_a_fused_one_has_metadata_for_each_pass(
        self, steps: int, asked: int, lengths: list[int]
    ) -> None:
        made = built().speculator
        made.supports_decode_metadata_update = True  # type: ignore[attr-defined]
        made.num_speculative_steps = steps
        made.target_input_buffers.host_lengths.set([n + 2 for n in lengths])
        made.input_buffers.host_lengths.set(lengths)
        asked = min(asked, steps) if asked > 1 else 0
        wanted = replay(
            made.decode_cudagraph_manager, MAX_REQS, num_speculative_tokens=asked
        )
        passes = Impl.updates[-1]["passes"]
        assert len(passes) == (asked or steps) - 1
        for number, metadata in enumerate(passes):
            real = [min(n + number, LIMIT) for n in lengths]
            padding = [number] * (MAX_REQS - len(lengths))
            assert metadata["lengths"] == real + padding
            assert metadata["num_reqs"] == len(lengths)
            assert metadata["num_query_per_req"] == 1
            assert metadata["step"] == number + 1
            assert metadata["batch_desc"] is wanted
        last = host_view(made.input_buffers.seq_lens)
        assert last is not None
        assert last.tolist() == passes[-1]["lengths"]

    def test_a_block_that_is_updated_on_the_device_is_built_here(self) -> None:
        runner = SimpleNamespace(update_stream=object())
        made = Speculator(State())

        def init(made: Speculator) -> None:
            made.query_cudagraph_manager = Manager()

        graph_manager.initialize(
            lambda _: speculator_graph_manager.adopt(init, made), runner
        )
        made.target_input_buffers.host_lengths.set([9])
        made.input_buffers.host_lengths.set([12])
        speculator_graph_manager.remember_pass(lambda _: {"pass": 0}, made)
        replay(made.query_cudagraph_manager, 4)
        assert Impl.updates[-1]["passes"] == [{"pass": 0}]
        made.supports_decode_metadata_update = True  # type: ignore[attr-defined]
        replay(made.query_cudagraph_manager, 4)
        (metadata,) = Impl.updates[-1]["passes"]
        assert metadata["lengths"] == [12, 0, 0, 0]
        assert (metadata["step"], metadata["num_query_per_req"]) == (4, 4)
        assert metadata["causal"] is False
