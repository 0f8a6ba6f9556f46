"""Which device an argument means: there is one."""

from __future__ import annotations

from typing import Any

import torch

from .errors import DeviceError

__all__ = ["device_index"]


def device_index(device: Any = None) -> int:
    """The index that a device argument means.

    Tensors of this device are CPU tensors, so `cpu` means it, too.
    Raises `DeviceError` for any other.
    """
    if device is None:
        return 0
    if isinstance(device, str):
        kind, _, number = device.partition(":")
        index = int(number) if number.isdigit() else 0
    elif isinstance(device, torch.device):
        kind, index = device.type, device.index or 0
    else:
        kind, index = "npu", int(device)
    if kind not in ("cpu", "npu") or index > 0:
        raise DeviceError(f"there is one NPU here, number 0; {device!r} is another")
    return 0
