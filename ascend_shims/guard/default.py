"""The guard that ships with the toolkit: detectors, a report, live settings.

No detector is on unless settings say so; a step then costs a look at a flag, or
at the clock where a settings file is followed.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from . import upstream
from .config import Settings
from .detectors import Decode, Evidence, LogitsDetector, TokenDetector, build
from .measures import Measures
from .protocol import Batch, GuardStopped, Observer, Step
from .ranks import Ranks, Vote
from .report import Report
from .source import SettingsSource

__all__ = ["DefaultGuard"]

_SELF = "guard"
"""Stands in a line's `detector` where the guard speaks of itself."""

_LAG = 64
"""Steps by which collected output may trail the step under way."""


class DefaultGuard(Observer):
    """Runs the configured detectors over every engine step of one runner."""

    def __init__(
        self,
        source: SettingsSource | None = None,
        *,
        ranks: Callable[[], Ranks] = upstream.lockstep_ranks,
        decoder: Callable[[Any], Decode | None] = upstream.decoder,
    ) -> None:
        self.active = False
        self._source = source or SettingsSource.from_environment()
        self._ranks = ranks
        self._decoder = decoder
        self._model_config: Any = None
        self._text: Decode | None = None
        self._asked_for_text = False
        # Asynchronous output is collected on another thread.
        self._lock = threading.RLock()
        self._settings = Settings()
        self._report = Report(self._source.settings.report)
        self._detectors: dict[str, LogitsDetector | TokenDetector] = {}
        self._logits: list[LogitsDetector] = []
        self._tokens: list[TokenDetector] = []
        self._measures = Measures()
        self._prompts: dict[str, Sequence[int]] = {}
        self._leaving: deque[tuple[int, Iterable[str]]] = deque()
        self._vote: Vote | None = None
        self._may_stop = False
        self._alarm: str | None = None

    def bind(self, runner: Any) -> None:
        self._model_config = getattr(runner, "model_config", None)
        self._report.rank = upstream.rank()
        settings = self._source.settings
        alone = upstream.world_size() == 1
        if settings.acts and not alone:
            self._vote = Vote(self._ranks())
        # Ranks read a changed file at different steps, so that voting cannot
        # start while the engine runs.
        self._may_stop = alone or self._vote is not None
        with self._lock:
            self._adopt(settings, step=0)

    def sync_for_step(self, step: Step) -> None:
        try:
            if self._source.follows and self._source.due():
                self._reload(step.number)
            if self.active and step.kind == "engine":
                with self._lock:
                    self._arrive(step)
        except Exception as error:  # noqa: BLE001 - others wait for this rank's vote
            self._give_up(error, step.number)
        if self._vote is not None:
            if step.lockstep and self._vote.cast(self._alarm is not None):
                self._stop()
        elif self._alarm is not None:
            self._stop()

    def before_sample(self, step: Step, batch: Batch, logits: torch.Tensor) -> None:
        with self._lock:
            for detector in tuple(self._logits):
                self._measure(detector, step, batch, logits)

    def after_sample(self, step: Step, batch: Batch, output: Any) -> None:
        with self._lock:
            self._judge()
            # Output comes in order: no earlier one is still to be collected.
            self._forget(step.number)
            tokens = output.sampled_token_ids
            if not tokens:
                return
            drafts = dict(zip(batch.requests, batch.drafts, strict=False))
            for request_id, new in zip(output.req_ids, tokens, strict=False):
                self._follow(step, request_id, new, drafts.get(request_id, 0))

    def end_of_wave_sync(self, step: Step) -> None:
        del step
        if self.active:
            with self._lock:
                self._judge()

    def _arrive(self, step: Step) -> None:
        self._judge()
        finished = step.finished
        if finished:
            self._leaving.append((step.number, finished))
        self._forget(step.number - _LAG)
        if self._settings.report.prompt:
            for request in step.scheduled.scheduled_new_reqs:
                self._prompts[request.req_id] = request.prompt_token_ids or ()

    def _forget(self, number: int) -> None:
        """Drop what is known of requests that had ended by step `number`."""
        while self._leaving and self._leaving[0][0] <= number:
            for request_id in self._leaving.popleft()[1]:
                self._prompts.pop(request_id, None)
                for detector in self._tokens:
                    detector.forget(request_id)

    def _measure(
        self, detector: LogitsDetector, step: Step, batch: Batch, logits: torch.Tensor
    ) -> None:
        try:
            self._measures.send(detector, step, batch, logits)
        except Exception as error:  # noqa: BLE001 - others go on
            self._drop(detector, error, step.number)

    def _judge(self) -> None:
        for measure in self._measures.arrived():
            if self._detectors.get(measure.detector.name) is not measure.detector:
                continue
            step = measure.step.number
            try:
                found = list(measure.detector.judge(measure.values, measure.batch))
            except Exception as error:  # noqa: BLE001 - others go on
                self._drop(measure.detector, error, step)
                continue
            for request_id, evidence in found:
                self._found(measure.detector, step, request_id, evidence)

    def _follow(
        self, step: Step, request_id: str, tokens: Sequence[int], drafts: int
    ) -> None:
        for detector in tuple(self._tokens):
            try:
                evidence = detector.observe(request_id, tokens, drafts)
            except Exception as error:  # noqa: BLE001 - others go on
                self._drop(detector, error, step.number)
                continue
            if evidence is not None:
                self._found(detector, step.number, request_id, evidence)

    def _found(
        self,
        detector: LogitsDetector | TokenDetector,
        step: int,
        request_id: str | None,
        evidence: Evidence,
    ) -> None:
        if self._settings.report.prompt and request_id in self._prompts:
            evidence = {**evidence, **self._prompt(self._prompts[request_id])}
        self._report.write(detector.name, evidence, step=step, request_id=request_id)
        if detector.action == "stop" and self._may_stop and self._alarm is None:
            of = f" of request {request_id}" if request_id else ""
            self._alarm = f"{detector.name} at step {step}{of}"

    def _prompt(self, tokens: Sequence[int]) -> Evidence:
        told: dict[str, Any] = {"prompt_token_ids": list(tokens)}
        decode = self._decode(step=0)
        if decode is not None:
            try:
                told["prompt"] = decode(tokens)
            except Exception as error:  # noqa: BLE001 - the finding counts
                told["prompt"] = repr(error)
        return told

    def _stop(self) -> None:
        cause, self._alarm = self._alarm or "another rank's detector", None
        raise GuardStopped(
            f"the runtime guard stops the engine: {cause}; see "
            f"{self._settings.report.path or 'the log'}. All ranks stop here. To "
            "go on in such a case, set `action: report`"
        )

    def _reload(self, step: int) -> None:
        changed = self._source.refresh()
        with self._lock:
            if changed:
                self._adopt(self._source.settings, step)
            else:
                self._complain(step)

    def _adopt(self, settings: Settings, step: int) -> None:
        """Run by `settings` from here on; detectors whose settings stay keep
        what they know, and stay off where they have failed."""
        before = self._settings.detectors.chosen()
        after = settings.detectors.chosen()
        if settings.report != self._report.settings:
            self._report = Report(settings.report, rank=self._report.rank)
        self._settings = settings
        for name in [n for n in before if before[n] != after.get(n)]:
            self._detectors.pop(name, None)
        self._complain(step)
        for name in [n for n in after if after[n] != before.get(n)]:
            self._detectors[name] = build(after[name], lambda: self._decode(step))
            if after[name].action == "stop" and not self._may_stop:
                self._say(
                    f"{name}: `action: stop` among several ranks needs a restart; "
                    "until then it reports",
                    step,
                )
        self._sort()

    def _sort(self) -> None:
        running = self._detectors.values()
        self._logits = [d for d in running if isinstance(d, LogitsDetector)]
        self._tokens = [d for d in running if isinstance(d, TokenDetector)]
        self.active = bool(self._detectors)
        if not self.active:
            self._prompts.clear()
            self._leaving.clear()

    def _decode(self, step: int) -> Decode | None:
        if not self._asked_for_text:
            self._asked_for_text = True
            try:
                self._text = self._decoder(self._model_config)
            except Exception as error:  # noqa: BLE001 - detectors say they lack it
                self._say(f"no tokenizer: {error!r}", step)
        return self._text

    def _give_up(self, error: Exception, step: int) -> None:
        """Look for nothing any more, and go on voting."""
        with self._lock:
            self._source.follows = False
            self._detectors.clear()
            self._sort()
            self._say(f"the guard has failed and is off on this rank: {error!r}", step)

    def _drop(
        self, detector: LogitsDetector | TokenDetector, error: Exception, step: int
    ) -> None:
        self._detectors.pop(detector.name, None)
        self._sort()
        self._report.write(detector.name, {"failed": repr(error)}, step=step)

    def _complain(self, step: int) -> None:
        for complaint in self._source.complaints():
            self._say(complaint, step)

    def _say(self, notice: str, step: int) -> None:
        self._report.write(_SELF, {"notice": notice}, step=step)
