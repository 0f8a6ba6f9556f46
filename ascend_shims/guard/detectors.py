"""What the default guard looks for.

Two kinds. One measures logits on the device, where it must not wait, and judges
the measure when it has reached the host. The other reads a request's new tokens
on the host. Both say what they found as plain data, the evidence of a line in
the report.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch

from .config import (
    Action,
    DetectorSettings,
    ForbiddenText,
    GuardConfigurationError,
    LowAcceptance,
    NonfiniteLogits,
    RepeatedTokens,
)
from .protocol import Batch

__all__ = [
    "Acceptance",
    "Decode",
    "Evidence",
    "Forbidden",
    "LogitsDetector",
    "Nonfinite",
    "Repetition",
    "TokenDetector",
    "build",
]

Evidence = Mapping[str, Any]
Decode = Callable[[Sequence[int]], str]
"""Text of token ids."""


@runtime_checkable
class LogitsDetector(Protocol):
    """Looks at the logits that the sampler is about to read."""

    @property
    def name(self) -> str: ...

    @property
    def action(self) -> Action: ...

    def measure(self, logits: torch.Tensor) -> torch.Tensor:
        """`[rows, …]` on the device of `logits`, which stays untouched."""

    def judge(
        self, measured: torch.Tensor, batch: Batch
    ) -> Iterable[tuple[str | None, Evidence]]:
        """What `measured`, now on the host, says of the requests. None: of no
        one in particular."""


@runtime_checkable
class TokenDetector(Protocol):
    """Follows the tokens of each request."""

    @property
    def name(self) -> str: ...

    @property
    def action(self) -> Action: ...

    def observe(
        self, request_id: str, tokens: Sequence[int], drafts: int
    ) -> Evidence | None:
        """A step gave the request `tokens`, with `drafts` draft tokens verified."""

    def forget(self, request_id: str) -> None:
        """The request has ended."""


class Nonfinite:
    """NaN and infinities, counted by request."""

    name = "nonfinite-logits"

    def __init__(self, settings: NonfiniteLogits) -> None:
        self.action: Action = settings.action
        self._all_infinities = not settings.allow_negative_infinity

    def measure(self, logits: torch.Tensor) -> torch.Tensor:
        """`[rows, 3]` int32: how many NaN, infinity, minus infinity."""
        # Comparisons only: every device has them, none makes the host wait.
        kinds = (logits != logits, logits == torch.inf, logits == -torch.inf)
        return torch.stack([kind.sum(-1, dtype=torch.int32) for kind in kinds], -1)

    def judge(
        self, measured: torch.Tensor, batch: Batch
    ) -> Iterator[tuple[str | None, Evidence]]:
        counts = measured if self._all_infinities else measured[:, :2]
        bad = counts.sum(-1).ne(0)
        if not bool(bad.any()):
            return
        starts = batch.row_starts
        if not starts or starts[-1] != len(bad):
            rows = bad.nonzero().flatten().tolist()
            evidence = self._evidence(measured, rows)
            yield None, {**evidence, "requests": list(batch.requests)}
            return
        for index, request_id in enumerate(batch.requests):
            own = range(starts[index], starts[index + 1])
            rows = [row for row in own if bad[row]]
            if rows:
                evidence = self._evidence(measured, rows)
                yield request_id, {**evidence, "rows": [row - own[0] for row in rows]}

    @staticmethod
    def _evidence(measured: torch.Tensor, rows: list[int]) -> dict[str, Any]:
        nan, inf, negative = measured[rows].sum(0).tolist()
        return {"nan": nan, "inf": inf, "-inf": negative, "rows": rows}


class _Run:
    """The latest tokens of one request and how long each period has held."""

    __slots__ = ("count", "held", "reported", "tail")

    def __init__(self, longest_period: int) -> None:
        self.count = 0
        self.tail: deque[int] = deque(maxlen=longest_period)
        self.held = [0] * (longest_period + 1)
        self.reported = False


class Repetition:
    """One group of tokens, of at most `longest_period`, `repeats` times in a row.

    Said once for each such run: the next report needs the run to break first.
    """

    name = "repeated-tokens"

    def __init__(self, settings: RepeatedTokens) -> None:
        self.action: Action = settings.action
        self._repeats = settings.repeats
        self._longest = settings.longest_period
        self._runs: dict[str, _Run] = {}

    def observe(
        self, request_id: str, tokens: Sequence[int], drafts: int = 0
    ) -> Evidence | None:
        del drafts
        if not tokens:
            return None
        run = self._runs.get(request_id)
        if run is None:
            run = self._runs[request_id] = _Run(self._longest)
        found = None
        for token in tokens:
            period = self._extend(run, token)
            if period and not run.reported:
                found = self._evidence(run, period)
            run.reported = period > 0
        return found

    def forget(self, request_id: str) -> None:
        self._runs.pop(request_id, None)

    def _extend(self, run: _Run, token: int) -> int:
        """Add a token; the shortest period that has held long enough, or 0."""
        shortest = 0
        for period in range(1, len(run.tail) + 1):
            if run.tail[-period] != token:
                run.held[period] = 0
                continue
            run.held[period] += 1
            # A group seen n times is n - 1 times equal to the one before it.
            if not shortest and run.held[period] >= (self._repeats - 1) * period:
                shortest = period
        run.tail.append(token)
        run.count += 1
        return shortest

    def _evidence(self, run: _Run, period: int) -> Evidence:
        return {
            "tokens": list(run.tail)[-period:],
            "repeats": self._repeats,
            "output_tokens": run.count,
        }


class Acceptance:
    """Draft tokens proposed and accepted, a request at a time, window by window."""

    name = "low-acceptance"

    def __init__(self, settings: LowAcceptance) -> None:
        self.action: Action = settings.action
        self._minimum = settings.minimum
        self._window = settings.window
        self._tally: dict[str, tuple[int, int]] = {}

    def observe(
        self, request_id: str, tokens: Sequence[int], drafts: int
    ) -> Evidence | None:
        if not drafts or not tokens:
            return None
        proposed, accepted = self._tally.get(request_id, (0, 0))
        proposed += drafts
        # One token of every step is the target model's own.
        accepted += min(len(tokens) - 1, drafts)
        if proposed < self._window:
            self._tally[request_id] = (proposed, accepted)
            return None
        self._tally[request_id] = (0, 0)
        if accepted >= self._minimum * proposed:
            return None
        return {"proposed": proposed, "accepted": accepted, "minimum": self._minimum}

    def forget(self, request_id: str) -> None:
        self._tally.pop(request_id, None)


class Forbidden:
    """Patterns in the text of a request's latest tokens, each said once."""

    name = "forbidden-text"

    def __init__(self, settings: ForbiddenText, decode: Decode | None) -> None:
        self.action: Action = settings.action
        self._patterns = [re.compile(pattern) for pattern in settings.patterns]
        self._window = settings.window
        self._decode = decode
        self._tails: dict[str, deque[int]] = {}
        self._said: dict[str, set[str]] = {}

    def observe(
        self, request_id: str, tokens: Sequence[int], drafts: int = 0
    ) -> Evidence | None:
        del drafts
        if self._decode is None:
            raise GuardConfigurationError(
                "forbidden-text needs the model's tokenizer; start the engine "
                "without skip_tokenizer_init, or switch this detector off"
            )
        if not tokens:
            return None
        tail = self._tails.get(request_id)
        if tail is None:
            tail = self._tails[request_id] = deque(maxlen=self._window)
        tail.extend(tokens)
        text = self._decode(list(tail))
        said = self._said.setdefault(request_id, set())
        found = [
            pattern.pattern
            for pattern in self._patterns
            if pattern.pattern not in said and pattern.search(text)
        ]
        said.update(found)
        return {"patterns": found} if found else None

    def forget(self, request_id: str) -> None:
        self._tails.pop(request_id, None)
        self._said.pop(request_id, None)


def build(
    settings: DetectorSettings, decode: Callable[[], Decode | None]
) -> LogitsDetector | TokenDetector:
    """The detector of some settings. `decode` is asked only where text is needed."""
    match settings:
        case NonfiniteLogits():
            return Nonfinite(settings)
        case RepeatedTokens():
            return Repetition(settings)
        case LowAcceptance():
            return Acceptance(settings)
        case ForbiddenText():
            return Forbidden(settings, decode())
        case _:
            raise GuardConfigurationError(f"no detector has {settings!r}")
