"""One runner under watch: which step it is in, and its guard, called safely.

The patches of `runtime-guard` report here what the runner does; the guard's
hooks are called from here, and a hook that fails is reported and not called
again. Nothing here changes what a step computes.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from .protocol import Batch, Guard, GuardStopped, Sampled, Step, StepKind
from .upstream import is_warmup

__all__ = ["Counts", "Watch", "bind", "collect", "watch_of"]

_log = logging.getLogger(__name__)


class Counts(msgspec.Struct):
    """How many steps of each kind a runner has begun, and how many sampled."""

    engine: int = 0
    idle: int = 0
    warmup: int = 0
    dummy: int = 0
    sampled: int = 0


class Watch:
    """What is known of one runner. Lives as long as the runner."""

    def __init__(self, guard: Guard, runner: Any) -> None:
        self.guard = guard
        self.counts = Counts()
        self.step: Step | None = None
        """The step under way: its `end_of_wave_sync` is still owed."""
        self.active = False
        """Whether the guard wants this step's sample phase."""
        self.inside = False
        """Whether `execute_model` is running: a call from within is part of it."""
        self.idle = False
        """Whether the dummy step to come stands in for an idle rank's."""
        self.pools = bool(getattr(runner, "is_pooling_model", False))
        """Whether the runner pools: then nothing is ever sampled."""
        self.alive: weakref.ref[Any] | None = None
        """Ends this watch's place among all when the runner is freed."""
        self._batch: Batch | None = None
        # Taken off the guard once: a step calls each, a failed one is replaced.
        self._sync = guard.sync_for_step
        self._end = guard.end_of_wave_sync
        self._failed: set[str] = set()
        try:
            guard.bind(runner)
            self.active = guard.active
        except Exception as error:  # noqa: BLE001 - a guard may not end a step
            self._fail("bind", error)

    def begin(self, scheduled: Any, dummy: bool) -> None:
        """A step starts; ends the one before it if nobody did. Raises
        `GuardStopped` when the ranks are to stop."""
        if self.step is not None:
            self.end()
        counts = self.counts
        kind: StepKind
        if dummy:
            kind = "idle" if self.idle else "dummy"
            setattr(counts, kind, getattr(counts, kind) + 1)
        elif is_warmup(scheduled):
            kind = "warmup"
            counts.warmup += 1
        else:
            kind = "engine"
            counts.engine += 1
        self.step = step = Step(counts.engine, kind, scheduled)
        try:
            self._sync(step)
            self.active = self.guard.active
        except GuardStopped:
            raise
        except Exception as error:  # noqa: BLE001 - a guard may not end a step
            self._sync = _nothing
            self._fail("sync_for_step", error)

    def end(self) -> None:
        """The step under way is over. Does nothing where there is none."""
        step = self.step
        if step is None:
            return
        self.step = None
        try:
            self._end(step)
        except Exception as error:  # noqa: BLE001 - a guard may not end a step
            self._end = _nothing
            self._fail("end_of_wave_sync", error)

    def begin_sample(self, state: Any) -> Batch | None:
        """The sample phase starts; the batch to examine, if there is one."""
        step = self.step
        if step is None:
            # Patched between the two halves of this step.
            self.counts.engine += 1
            self.step = step = Step(self.counts.engine, "engine", None)
        if step.kind != "engine":
            return None
        self.counts.sampled += 1
        if not self.active:
            return None
        try:
            self._batch = Batch.of(state.input_batch)
        except Exception as error:  # noqa: BLE001 - a guard may not end a step
            self._fail("before_sample", error)
        return self._batch

    def end_sample(self) -> None:
        """The sample phase is over, and the step with it."""
        self._batch = None
        self.end()

    def before_sample(self, logits: torch.Tensor) -> None:
        if self.step is not None and self._batch is not None:
            self._call("before_sample", self.step, self._batch, logits)

    def on_sampled(self, *args: Any, **kwargs: Any) -> None:
        """What `postprocess_sampled` was called with."""
        step = self.step
        if step is None or step.kind != "engine":
            return
        try:
            sampled = Sampled.of(*args, **kwargs)
        except TypeError as error:
            self._fail("on_sampled", error)
        else:
            self._call("on_sampled", step, sampled)

    def after_sample(self, step: Step, batch: Batch, output: Any) -> None:
        self._call("after_sample", step, batch, output)

    def hand_over(self, output: Any) -> None:
        """What the sample phase returned: examined now, or when it is collected."""
        step, batch = self.step, self._batch
        if step is None or batch is None or output is None:
            return
        if hasattr(output, "get_output"):
            try:
                _outputs[output] = (self, step, batch)
            except TypeError as error:  # not one that can be told from another
                self._fail("after_sample", error)
        elif getattr(output, "sampled_token_ids", None):
            self.after_sample(step, batch, output)

    def _call(self, hook: str, *args: Any) -> None:
        if hook in self._failed:
            return
        try:
            getattr(self.guard, hook)(*args)
        except Exception as error:  # noqa: BLE001 - a guard may not end a step
            self._fail(hook, error)

    def _fail(self, hook: str, error: Exception) -> None:
        if hook in self._failed:
            return
        self._failed.add(hook)
        _log.error(
            "guard %s.%s failed and is not called again: %r",
            type(self.guard).__name__,
            hook,
            error,
            exc_info=error,
        )


def _nothing(step: Step) -> None:
    """Stands in for a hook that has failed."""


_watches: dict[int, Watch] = {}
"""By the runner's `id`, gone with the runner: `weakref.WeakKeyDictionary` costs
three times as much to ask, and every hook asks."""
_outputs: weakref.WeakKeyDictionary[Any, tuple[Watch, Step, Batch]] = (
    weakref.WeakKeyDictionary()
)
"""Asynchronous output that nobody has collected yet."""


def bind(runner: Any, make: Callable[[], Guard] | None = None) -> Watch:
    """Put `runner` under the watch of a new guard, the one the environment asks
    for unless `make` makes another."""
    if make is None:
        # Not by a process that applies patches and never has a runner.
        from .select import make_guard

        make = make_guard
    watch = Watch(make(), runner)
    key = id(runner)
    watch.alive = weakref.ref(runner, lambda _: _watches.pop(key, None))
    _watches[key] = watch
    return watch


def watch_of(runner: Any) -> Watch:
    """The watch of `runner`; bound now if the runner was built before us."""
    watch = _watches.get(id(runner))
    return bind(runner) if watch is None else watch


def collect(output: Any, collected: Any) -> None:
    """Asynchronous `output` has become `collected` on the host. Once each."""
    if not _outputs:
        return
    found = _outputs.pop(output, None)
    if found is not None and collected is not None:
        watch, step, batch = found
        watch.after_sample(step, batch, collected)
