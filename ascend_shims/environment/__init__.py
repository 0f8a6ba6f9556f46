"""What this interpreter has: packages, versions, device, plugins. A value.

A plan takes it as an argument, so that one can be made up: `assume` replaces
what is found, and then nothing needs to be installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

import msgspec

from .device import Device, DeviceRequest, find_device
from .distributions import Distribution, find_distribution
from .providers import Claim, Providers, read_providers

__all__ = [
    "Claim",
    "Device",
    "DeviceRequest",
    "Distribution",
    "Environment",
    "Providers",
    "read_environment",
    "read_providers",
]


class Environment(msgspec.Struct, frozen=True):
    """An interpreter, as far as a plan depends on it."""

    python: str
    """The interpreter's path."""
    distributions: Mapping[str, Distribution]
    """By import package."""
    device: Device
    providers: Providers = msgspec.field(default_factory=Providers)

    def version(self, package: str) -> str | None:
        found = self.distributions.get(package)
        return found.version if found else None


def read_environment(
    packages: Iterable[str],
    *,
    assume: Mapping[str, str],
    device: DeviceRequest,
    providers: Providers | None = None,
) -> Environment:
    """Look at this interpreter, without importing any of `packages`."""
    providers = providers or Providers()
    plugins = (claim.package for claim in providers.closing)
    distributions = {
        package: Distribution(package, assume[package], origin="assumed")
        if package in assume
        else find_distribution(package)
        for package in dict.fromkeys([*packages, *assume, *plugins])
    }
    return Environment(sys.executable, distributions, find_device(device), providers)
