"""What a guard is: the hooks that a step calls, and what it hands them.

A guard looks at engine steps and changes nothing. Its hooks run in the worker
process, on the thread that runs the step, inside `torch.inference_mode()`;
`after_sample` alone may run on the thread that collects asynchronous output.

The one rule that binds all ranks: every `sync_for_step` is followed by exactly
one `end_of_wave_sync`, whatever happened in between, so a guard may hold
collectives in these two hooks and no rank misses one. Only `sync_for_step` may
end a step early, by raising `GuardStopped`; it comes before anything of the step
has run. Whatever else a hook raises is reported once, and that hook is not
called again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

import msgspec
import torch

from ..errors import ShimsError

__all__ = ["Batch", "Guard", "GuardStopped", "Observer", "Sampled", "Step", "StepKind"]

StepKind = Literal["engine", "idle", "warmup", "dummy"]
"""`engine`: scheduled by the engine. `idle`: a data-parallel rank without work
that keeps up with the others. `warmup`: upstream's own made-up requests.
`dummy`: profiling and graph capture. Only `engine` steps are examined."""


class GuardStopped(ShimsError):
    """A detector with `action: stop` found something; every rank raises this
    before the same step."""


class Step(msgspec.Struct, frozen=True, gc=False):
    """One call of the runner's `execute_model`."""

    number: int
    """Which engine step of this runner it is, from 1; steps of another kind
    carry the number of the engine step before them."""
    kind: StepKind
    scheduled: Any
    """Upstream's `SchedulerOutput`."""

    @property
    def lockstep(self) -> bool:
        """Whether every rank that belongs to the engine runs this step. One without
        tokens may be a single rank's, which then runs an idle step as well."""
        if self.kind == "engine":
            return bool(self.scheduled.total_num_scheduled_tokens > 0)
        return self.kind == "idle"

    @property
    def finished(self) -> Iterable[str]:
        """Requests that ended since the step before."""
        return getattr(self.scheduled, "finished_req_ids", None) or ()


class Batch(msgspec.Struct, frozen=True):
    """Which requests a step samples for, and which rows of the logits are theirs."""

    requests: Sequence[str]
    row_starts: Sequence[int]
    """`[len(requests) + 1]`: request `i` owns rows `row_starts[i]` up to
    `row_starts[i + 1]`. Empty where upstream does not say."""
    drafts: Sequence[int]
    """Draft tokens that each request had verified. Empty: none had any."""

    @classmethod
    def of(cls, input_batch: Any) -> Batch:
        """Read from upstream's `InputBatch`, host side only."""
        starts = getattr(input_batch, "cu_num_logits_np", None)
        drafts = getattr(input_batch, "num_draft_tokens_per_req", None)
        return cls(
            tuple(input_batch.req_ids),
            () if starts is None else tuple(int(start) for start in starts),
            () if drafts is None else tuple(int(count) for count in drafts),
        )

    def draft_count(self, index: int) -> int:
        return self.drafts[index] if index < len(self.drafts) else 0


class Sampled(msgspec.Struct, frozen=True):
    """What was sampled, still on the device and padded. To read it on the host
    would make the host wait."""

    slots: torch.Tensor
    """`[num_reqs]`, the runner's slot of each request, -1 where masked."""
    tokens: torch.Tensor
    """`[num_reqs, 1 + num_speculative_steps]`."""
    num_sampled: torch.Tensor
    """`[num_reqs]`, how many of `tokens` count."""
    num_rejected: torch.Tensor
    """`[num_reqs]`, draft tokens turned down."""

    @classmethod
    def of(
        cls,
        idx_mapping: torch.Tensor,
        sampled_tokens: torch.Tensor,
        num_sampled: torch.Tensor,
        num_rejected: torch.Tensor,
        *_: Any,
        **__: Any,
    ) -> Sampled:
        """From the arguments of upstream's `postprocess_sampled`."""
        return cls(idx_mapping, sampled_tokens, num_sampled, num_rejected)


class Guard(Protocol):
    """The hooks. `Observer` has them all doing nothing, to inherit from."""

    @property
    def active(self) -> bool:
        """False: the sample phase is left alone. May change in `sync_for_step`."""

    def bind(self, runner: Any) -> None:
        """Belong to `runner`, once, before any other hook. Keep no strong
        reference to it: the guard lives as long as the runner does."""

    def sync_for_step(self, step: Step) -> None:
        """Before the step's body, on every rank, dummy and idle steps included."""

    def before_sample(self, step: Step, batch: Batch, logits: torch.Tensor) -> None:
        """The sampler's logits, `[rows, vocabulary]`, before grammar masks and
        penalties. Once a step at most; the last pipeline stage alone has any."""

    def on_sampled(self, step: Step, sampled: Sampled) -> None:
        """Sampled tokens go into the request states; on earlier pipeline stages
        these are the tokens of a step before."""

    def after_sample(self, step: Step, batch: Batch, output: Any) -> None:
        """Upstream's `ModelRunnerOutput`, on the host, padding trimmed. Only on
        the rank whose output the engine reads."""

    def end_of_wave_sync(self, step: Step) -> None:
        """The step is over: sampled, returned early, failed, idle or dummy."""


class Observer:
    """A guard that does nothing: inherit, and write the hooks you need."""

    active: bool = True

    def bind(self, runner: Any) -> None:
        pass

    def sync_for_step(self, step: Step) -> None:
        pass

    def before_sample(self, step: Step, batch: Batch, logits: torch.Tensor) -> None:
        pass

    def on_sampled(self, step: Step, sampled: Sampled) -> None:
        pass

    def after_sample(self, step: Step, batch: Batch, output: Any) -> None:
        pass

    def end_of_wave_sync(self, step: Step) -> None:
        pass
