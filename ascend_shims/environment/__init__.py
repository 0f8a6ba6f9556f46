"""What this interpreter has: packages, versions, device. A value, read once.

A plan takes it as an argument, so that one can be made up: `assume` replaces
what is found, and then nothing needs to be installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .device import Device, DeviceRequest, find_device
from .distributions import Distribution, find_distribution

__all__ = ["Device", "DeviceRequest", "Distribution", "Environment", "read_environment"]


@dataclass(frozen=True, slots=True)
class Environment:
    """An interpreter, as far as a plan depends on it."""

    python: str
    """The interpreter's path."""
    distributions: Mapping[str, Distribution]
    """By import package."""
    device: Device

    def version(self, package: str) -> str | None:
        found = self.distributions.get(package)
        return found.version if found else None


def read_environment(
    packages: Iterable[str],
    *,
    assume: Mapping[str, str],
    device: DeviceRequest,
) -> Environment:
    """Look at this interpreter, without importing any of `packages`."""
    distributions = {
        package: Distribution(package, assume[package], origin="assumed")
        if package in assume
        else find_distribution(package)
        for package in dict.fromkeys([*packages, *assume])
    }
    return Environment(sys.executable, distributions, find_device(device))
