"""What can be asked of the one device there is, and its seeds."""

from __future__ import annotations

from typing import Any

import msgspec
import torch

from .indices import device_index
from .memory import device_memory

__all__ = [
    "DeviceProperties",
    "current_device",
    "device_count",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "manual_seed",
    "manual_seed_all",
    "set_device",
]

_NAME = "Ascend-in-software"


class DeviceProperties(msgspec.Struct, frozen=True):
    """What is known of the device; the names are torch_npu's."""

    name: str
    total_memory: int


def is_available() -> bool:
    return True


def device_count() -> int:
    return 1


def current_device() -> int:
    return 0


def set_device(device: Any) -> None:
    """Raises `DeviceError` for a device other than the one there is."""
    device_index(device)


def get_device_name(device_name: Any = None) -> str:
    device_index(device_name)
    return _NAME


def get_device_properties(device_name: Any = None) -> DeviceProperties:
    device_index(device_name)
    return DeviceProperties(_NAME, device_memory().budget)


def manual_seed(seed: int) -> None:
    """Seed the device, whose random numbers come from torch's CPU generator."""
    torch.default_generator.manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    manual_seed(seed)
