"""Sequence lengths on the host, beside those that upstream keeps on the device.

Attention operators of the NPU take the exact lengths as host memory. Upstream's
`InputBuffers.seq_lens` lie on the device, and reading them back would make every
step wait. A `HostLengths` stands beside such a buffer; whoever has the buffer, or
a view of it, finds its host side by the memory that it views.

Some lengths follow from what only the device knows: how many of the tokens of a
step were rejected. They are written down as a rule (`set_when_known`), and worked
out when somebody looks at them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ascend_shims.errors import ShimsError

from .computed import HostCopy

__all__ = ["HostLengths", "HostLengthsError", "beside", "host_side", "host_view"]


class HostLengthsError(ShimsError):
    """Lengths on the host do not fit those on the device."""


class HostLengths:
    """The host side of one buffer of lengths.

    `device` and `host` are int32 `[max_num_reqs]`, `np` is `host` for numpy. Both
    are right once `settle` has been called, which `host_view` does.
    """

    def __init__(self, device: torch.Tensor) -> None:
        self.device = device
        # Born outside inference mode, so that it can be written inside and outside.
        with torch.inference_mode(False):
            self.host = torch.zeros(len(device), dtype=torch.int32, device="cpu")
        self.np: np.ndarray[Any, Any] = self.host.numpy()
        self.num_reqs = 0
        """Requests that have a length; those after them are padding."""
        self.at_risk = False
        """Whether tokens that are counted here may be rejected in this step."""
        self._rejected: tuple[torch.Tensor, HostCopy] | None = None
        self._passes = 0
        self._due: list[Callable[[], None]] = []

    def set(self, lengths: Any) -> None:
        """Make `lengths` the first ones, int32 `[n]`, and all others 0.

        Raises `HostLengthsError` for more lengths than there is room for.
        """
        if len(lengths) > len(self.np):
            raise HostLengthsError(
                f"{len(lengths)} lengths do not fit a buffer of {len(self.np)}; make "
                "the buffer for max_num_reqs"
            )
        self._due.clear()
        self._passes = 0
        self.num_reqs = len(lengths)
        self.at_risk = False
        self.np[: len(lengths)] = lengths
        self.np[len(lengths) :] = 0

    def set_when_known(self, num_reqs: int, lengths: Callable[[], Any]) -> None:
        """`set`, with lengths `[num_reqs]` that are asked for when looked at."""
        self.set(np.zeros(num_reqs, dtype=np.int32))
        self._due.append(lambda: self._write(lengths()))

    def count_up(self, num_reqs: int, limit: int, passes: int) -> None:
        """One more token for each of the first `num_reqs`, up to `limit` tokens.

        Of the `passes` that one `set` serves, the last adds none.
        """
        self._passes += 1
        if self._passes < passes:
            self.add_one(num_reqs, limit)

    def add_one(self, num_reqs: int, limit: int) -> None:
        """One more token for each of the first `num_reqs`, up to `limit` tokens."""

        def add() -> None:
            rows = self.np[:num_reqs]
            np.minimum(rows + 1, limit, out=rows)

        if self._due:
            self._due.append(add)
        else:
            add()

    def settle(self) -> None:
        """Write what is due, and wait for what it needs from the device."""
        due, self._due = self._due, []
        for write in due:
            write()

    def start_rejected(self, num_rejected: torch.Tensor) -> None:
        """Bring this step's rejected tokens, int32 `[num_reqs]`, to the host.

        Nothing waits; and nothing is copied where nothing is at risk.
        """
        if self.at_risk:
            copy = self._rejected[1] if self._rejected else HostCopy(len(self.np))
            copy.start(num_rejected)
            self._rejected = num_rejected, copy

    def rejected(self, num_rejected: torch.Tensor) -> Callable[[], Any]:
        """What asks for the number of rejected tokens `[num_reqs]`, and waits."""
        if not self.at_risk:
            return lambda: 0
        if self._rejected is None or self._rejected[0] is not num_rejected:
            self.start_rejected(num_rejected)
        assert self._rejected is not None
        return self._rejected[1].read

    def _write(self, lengths: Any) -> None:
        self.np[: self.num_reqs] = lengths


_BY_ADDRESS: weakref.WeakValueDictionary[int, HostLengths] = (
    weakref.WeakValueDictionary()
)
"""By the address of the device side's memory. Whoever owns the buffer owns the
entry: it goes with it."""


def beside(device: torch.Tensor) -> HostLengths:
    """A host side for the buffer `device`, int32 `[max_num_reqs]`.

    It is found as long as the caller keeps it.
    """
    lengths = HostLengths(device)
    _BY_ADDRESS[device.untyped_storage().data_ptr()] = lengths
    return lengths


def host_side(lengths: torch.Tensor) -> HostLengths | None:
    """What stands beside the buffer that `lengths` is, or views; None if nothing."""
    return _BY_ADDRESS.get(lengths.untyped_storage().data_ptr())


def host_view(lengths: torch.Tensor) -> torch.Tensor | None:
    """The host side of `lengths`, a view of a buffer on the device.

    Gives int32 of the same shape, or None where the buffer has no host side. Waits
    for rejected tokens where lengths of a draft depend on them.
    """
    found = host_side(lengths)
    if found is None:
        return None
    found.settle()
    start = lengths.storage_offset() - found.device.storage_offset()
    return found.host[start : start + len(lengths)]
