"""What the software NPU raises, one exception a situation.

The device raises plain `RuntimeError`s, which callers catch; so every exception
here is one, and one of ours.
"""

from __future__ import annotations

import torch

from ascend_shims.errors import ConfigurationError, ShimsError

__all__ = [
    "CaptureError",
    "DeadlockError",
    "DeviceError",
    "EventError",
    "MemoryBudgetError",
    "NotModelledError",
    "OutOfMemoryError",
    "ReplayError",
    "TaskError",
]


class DeviceError(ShimsError, RuntimeError):
    """Something that a device would refuse as well."""


class CaptureError(DeviceError):
    """A graph cannot be captured so."""


class ReplayError(DeviceError):
    """A graph cannot be replayed, or not so."""


class TaskError(DeviceError):
    """A task group or its update is used wrongly."""


class EventError(DeviceError):
    """An event cannot be used so."""


class DeadlockError(DeviceError):
    """The host waits for work that itself waits for an event nobody records."""


class NotModelledError(DeviceError, NotImplementedError):
    """torch_npu can do it; this device in software cannot."""


class MemoryBudgetError(ConfigurationError):
    """The budget of device memory is not a number of bytes."""


class OutOfMemoryError(ShimsError, torch.OutOfMemoryError):
    """More memory was asked for than the budget leaves."""
