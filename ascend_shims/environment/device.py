"""Whether there is an NPU, a software one, or none."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from .modules import find_module

__all__ = ["Device", "DeviceRequest", "find_device"]

DeviceRequest = Literal["auto", "npu", "sim", "none"]


class Device(msgspec.Struct, frozen=True):
    """The device that patches would serve, and how we know."""

    kind: Literal["npu", "sim", "none"]
    reason: str


def find_device(request: DeviceRequest) -> Device:
    """What `ASCEND_SHIMS_DEVICE=request` comes to on this machine.

    Looks at files only: torch_npu is not imported.
    """
    if request == "npu" and find_module("torch_npu") is None:
        return Device("npu", "ASCEND_SHIMS_DEVICE=npu, but torch_npu is not installed")
    if request != "auto":
        return Device(request, f"ASCEND_SHIMS_DEVICE={request}")
    if find_module("torch_npu") is None:
        return Device("none", "torch_npu is not installed")
    nodes = sorted(Path("/dev").glob("davinci[0-9]*"))
    if not nodes:
        return Device("none", "torch_npu is installed, but there is no /dev/davinci*")
    return Device("npu", f"torch_npu and {nodes[0]}")
