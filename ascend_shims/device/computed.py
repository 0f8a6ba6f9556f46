"""Numbers that the device finds out and the host has to know.

With speculative decoding the device decides how many tokens of a step are rejected.
`HostCopy` brings such numbers over without a wait until they are read, and
`ComputedTokens` keeps the host's count of computed tokens right while steps are
scheduled ahead of their results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .npu import npu

__all__ = ["ComputedTokens", "HostCopy"]


class HostCopy:
    """A small int32 tensor of the device on the host."""

    def __init__(self, size: int) -> None:
        self._host: torch.Tensor | None = None
        self._size = size
        self._used = 0
        self._event: Any = None

    def start(self, values: torch.Tensor) -> None:
        """Copy `values` `[n]` as they will be when the current stream gets there."""
        if self._host is None:
            pinned = values.device.type != "cpu"
            with torch.inference_mode(False):
                self._host = torch.zeros(
                    self._size, dtype=torch.int32, device="cpu", pin_memory=pinned
                )
            self._event = npu().Event()
        self._used = len(values)
        self._host[: self._used].copy_(values, non_blocking=True)
        self._event.record()

    def read(self) -> np.ndarray[Any, Any]:
        """The values of the latest `start`, int32 `[n]`; waits for them."""
        assert self._host is not None
        self._event.synchronize()
        found: np.ndarray[Any, Any] = self._host[: self._used].numpy().copy()
        return found


class ComputedTokens:
    """How many tokens of each request are computed, by its slot.

    The scheduler's count is a bound while tokens of a request that it takes for
    accepted may still be rejected. Such a slot is open: its count is taken from the
    device's, and it closes when both agree.
    """

    def __init__(self, num_slots: int) -> None:
        self._open = np.zeros(num_slots, dtype=np.bool_)
        self._copy = HostCopy(num_slots)

    def start(self, on_device: torch.Tensor) -> None:
        """Bring the device's counts `[num_slots]` over, if a slot is open."""
        if self._open.any():
            self._copy.start(on_device)

    def forget(self, slot: int) -> None:
        """Another request has the slot from now on."""
        self._open[slot] = False

    def exact(
        self,
        slots: np.ndarray[Any, Any],
        bound: np.ndarray[Any, Any],
        at_risk: np.ndarray[Any, Any],
    ) -> np.ndarray[Any, Any]:
        """The counts before a step, int32 `[num_reqs]`, for the scheduler's `bound`.

        `at_risk` tells of each request whether this step may reject tokens of it.
        Waits for the step before, where that may have rejected some.
        """
        exact = np.array(bound, dtype=np.int32)
        waiting = self._open[slots]
        if waiting.any():
            exact[waiting] = self._copy.read()[slots[waiting]]
        self._open[slots] = at_risk | (exact != bound)
        return exact
