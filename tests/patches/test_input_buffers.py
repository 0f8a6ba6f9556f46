"""input-buffers on plain tensors: exact lengths on the host, and no needless wait.

How drafts follow upstream's kernels is in `tests/real/test_draft_lengths.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.device import computed as computed_module
from ascend_shims.device.lengths import beside, host_side, host_view
from ascend_shims.patches import input_buffers

MAX_REQS = 4


class Event:
    """An event of a device that is always through; counts who waited."""

    waits = 0

    def record(self) -> None: ...

    def synchronize(self) -> None:
        Event.waits += 1


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    Event.waits = 0
    monkeypatch.setattr(computed_module, "npu", lambda: SimpleNamespace(Event=Event))
    yield


class Buffers:
    def __init__(self) -> None:
        self.seq_lens = torch.zeros(MAX_REQS, dtype=torch.int32)


def buffers() -> Any:
    made = Buffers()
    input_buffers.add_host_lengths(lambda _: None, made)
    return made


class States:
    """Of `RequestState`: slots, and the device's count of computed tokens."""

    def __init__(self) -> None:
        self.max_num_reqs = MAX_REQS
        self.req_id_to_index: dict[str, int] = {}
        self.num_computed_tokens = SimpleNamespace(
            gpu=torch.zeros(MAX_REQS, dtype=torch.int32)
        )

    def add(self, req_id: str, computed: int) -> None:
        def add_request(states: States, req_id: str, computed: int) -> None:
            free = set(range(MAX_REQS)) - set(states.req_id_to_index.values())
            slot = states.req_id_to_index[req_id] = min(free)
            states.num_computed_tokens.gpu[slot] = computed

        input_buffers.forget_slot(add_request, self, req_id, computed)


class Runner:
    """The part of a `GPUModelRunner` that the gap looks at."""

    def __init__(self, *, ahead: bool, speculator: object | None = None) -> None:
        self.input_buffers = buffers()
        self.req_states = States()
        self.scheduler_config = SimpleNamespace(async_scheduling=ahead)
        self.speculator = speculator

    def prepare(self, rows: dict[str, tuple[int, int, int]], padded: int = 0) -> Any:
        """A step: the scheduler's count, query tokens and draft tokens of each."""

        def prepare_inputs(runner: Runner) -> Any:
            slots = np.array([runner.req_states.req_id_to_index[r] for r in rows])
            counts, queries, drafts = np.array(list(rows.values()), dtype=np.int32).T
            num_reqs = len(rows)
            on_device = runner.input_buffers.seq_lens
            on_device.zero_()
            on_device[:num_reqs] = runner.req_states.num_computed_tokens.gpu[
                torch.from_numpy(slots)
            ] + torch.from_numpy(queries)
            bound = np.zeros(max(num_reqs, padded), dtype=np.int32)
            bound[:num_reqs] = counts + queries
            return SimpleNamespace(
                num_reqs=num_reqs,
                idx_mapping_np=slots,
                num_computed_tokens_np=counts,
                cu_num_logits_np=np.cumsum([0, *(drafts + 1)]),
                seq_lens=on_device[: len(bound)],
                seq_lens_cpu_upper_bound=torch.from_numpy(bound),
            )

        return input_buffers.lengths_of_step(prepare_inputs, self)

    def postprocess(self, batch: Any, queries: Any, rejected: torch.Tensor) -> None:
        def postprocess_sampled(
            runner: Runner, idx_mapping: Any, num_rejected: torch.Tensor
        ) -> None:
            counts = runner.req_states.num_computed_tokens.gpu
            counts[torch.from_numpy(idx_mapping)] += torch.tensor(queries) - rejected

        input_buffers.start_copies(
            postprocess_sampled, self, batch.idx_mapping_np, num_rejected=rejected
        )


class TestAStep:
    def test_its_lengths_are_there_and_those_after_it_are_zero(self) -> None:
        runner = Runner(ahead=False)
        for name in "abc":
            runner.req_states.add(name, 0)
        runner.prepare({"a": (0, 5, 0), "b": (0, 2, 0), "c": (0, 9, 0)})
        for name, count in zip("abc", (5, 2, 9), strict=True):
            runner.req_states.num_computed_tokens.gpu["abc".index(name)] = count
        batch = runner.prepare({"c": (9, 1, 0), "a": (5, 1, 0)}, padded=3)
        assert batch.seq_lens_cpu.tolist() == batch.seq_lens_np.tolist() == [10, 6, 0]
        assert batch.seq_lens.tolist() == [10, 6, 0]
        assert runner.input_buffers.seq_lens_cpu.tolist() == [10, 6, 0, 0]

    @pytest.mark.parametrize(("drafts", "at_risk"), [((0, 0), False), ((0, 2), True)])
    def test_only_draft_tokens_are_at_risk(
        self, drafts: tuple[int, int], at_risk: bool
    ) -> None:
        runner = Runner(ahead=False)
        rows = {}
        for name, draft in zip("ab", drafts, strict=True):
            runner.req_states.add(name, 0)
            rows[name] = (0, 1 + draft, draft)
        runner.prepare(rows)
        assert runner.input_buffers.host_lengths.at_risk is at_risk

    def test_under_context_parallelism_both_batches_are_written(self) -> None:
        runner = Runner(ahead=True)
        for name in "ab":
            runner.req_states.add(name, 0)
        first = runner.prepare({"a": (0, 3, 2), "b": (0, 3, 2)})
        runner.postprocess(first, [3, 3], torch.tensor([2, 1], dtype=torch.int32))
        own = buffers()
        part = SimpleNamespace(
            num_reqs=1,
            idx_mapping_np=np.array([1]),
            seq_lens=own.seq_lens[:1],
            seq_lens_cpu_upper_bound=torch.tensor([4], dtype=torch.int32),
        )

        def prepare_inputs(runner: Any) -> Any:
            runner.pcp_manager = SimpleNamespace(
                _global_batch=SimpleNamespace(
                    num_reqs=2,
                    idx_mapping_np=np.array([0, 1]),
                    num_computed_tokens_np=np.array([3, 3], dtype=np.int32),
                    cu_num_logits_np=np.array([0, 1, 2]),
                    seq_lens=runner.input_buffers.seq_lens[:2],
                    seq_lens_cpu_upper_bound=torch.tensor([5, 5], dtype=torch.int32),
                ),
                _input_buffers=own,
            )
            return part

        assert input_buffers.lengths_of_step(prepare_inputs, runner) is part
        # Two and one of its tokens were rejected, of which the scheduler knows nothing.
        assert runner.input_buffers.seq_lens_cpu.tolist() == [3, 4, 0, 0]
        assert own.seq_lens_cpu.tolist() == [3, 0, 0, 0]


class TestDummies:
    def batch(self, own: Any) -> Any:
        def make_dummy(cls: type, num_reqs: int, num_tokens: int, own: Any) -> Any:
            return SimpleNamespace(
                num_reqs=num_reqs,
                seq_lens=own.seq_lens[:num_reqs],
                seq_lens_cpu_upper_bound=torch.tensor([2, 3], dtype=torch.int32),
                num_computed_tokens_np=np.zeros(num_reqs, dtype=np.int32),
            )

        return input_buffers.lengths_of_dummy(make_dummy, object, 2, 5, own)

    def test_they_have_lengths_nothing_of_which_is_at_risk(self) -> None:
        own = buffers()
        own.host_lengths.set([9, 9, 9, 9])
        own.host_lengths.at_risk = True
        batch = self.batch(own)
        assert batch.seq_lens_cpu.tolist() == [2, 3]
        assert own.seq_lens_cpu.tolist() == [2, 3, 0, 0]
        assert own.host_lengths.at_risk is False
        assert batch.host_positions_are_zero is True

    def test_buffers_older_than_the_gap_get_a_host_side(self) -> None:
        own = Buffers()
        assert self.batch(own).seq_lens_cpu.tolist() == [2, 3]
        assert host_side(own.seq_lens) is not None

    @pytest.mark.parametrize("context", [0, 7])
    def test_they_may_have_a_past(self, context: int) -> None:
        batch = self.batch(buffers())

        def set_dummy_context(batch: Any) -> None:
            batch.seq_lens_cpu_upper_bound += context
            batch.num_computed_tokens_np += context

        input_buffers.lengths_of_context(set_dummy_context, batch)
        assert batch.seq_lens_cpu.tolist() == [2 + context, 3 + context]
        assert batch.host_positions_are_zero is (context == 0)

    def test_a_manager_of_context_parallelism_has_them_on_its_own(self) -> None:
        manager = SimpleNamespace(input_buffers=buffers())
        whole = self.batch(buffers())

        def prepare_inputs_to_capture(manager: Any, batch: Any) -> Any:
            return SimpleNamespace(
                num_reqs=2,
                seq_lens=manager.input_buffers.seq_lens[:2],
                seq_lens_cpu_upper_bound=batch.seq_lens_cpu_upper_bound,
            )

        part = input_buffers.lengths_of_part(prepare_inputs_to_capture, manager, whole)
        assert part.seq_lens_cpu.tolist() == [2, 3]
        assert part.host_positions_are_zero is True


@st.composite
def histories(draw: st.DrawFn) -> list[list[tuple[int, int]]]:
    """Steps, each with (draft tokens, rejected ones) for every slot; and whether the
    request in the slot is replaced by another before, as -1 draft tokens."""
    steps = []
    for _ in range(draw(st.integers(1, 12))):
        row = []
        for _slot in range(MAX_REQS):
            drafts = draw(st.integers(-1, 3))
            row.append((drafts, draw(st.integers(0, max(drafts, 0)))))
        steps.append(row)
    return steps


class TestScheduledAhead:
    @settings(max_examples=150, deadline=None)
    @given(histories(), st.integers(1, 2))
    def test_the_host_has_the_devices_lengths_in_every_step(
        self, history: list[list[tuple[int, int]]], behind: int
    ) -> None:
        runner = Runner(ahead=True, speculator=object())
        states = runner.req_states
        names = [f"{slot}-0" for slot in range(MAX_REQS)]
        seen = dict.fromkeys(names, 3)  # What the scheduler counts.
        late: dict[str, list[int]] = {name: [] for name in names}
        for name in names:
            states.add(name, 3)
        for number, row in enumerate(history):
            rows, losses = {}, []
            for slot, (drafts, lost) in enumerate(row):
                if drafts < 0:
                    # Its results come too late: the slot is another's.
                    name = names[slot] = f"{slot}-{number + 1}"
                    del states.req_id_to_index[
                        next(k for k, v in states.req_id_to_index.items() if v == slot)
                    ]
                    seen[name], late[name] = 7, []
                    states.add(name, 7)
                name = names[slot]
                # Results of steps long past reach the scheduler now.
                while len(late[name]) >= behind:
                    seen[name] -= late[name].pop(0)
                rows[name] = (seen[name], 1 + max(drafts, 0), max(drafts, 0))
                losses.append(lost)
            batch = runner.prepare(rows)
            assert batch.seq_lens_cpu.tolist() == batch.seq_lens.tolist()
            queries = [query for _, query, _ in rows.values()]
            runner.postprocess(batch, queries, torch.tensor(losses, dtype=torch.int32))
            for slot, name in enumerate(names):
                seen[name] += queries[slot]
                late[name].append(losses[slot])

    def test_without_draft_tokens_nothing_is_copied_or_waited_for(self) -> None:
        runner = Runner(ahead=True, speculator=object())
        runner.req_states.add("a", 4)
        for count in range(4, 20):
            batch = runner.prepare({"a": (count, 1, 0)})
            assert batch.seq_lens_cpu.tolist() == batch.seq_lens.tolist()
            runner.postprocess(batch, [1], torch.zeros(1, dtype=torch.int32))
        assert Event.waits == 0

    def test_it_stops_waiting_once_the_scheduler_knows(self) -> None:
        runner = Runner(ahead=True)
        runner.req_states.add("a", 4)
        steps = [(4, 3, 2), (7, 1, 0), (6, 1, 0), (7, 1, 0), (8, 1, 0)]
        waits = []
        for count, query, drafts in steps:
            before = Event.waits
            batch = runner.prepare({"a": (count, query, drafts)})
            waits.append(Event.waits - before)
            assert batch.seq_lens_cpu.tolist() == batch.seq_lens.tolist()
            lost = torch.tensor([2 if drafts else 0], dtype=torch.int32)
            runner.postprocess(batch, [query], lost)
        # Two of three tokens were lost, of which it hears one step later than we do.
        assert waits == [0, 1, 1, 0, 0]

    def test_scheduled_in_step_nothing_waits_before_a_draft_does(self) -> None:
        runner = Runner(ahead=False, speculator=object())
        runner.req_states.add("a", 4)
        batch = runner.prepare({"a": (4, 3, 2)})
        lost = torch.tensor([1], dtype=torch.int32)
        runner.postprocess(batch, [3], lost)
        assert runner.prepare({"a": (6, 3, 2)}).seq_lens_cpu.tolist() == [9]
        assert Event.waits == 0


class TestADraft:
    def follow(self, at_risk: bool, lost: list[int]) -> tuple[Any, Any]:
        target, draft = buffers(), buffers()
        target.seq_lens[:2] = torch.tensor([10, 20])
        target.host_lengths.set([10, 20])
        target.host_lengths.at_risk = at_risk

        def prepare_decode_inputs(
            draft_tokens: torch.Tensor,
            target_seq_lens: torch.Tensor,
            num_rejected: torch.Tensor,
            input_buffers: Any,
            max_model_len: int,
            advance_draft_positions: bool = True,
        ) -> None: ...

        input_buffers.lengths_of_draft_decode(
            prepare_decode_inputs,
            torch.zeros(2),
            target.seq_lens[:2],
            torch.tensor(lost, dtype=torch.int32),
            draft,
            21,
        )
        return target, draft

    def test_it_waits_when_it_is_looked_at_and_not_before(self) -> None:
        target, draft = self.follow(True, [2, 0])
        draft.host_lengths.count_up(2, 21, 3)
        assert Event.waits == 0
        found = host_view(draft.seq_lens[:3])
        assert Event.waits == 1
        assert found is not None
        assert found.tolist() == [10, 21, 0]
        assert target.seq_lens_cpu.tolist() == [10, 20, 0, 0]

    def test_where_nothing_is_at_risk_nothing_waits(self) -> None:
        _, draft = self.follow(False, [0, 0])
        found = host_view(draft.seq_lens)
        assert found is not None
        assert found.tolist() == [11, 21, 0, 0]
        assert Event.waits == 0

    def test_metadata_find_the_attribute_right(self) -> None:
        _, draft = self.follow(True, [1, 3])
        speculator = SimpleNamespace(input_buffers=draft)
        seen = input_buffers.settle_draft(
            lambda s: s.input_buffers.seq_lens_cpu.tolist(), speculator
        )
        assert seen == [10, 18, 0, 0]

    def test_a_later_step_needs_no_result_of_an_earlier_one(self) -> None:
        _, draft = self.follow(True, [1, 3])
        draft.host_lengths.set([5])
        found = host_view(draft.seq_lens)
        assert found is not None
        assert found.tolist() == [5, 0, 0, 0]
        assert Event.waits == 0

    def test_rejected_tokens_are_copied_once_where_they_are_made(self) -> None:
        lengths = beside(torch.zeros(MAX_REQS, dtype=torch.int32))
        lengths.set([4, 4])
        lengths.at_risk = True
        lost = torch.tensor([1, 2], dtype=torch.int32)
        lengths.start_rejected(lost)
        # Whatever becomes of the tensor: the numbers are on their way.
        lost.zero_()
        assert lengths.rejected(lost)().tolist() == [1, 2]
        other = torch.tensor([3, 3], dtype=torch.int32)
        assert lengths.rejected(other)().tolist() == [3, 3]
