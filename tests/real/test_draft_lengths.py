"""Host lengths of drafts beside upstream's own kernels, which fill those on the device.

They run in an interpreter of their own, where Triton interprets the kernels, on
whatever numbers of tokens are accepted or rejected.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import pytest

RunReal = Callable[..., Any]

ROOM = "vllm.v1.worker.gpu.spec_decode"
MAX_REQS = 5
MAX_TOKENS = 64
LIMIT = 24
"""`max_model_len`: some requests reach it."""
EXAMPLES = 60

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def counted(run_real: RunReal) -> dict[str, dict[str, int]]:
    seen: dict[str, dict[str, int]] = run_real(
        everything, env={"ASCEND_SHIMS_DEVICE": "sim"}
    )
    return seen


@pytest.mark.parametrize(
    "draft", ["autoregressive", "multi_module", "block", "standalone"]
)
def test_the_host_side_is_what_the_kernels_write(
    draft: str, counted: dict[str, dict[str, int]]
) -> None:
    if draft == "standalone" and not _standalone_module():
        assert draft not in counted
        pytest.skip("this release has no standalone draft model in MRV2")
    seen = counted[draft]
    assert seen["examples"] >= EXAMPLES
    # Some with rejected tokens, some where nothing could be rejected.
    assert seen["rejected"] > 0
    assert seen["certain"] > 0
    assert seen["compared"] >= seen["examples"]


def everything() -> dict[str, dict[str, int]]:
    """All drafts that this release has."""
    counted = {
        "autoregressive": autoregressive(),
        "multi_module": multi_module(),
        "block": block(),
    }
    if _standalone_module():
        counted["standalone"] = standalone()
    return counted


def _standalone_module() -> str | None:
    for name in ("standalone_ar", "draft_model"):
        if find_spec("vllm") and find_spec(f"{ROOM}.{name}"):
            return f"{ROOM}.{name}.speculator"
    return None


def autoregressive() -> dict[str, int]:
    """EAGLE, MTP: prefill, then one decode pass after the other."""
    first = f"{ROOM}.target_dependent_ar"
    name = first if find_spec(first) else f"{ROOM}.autoregressive"
    upstream = _patched(f"{name}.speculator")

    def example(case: Any) -> None:
        import torch

        step, draft = case.step, case.draft
        values = case.values | {
            "last_token_indices": _ints(MAX_REQS, torch.int64),
            "current_draft_step": torch.tensor(0),
            "draft_tokens": _ints(step.num_reqs, torch.int64),
            "target_seq_lens": step.batch.seq_lens,
            "sample_src_positions": _ints(MAX_REQS, torch.int64),
            "advance_draft_positions": case.choice,
            "hidden_states": torch.zeros(MAX_REQS, 4),
            "output_draft_tokens": torch.zeros(MAX_REQS, 8, dtype=torch.int64),
            "next_input_hidden_states": torch.zeros(MAX_REQS, 4),
            "num_speculative_steps": case.num_steps,
        }
        _call(upstream.prepare_prefill_inputs, values)
        case.compare()
        _call(upstream.prepare_decode_inputs, values)
        # Whoever looks between passes sees the same as who looks at the end.
        for number in range(1, case.num_steps):
            if case.looks:
                case.compare()
            values["current_draft_step"].fill_(number)
            _call(upstream.update_draft_inputs, values)
        case.compare()
        assert draft is not case.target

    return _run(example)


def multi_module() -> dict[str, int]:
    """MTP with several modules."""
    upstream = _patched(f"{ROOM}.multi_module_mtp.speculator")

    def example(case: Any) -> None:
        import torch

        case.draft.query_start_loc.copy_(case.target.query_start_loc)
        width = case.num_steps - 1
        values = case.values | {
            "num_reqs": case.step.num_reqs,
            "cached_draft_input_ids": torch.zeros(MAX_REQS, width, dtype=torch.int64),
            "draft_input_id_overrides": torch.zeros(MAX_REQS, width, dtype=torch.int64),
            "last_token_indices": _ints(MAX_REQS, torch.int64),
            "num_speculative_steps": case.num_steps,
        }
        values["next_prefill_tokens"] = torch.zeros(
            case.num_steps, MAX_REQS, dtype=torch.int32
        )
        _call(upstream.prepare_input_buffers, values)
        case.compare()

    return _run(example, min_steps=2)


def block() -> dict[str, int]:
    """DFlash and DSpark: a block of queries at once."""
    upstream = _patched(f"{ROOM}.dflash.speculator")

    def example(case: Any) -> None:
        import torch

        queries = case.num_steps + (not case.choice)
        samples = MAX_REQS * case.num_steps
        values = case.values | {
            "query_slot_mapping": _ints(MAX_TOKENS, torch.int64),
            "context_positions": _ints(MAX_TOKENS, torch.int64),
            "context_slot_mapping": _ints(MAX_TOKENS, torch.int64),
            "sample_indices": _ints(samples, torch.int64),
            "sample_pos": _ints(samples, torch.int64),
            "sample_idx_mapping": _ints(samples, torch.int64),
            "temperature": torch.zeros(MAX_REQS),
            "seeds": _ints(MAX_REQS, torch.int64),
            "input_temperature": torch.zeros(MAX_REQS),
            "input_seeds": _ints(MAX_REQS, torch.int64),
            "block_table": torch.ones(MAX_REQS, 8, dtype=torch.int32),
            "block_size": 4,
            "cp_rank": 0,
            "cp_size": 1,
            "cp_interleave": 1,
            "parallel_drafting_token_id": 1,
            "num_query_per_req": queries,
            "num_speculative_steps": case.num_steps,
            "max_num_tokens": MAX_TOKENS,
            "sample_from_anchor": case.choice,
        }
        _call(upstream.prepare_dflash_inputs, values)
        case.compare()

    return _run(example, dummies=True)


def standalone() -> dict[str, int]:
    """A draft model that runs on its own: expanded prefill, then its own loop."""
    name = _standalone_module()
    assert name is not None
    upstream = _patched(name)
    common = import_module(f"{ROOM}.speculator")
    kind = next(
        value
        for key, value in vars(upstream).items()
        if key.endswith("Speculator") and key != "DraftModelSpeculator"
    )

    def example(case: Any) -> None:
        import torch

        step, seen = case.step, []
        total = MAX_TOKENS + MAX_REQS
        values = case.values | {
            "expanded_input_ids": _ints(total, torch.int32),
            "expanded_positions": _ints(total, torch.int64),
            "last_token_indices": _ints(MAX_REQS, torch.int64),
        }
        _call(upstream.prepare_prefill_inputs, values)
        case.compare()

        def build(**arguments: Any) -> None:
            seen.append(case.compare())

        common.build_attn_metadata = build
        upstream.build_slot_mappings_by_layer = lambda *_: None
        speculator = object.__new__(kind)
        speculator.input_buffers = case.draft
        speculator.expanded_positions = values["expanded_positions"]
        speculator.last_token_indices = values["last_token_indices"]
        speculator.max_model_len = speculator.draft_max_seq_len = LIMIT
        speculator.arange_gpu = torch.arange(MAX_REQS + 1, dtype=torch.int32)
        speculator.arange_np = speculator.arange_gpu.numpy()
        speculator.num_speculative_steps = case.num_steps
        speculator.draft_tokens = torch.zeros(
            MAX_REQS, case.num_steps, dtype=torch.int64
        )
        speculator.block_tables = SimpleNamespace(
            compute_slot_mappings=lambda *_: torch.zeros(1, MAX_TOKENS),
            input_block_tables=[],
            slot_mappings=torch.zeros(1, MAX_TOKENS),
        )
        speculator.kv_cache_config = object()
        speculator.attn_groups = []
        speculator.dcp_size = 1
        speculator.draft_is_prefilling = torch.zeros(MAX_REQS, dtype=torch.bool)
        speculator._run_model = lambda *_: torch.zeros(MAX_REQS, 4)
        speculator.current_draft_step = torch.tensor(0)
        speculator.idx_mapping = _ints(MAX_REQS, torch.int64)
        speculator.temperature = speculator.seeds = speculator.draft_logits = None
        speculator.sample_draft = lambda *_: _ints(step.num_reqs, torch.int64)
        speculator._multi_step_decode(
            step.batch, step.num_rejected, step.num_reqs, False, None
        )
        assert len(seen) == case.num_steps - 1

    return _run(example)


def _patched(module: str) -> Any:
    """Upstream's module with the gap on."""
    import ascend_shims

    found = import_module(module)
    (row,) = (
        gap
        for gap in ascend_shims.apply(only=["input-buffers"]).gaps
        if gap.id == "input-buffers"
    )
    here = [p for p in row.patches if p.target.startswith(f"{module}:")]
    assert here
    assert {patch.state for patch in here} == {"applied"}, here
    return found


def _call(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    """By name: releases differ in which parameters there are."""
    wanted = inspect.signature(function).parameters
    return function(**{name: values[name] for name in wanted if name in values})


def _ints(size: int, dtype: Any) -> Any:
    import torch

    return torch.zeros(size, dtype=dtype)


class _Case:
    """One step of the target, its draft's buffers, and what to compare."""

    def __init__(self, rows: list[tuple[int, int, int]], drawn: dict[str, Any]) -> None:
        import numpy as np
        import torch
        from vllm.v1.worker.gpu.input_batch import InputBuffers

        self.target, self.draft = (
            InputBuffers(MAX_REQS, MAX_TOKENS, torch.device("cpu")) for _ in range(2)
        )
        self.num_steps, self.choice = drawn["num_steps"], drawn["choice"]
        self.looks, self.counts = drawn["looks"], drawn["counts"]
        computed, queries, rejected = (
            torch.tensor(column, dtype=torch.int32)
            for column in zip(*rows, strict=True)
        )
        num_reqs = len(rows)
        ends = np.cumsum([0, *queries.tolist()]).astype(np.int32)
        buffers = self.target
        buffers.seq_lens[:num_reqs] = computed + queries
        buffers.query_start_loc[: num_reqs + 1] = torch.from_numpy(ends)
        if not drawn["dummy"]:
            for start, end, past in zip(ends[:-1], ends[1:], computed, strict=True):
                buffers.positions[start:end] = torch.arange(end - start) + past
        buffers.host_lengths.set((computed + queries).numpy())
        buffers.host_lengths.at_risk = drawn["at_risk"]
        batch = SimpleNamespace(
            num_reqs=num_reqs,
            num_tokens=int(ends[-1]),
            seq_lens=buffers.seq_lens[:num_reqs],
            seq_lens_cpu_upper_bound=(computed + queries),
            input_ids=buffers.input_ids,
            positions=buffers.positions,
            idx_mapping=torch.arange(num_reqs),
            query_start_loc=buffers.query_start_loc[: num_reqs + 1],
            query_start_loc_np=ends,
            num_scheduled_tokens=queries.numpy(),
            host_positions_are_zero=drawn["dummy"],
        )
        self.step = SimpleNamespace(
            num_reqs=num_reqs, batch=batch, num_rejected=rejected
        )
        self.values = {
            "input_buffers": self.draft,
            "input_batch": batch,
            "num_sampled": torch.ones(num_reqs, dtype=torch.int32),
            "num_rejected": rejected,
            "last_sampled": torch.zeros(MAX_REQS, dtype=torch.int64),
            "next_prefill_tokens": torch.zeros(MAX_REQS, dtype=torch.int32),
            "num_reqs": num_reqs,
            "max_num_reqs": MAX_REQS,
            "max_model_len": LIMIT,
        }
        self._before = buffers.seq_lens.tolist()

    def compare(self) -> None:
        from ascend_shims.device.lengths import host_view

        self.counts["compared"] += 1
        for buffers in (self.draft, self.target):
            on_host = host_view(buffers.seq_lens)
            assert on_host is not None
            assert on_host.tolist() == buffers.seq_lens.tolist()
        assert self.target.seq_lens.tolist() == self._before


def _run(
    example: Callable[[Any], None], *, min_steps: int = 1, dummies: bool = False
) -> dict[str, int]:
    from hypothesis import given, settings
    from hypothesis import strategies as st

    counts = {"examples": 0, "rejected": 0, "certain": 0, "compared": 0}

    @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True)
    @given(st.data())
    def check(data: Any) -> None:
        num_steps = data.draw(st.integers(min_steps, 4))
        dummy = dummies and data.draw(st.booleans())
        at_risk = not dummy and data.draw(st.booleans())
        rows = []
        for _ in range(data.draw(st.integers(1, MAX_REQS))):
            queries = data.draw(st.integers(1, 1 + num_steps))
            past = 0 if dummy else data.draw(st.integers(0, LIMIT - queries))
            # Never all of them, nor more than there are draft tokens.
            lost = data.draw(st.integers(0, queries - 1)) if at_risk else 0
            rows.append((past, queries, lost))
        drawn = {
            "num_steps": num_steps,
            "choice": data.draw(st.booleans()),
            "looks": data.draw(st.booleans()),
            "dummy": dummy,
            "at_risk": at_risk,
            "counts": counts,
        }
        counts["examples"] += 1
        counts["rejected"] += any(lost for _, _, lost in rows)
        counts["certain"] += not at_risk
        example(_Case(rows, drawn))

    check()
    return counts
