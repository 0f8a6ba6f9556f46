"""Runners that keep upstream's contract with none of upstream in them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ascend_shims.guard import watch as watching
from ascend_shims.guard.config import Settings, parse_settings
from ascend_shims.guard.default import DefaultGuard
from ascend_shims.guard.protocol import Observer
from ascend_shims.guard.source import SettingsSource
from ascend_shims.patches import runtime_guard

VOCABULARY = 8


@dataclass
class Scheduled:
    """The part of `SchedulerOutput` that is read."""

    num_scheduled_tokens: dict[str, int] = field(default_factory=dict)
    finished_req_ids: set[str] = field(default_factory=set)
    scheduled_new_reqs: list[Any] = field(default_factory=list)

    @property
    def total_num_scheduled_tokens(self) -> int:
        return sum(self.num_scheduled_tokens.values())


@dataclass(eq=True)  # like upstream's: equal by value, so it cannot be a weak key
class Output:
    req_ids: list[str]
    sampled_token_ids: list[list[int]]


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(4, VOCABULARY)
        self.rows: list[int] = []

    def compute_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        self.rows.append(len(hidden))
        return torch.zeros(len(hidden), VOCABULARY) + hidden[:, :1]


class AsyncOutput:
    """Holds padded tokens until it is collected."""

    def __init__(self, req_ids: list[str], padded: list[list[int]], counts: list[int]):
        self.output = Output(req_ids, [])
        self.padded, self.counts = padded, counts
        self.collected = 0

    def get_output(self) -> Output:
        self.collected += 1
        rows = zip(self.padded, self.counts, strict=True)
        self.output.sampled_token_ids = [row[:count] for row, count in rows]
        return self.output


def after(function: Callable[..., Any]) -> Callable[..., Any]:
    """Stands for upstream's `step_eplb_after`, beneath the inference mode."""

    @functools.wraps(function)
    def stepped(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = function(self, *args, **kwargs)
        self.log.append("eplb")
        return result

    return stepped


class Runner:
    """Upstream's `GPUModelRunner`, as far as a guard can tell."""

    def __init__(self, **traits: Any) -> None:
        self.log: list[Any] = []
        self.model = Model()
        self.execute_model_state: Any = None
        self.is_pooling_model = False
        self.last_stage = True
        self.asynchronous = True
        self.prompt_logprobs = False
        self.drafts: list[int] | None = None
        self.hidden: Callable[[int], torch.Tensor] = lambda rows: torch.zeros(rows, 4)
        self.tokens: Callable[[list[str]], list[list[int]]] = lambda ids: [
            [index] for index in range(len(ids))
        ]
        self._output: Callable[..., Any] = AsyncOutput
        self.body: Callable[[], None] = lambda: None
        vars(self).update(traits)

    @torch.inference_mode()
    def execute_model(
        self,
        scheduler_output: Scheduled,
        intermediate_tensors: Any = None,
        dummy_run: bool = False,
        is_profile: bool = False,
    ) -> Any:
        """Upstream's docstring."""
        self.log.append(("execute", torch.is_inference_mode_enabled()))
        self.body()
        if not dummy_run and not scheduler_output.total_num_scheduled_tokens:
            return Output([], [])
        ids = list(scheduler_output.num_scheduled_tokens)
        counts = [1 + drafts for drafts in self.drafts or [0] * len(ids)]
        starts = [sum(counts[:index]) for index in range(len(counts) + 1)]
        batch = SimpleNamespace(
            req_ids=ids,
            cu_num_logits_np=starts,
            num_draft_tokens_per_req=self.drafts,
            rows=starts[-1],
        )
        self.execute_model_state = SimpleNamespace(
            input_batch=batch,
            hidden_states=self.hidden(batch.rows) if self.last_stage else None,
        )
        return None if self.last_stage else SimpleNamespace(tensors={})

    def _dummy_run(self) -> None:
        self.execute_model(Scheduled({"_dummy_req_0": 1}), dummy_run=True)
        if self.last_stage:
            self.model.compute_logits(torch.full((1, 4), torch.nan))
        self.execute_model_state = None

    @torch.inference_mode()
    @after
    def sample_tokens(self, grammar_output: Any) -> Any:
        state, self.execute_model_state = self.execute_model_state, None
        if state is None:
            return None
        if state.hidden_states is None:
            return Output([], [])
        self.model.compute_logits(state.hidden_states)
        if self.prompt_logprobs:
            self.model.compute_logits(torch.full((5, 4), torch.nan))
        self.body()
        ids = state.input_batch.req_ids
        tokens = self.tokens(ids)
        width = max(map(len, tokens))
        padded = [[*row, *[0] * (width - len(row))] for row in tokens]
        counts = [len(row) for row in tokens]
        self.postprocess_sampled(
            torch.arange(len(ids)),
            torch.tensor(padded),
            torch.tensor(counts),
            torch.zeros(len(ids)),
        )
        output = self._output(ids, padded, counts)
        return output if self.asynchronous else output.get_output()

    def postprocess_sampled(
        self, idx_mapping: Any, sampled_tokens: Any, num_sampled: Any, num_rejected: Any
    ) -> None:
        self.log.append("postprocess")


def _wrap(replacement: Callable[..., Any], beneath: Callable[..., Any]) -> Any:
    @functools.wraps(beneath)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return replacement(beneath, *args, **kwargs)

    return wrapper


class GuardedRunner(Runner):
    """The patches of the gap on a class, in the way the engine lays them."""

    __init__ = _wrap(runtime_guard.bind_guard, Runner.__init__)
    execute_model = runtime_guard.guard_step(Runner.execute_model)
    sample_tokens = runtime_guard.guard_sample(Runner.sample_tokens)
    postprocess_sampled = _wrap(
        runtime_guard.observe_sampled, Runner.postprocess_sampled
    )


class Worker:
    def __init__(self, runner: Runner) -> None:
        self.model_runner = runner

    def execute_dummy_batch(self) -> None:
        self.model_runner._dummy_run()


class Recorder(Observer):
    """Writes down which hooks were called, and with what."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.modes: set[bool] = set()
        self.logits: list[torch.Tensor] = []
        self.outputs: list[Any] = []

    def bind(self, runner: Any) -> None:
        self.calls.append(("bind",))

    def sync_for_step(self, step: Any) -> None:
        self.modes.add(torch.is_inference_mode_enabled())
        self.calls.append(("sync", step.number, step.kind))

    def before_sample(self, step: Any, batch: Any, logits: torch.Tensor) -> None:
        self.modes.add(torch.is_inference_mode_enabled())
        self.logits.append(logits)
        self.calls.append(("before", step.number, *batch.requests))

    def on_sampled(self, step: Any, sampled: Any) -> None:
        self.calls.append(("sampled", step.number, tuple(sampled.tokens.shape)))

    def after_sample(self, step: Any, batch: Any, output: Any) -> None:
        self.outputs.append(output)
        tokens = [tuple(row) for row in output.sampled_token_ids]
        self.calls.append(("after", step.number, *tokens))

    def end_of_wave_sync(self, step: Any) -> None:
        self.calls.append(("end", step.number, step.kind))


class Rig:
    """What the tests drive: guarded runners, steps, settings, reports."""

    Scheduled = Scheduled
    Output = Output
    Runner = Runner
    GuardedRunner = GuardedRunner
    Worker = Worker
    Recorder = Recorder
    vocabulary = VOCABULARY

    def __init__(self, folder: Path) -> None:
        self.report = folder / "guard.jsonl"
        execute_idle = _wrap(runtime_guard.guard_idle, Worker.execute_dummy_batch)
        self.idle: Callable[[Any], None] = lambda r: execute_idle(Worker(r))
        self.collect: Callable[[Any], Any] = _wrap(
            runtime_guard.observe_output, AsyncOutput.get_output
        )

    def runner(self, guard: Any = None, **traits: Any) -> Any:
        """A runner under `guard`, by default one that records."""
        runner = GuardedRunner(**traits)
        watching.bind(runner, lambda: Recorder() if guard is None else guard)
        return runner

    def settings(self, detectors: Any, **report: Any) -> Settings:
        where = {"path": str(self.report), **report}
        return parse_settings({"detectors": detectors, "report": where})

    def guard(self, detectors: Any, **report: Any) -> DefaultGuard:
        source = SettingsSource()
        source.settings = self.settings(detectors, **report)
        return DefaultGuard(source, decoder=lambda _config: None)

    def lines(self) -> list[dict[str, Any]]:
        if not self.report.exists():
            return []
        return [json.loads(line) for line in self.report.read_text().splitlines()]

    def step(self, runner: Any, *ids: str, finished: Any = ()) -> Any:
        """One whole engine step; what was collected of it."""
        scheduled = Scheduled(dict.fromkeys(ids, 1), set(finished))
        output = runner.execute_model(scheduled)
        if runner.execute_model_state is None:
            return output
        output = runner.sample_tokens(None)
        return self.collect(output) if hasattr(output, "get_output") else output


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)
