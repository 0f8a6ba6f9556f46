"""Cos and sin tables for the NPU's rope operators, one set a runner.

Upstream rotates inside its rotary modules. The NPU operators take the step's
cos and sin from buffers (`ascend_shims.device.rope.RopeTable`), which somebody
has to fill before each forward pass. Here the runner does, after upstream has
prepared a step's positions, and the speculator for its draft passes.

A runner's tables are those of the model it loaded, one for each distinct rope (a
model may mix local and global ones); its draft model has its own, on separate
storage even where both models share a rope, because the draft moves on to other
positions while the step's own are still wanted.

The model comes after the runner, and its layers say what they rotate with, so the
tables are made at the first refresh: by then the model is loaded, and memory
profiling has yet to measure. Nothing here outlives the runner.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec
import torch
from torch import nn

from ascend_shims.device import operators
from ascend_shims.device.rope import (
    RopeTable,
    UnsupportedRopeError,
    attention_ropes,
    source_of,
)
from ascend_shims.device.tables import provide

__all__ = [
    "describe",
    "draft_tables_of",
    "set_tables",
    "tables_of",
    "update_for_draft",
    "update_for_dummy",
    "update_for_mrope",
    "update_for_standalone_draft",
    "update_for_step",
]

_log = logging.getLogger(__name__)


class _Shape(msgspec.Struct, frozen=True):
    """What a model's tables are made for."""

    capacity: int
    mla: bool
    query_dtype: torch.dtype
    device: torch.device


class _ModelTables(msgspec.Struct):
    """The tables of one model, target or draft."""

    role: str
    model: weakref.ref[nn.Module] | None = None
    tables: list[RopeTable] = msgspec.field(default_factory=list)
    by_rope: dict[nn.Module, RopeTable] = msgspec.field(default_factory=dict)
    refused: list[str] = msgspec.field(default_factory=list)

    def make(self, model: nn.Module, shape: _Shape) -> None:
        """Make the tables of `model`, instead of those of an earlier one."""
        self.tables, self.by_rope, self.refused = [], {}, []
        for rope in attention_ropes(model):
            self._add(rope, shape)
        self.model = weakref.ref(model)
        if self.refused:
            _log.warning("cos-sin, %s", self)

    def _add(self, rope: nn.Module, shape: _Shape) -> None:
        try:
            source = source_of(rope, shape.query_dtype)
        except UnsupportedRopeError as error:
            self.refused.append(str(error))
            return
        for table in self.tables:
            if table.source.turns_like(source):
                self.by_rope[rope] = table
                return
        table = RopeTable.allocate(
            source, shape.capacity, mla=shape.mla, device=shape.device
        )
        self.by_rope[rope] = table
        self.tables.append(table)

    def refresh(self, positions: torch.Tensor) -> None:
        for table in self.tables:
            table.refresh(positions)

    def pick(self, rope: nn.Module | None) -> RopeTable | None:
        if rope is not None:
            return self.by_rope.get(rope)
        return self.tables[0] if self.tables else None

    def __str__(self) -> str:
        if found := [*map(str, self.tables), *self.refused]:
            return f"{self.role}: {'; '.join(found)}"
        if self.model is None:
            return f"{self.role}: no tables yet, no step has come"
        return (
            f"{self.role}: no tables, no attention layer on this rank has a "
            "rotary embedding"
        )


class _RunnerTables(msgspec.Struct):
    """What is kept for one runner, which it must not keep alive."""

    target: _ModelTables = msgspec.field(default_factory=lambda: _ModelTables("target"))
    draft: _ModelTables = msgspec.field(default_factory=lambda: _ModelTables("draft"))
    num_tokens: int = 0
    """Tokens of the current step, padding included."""


_STATES: weakref.WeakKeyDictionary[Any, _RunnerTables] = weakref.WeakKeyDictionary()

_DRAFTING: ContextVar[Any] = ContextVar("drafting", default=None)
"""The speculator whose draft pass this is. Target and draft may rotate by one and
the same module, so that the module alone does not tell whose rows are meant."""


def set_tables(
    call: Callable[..., None], runner: Any, *args: Any, **kwargs: Any
) -> None:
    """After `GPUModelRunner.__init__`: the runner has tables from now on."""
    call(runner, *args, **kwargs)
    _state_of(runner)
    operators.operators().set_cos_and_sin(runner)


def update_for_step(
    call: Callable[..., Any], runner: Any, *args: Any, **kwargs: Any
) -> Any:
    """After `GPUModelRunner.prepare_inputs`: the rows of the step's positions.

    Padding included: `positions[:num_tokens_after_padding]` of the batch that
    the runner will run, which under context parallelism is this rank's part.
    """
    batch = call(runner, *args, **kwargs)
    _update_target(runner, batch)
    return batch


def update_for_dummy(
    call: Callable[..., Any],
    cls: type,
    num_reqs: int,
    num_tokens: int,
    input_buffers: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """After `InputBatch.make_dummy`: the same for capture, warm-up and idle steps.

    The buffers tell whose batch it is. Buffers of no runner are left alone.
    """
    batch = call(cls, num_reqs, num_tokens, input_buffers, *args, **kwargs)
    for runner in _runners():
        if any(input_buffers is own for own in _target_buffers(runner)):
            _update_target(runner, batch)
        elif input_buffers is getattr(_speculator(runner), "input_buffers", None):
            _draft(runner).refresh(batch.positions)
    return batch


def update_for_mrope(
    call: Callable[..., Any], rope_state: Any, *args: Any, **kwargs: Any
) -> Any:
    """After `RopeState.prepare_positions`: multi-axis positions `[axes, tokens]`.

    Upstream computes them after `prepare_inputs`, when embedding the images may
    have changed them once more.
    """
    result = call(rope_state, *args, **kwargs)
    for runner in _runners():
        if _rope_state(runner) is rope_state:
            num_tokens = _state_of(runner).num_tokens
            _target(runner).refresh(rope_state.positions[:, :num_tokens])
    return result


def update_for_draft(
    call: Callable[..., Any],
    speculator: Any,
    num_tokens: int,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Before a speculator's `_run_model(num_tokens, …)`: one draft pass.

    A pass that is being captured records the refresh with it, so that a replay
    reads the positions of its own step.
    """
    # Under context parallelism a draft's prefill is this rank's part of it.
    manager = getattr(speculator, "pcp_manager", None)
    part = getattr(manager, "draft_prefill_batch", None)
    buffers = speculator.input_buffers if part is None else part
    _update_draft(speculator, buffers.positions[:num_tokens])
    with _draft_pass_of(speculator):
        return call(speculator, num_tokens, *args, **kwargs)


def update_for_standalone_draft(
    call: Callable[..., Any],
    speculator: Any,
    input_ids: torch.Tensor,
    positions: torch.Tensor,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Before `StandaloneARSpeculator._run_model(input_ids, positions, …)`."""
    _update_draft(speculator, positions)
    with _draft_pass_of(speculator):
        return call(speculator, input_ids, positions, *args, **kwargs)


def tables_of(runner: Any, rope: nn.Module | None = None) -> RopeTable | None:
    """The table of a rotary module of the runner's model; by default the first.

    `None` where there is none; `describe` says why.
    """
    state = _STATES.get(runner)
    return state.target.pick(rope) if state else None


def draft_tables_of(runner: Any, rope: nn.Module | None = None) -> RopeTable | None:
    """The same for the draft model of the runner's speculator."""
    state = _STATES.get(runner)
    return state.draft.pick(rope) if state else None


def describe(runner: Any) -> str:
    """One line a model: its tables, or why it has none."""
    state = _STATES.get(runner)
    if state is None:
        return "no tables: the gap has not been on while this runner was built or ran"
    lines = [str(state.target)]
    if _rope_state(runner) is not None:
        lines[0] += " (multi-axis positions)"
    if _speculator(runner) is not None:
        lines.append(str(state.draft))
    return "\n".join(lines)


@contextmanager
def _draft_pass_of(speculator: Any) -> Iterator[None]:
    token = _DRAFTING.set(speculator)
    try:
        yield
    finally:
        _DRAFTING.reset(token)


def _table_for(rope: nn.Module) -> RopeTable | None:
    """The table that an operator rotates the pass at hand with."""
    drafting = _DRAFTING.get()
    for runner in _runners():
        state = _STATES[runner]
        if drafting is None:
            table = state.target.by_rope.get(rope) or state.draft.by_rope.get(rope)
        elif _speculator(runner) is drafting:
            table = state.draft.by_rope.get(rope)
        else:
            continue
        if table is not None:
            return table
    return None


provide(_table_for)


def _update_target(runner: Any, batch: Any) -> None:
    state = _state_of(runner)
    state.num_tokens = batch.num_tokens_after_padding
    rope_state = _rope_state(runner)
    # Multi-axis positions of this batch are still to come (`update_for_mrope`);
    # those that stand there are of an earlier step, and valid.
    positions = batch.positions if rope_state is None else rope_state.positions
    _refresh(_target(runner), positions[..., : state.num_tokens])


def _update_draft(speculator: Any, positions: torch.Tensor) -> None:
    for runner in _runners():
        if _speculator(runner) is speculator:
            _refresh(_draft(runner), positions)


def _refresh(tables: _ModelTables, positions: torch.Tensor) -> None:
    """The rows of the step, where the device's operators look for them too."""
    tables.refresh(positions)
    operators.operators().update_cos_sin(positions)


def _target(runner: Any) -> _ModelTables:
    tables = _state_of(runner).target
    return _current(tables, runner, runner, runner.model_config)


def _draft(runner: Any) -> _ModelTables:
    tables = _state_of(runner).draft
    config = runner.speculative_config.draft_model_config or runner.model_config
    return _current(tables, runner, _speculator(runner), config)


def _current(
    tables: _ModelTables, runner: Any, owner: Any, model_config: Any
) -> _ModelTables:
    """`tables`, made anew if `owner` has loaded a model since."""
    model = getattr(owner, "model", None)
    if model is None or (tables.model is not None and tables.model() is model):
        return tables
    shape = _Shape(
        capacity=_capacity(runner, owner),
        mla=model_config.use_mla,
        query_dtype=runner.dtype,
        device=runner.device,
    )
    tables.make(model, shape)
    return tables


def _capacity(runner: Any, owner: Any) -> int:
    # A model that samples several tokens a step widens upstream's own
    # `decode_query_len` beyond the draft tokens and one.
    decode_query_len = max(
        runner.num_speculative_steps + 1, getattr(runner, "decode_query_len", 0)
    )
    tokens: int = max(
        runner.max_num_tokens,
        runner.max_num_reqs * decode_query_len,
        len(owner.input_buffers.positions),
    )
    # A draft pass may read one token more of each request than the target did.
    extra: int = 0 if owner is runner else runner.max_num_reqs
    return tokens + extra


def _state_of(runner: Any) -> _RunnerTables:
    # A runner that is older than the gap's application gets its state here.
    state = _STATES.get(runner)
    if state is None:
        state = _STATES[runner] = _RunnerTables()
    return state


def _runners() -> Iterator[Any]:
    # What a runner owns is looked up on it each time: a subclass may put other
    # buffers in place once upstream's `__init__` is through.
    for reference in _STATES.keyrefs():
        runner = reference()
        if runner is not None:
            yield runner


def _target_buffers(runner: Any) -> Iterator[Any]:
    yield getattr(runner, "input_buffers", None)
    # Under context parallelism graphs are captured on this rank's own buffers.
    yield getattr(getattr(runner, "pcp_manager", None), "input_buffers", None)


def _speculator(runner: Any) -> Any:
    return getattr(runner, "speculator", None)


def _rope_state(runner: Any) -> Any:
    return getattr(getattr(runner, "model_state", None), "rope_state", None)
