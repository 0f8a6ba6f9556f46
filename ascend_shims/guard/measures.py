"""Measures on their way from the device to the host, without waiting for any."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

import msgspec
import torch

from .detectors import LogitsDetector
from .protocol import Batch, Step

__all__ = ["Measure", "Measures"]


class Measure(msgspec.Struct, frozen=True):
    """What one detector measured at one step."""

    detector: LogitsDetector
    step: Step
    batch: Batch
    values: torch.Tensor
    """On the host; to be read only once it has `arrived`."""
    event: Any
    """Recorded behind the copy. None: there was nothing to copy."""

    @property
    def arrived(self) -> bool:
        return self.event is None or bool(self.event.query())


class Measures:
    """The measures under way, oldest first, at most `limit`."""

    limit = 256

    def __init__(self) -> None:
        self._waiting: deque[Measure] = deque(maxlen=self.limit)

    def send(
        self, detector: LogitsDetector, step: Step, batch: Batch, logits: torch.Tensor
    ) -> None:
        """Measure `logits` and start to copy the result to the host."""
        measured = detector.measure(logits)
        event = None
        if measured.device.type != "cpu":
            measured = measured.to("cpu", non_blocking=True)
            event = torch.get_device_module(logits.device).Event()
            event.record()
        self._waiting.append(Measure(detector, step, batch, measured, event))

    def arrived(self) -> Iterator[Measure]:
        """Take those that have reached the host, oldest first."""
        while self._waiting and self._waiting[0].arrived:
            yield self._waiting.popleft()
