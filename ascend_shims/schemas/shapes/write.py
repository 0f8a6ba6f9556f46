"""`shims new-gap`."""

from __future__ import annotations

import msgspec

from .common import One

__all__ = ["NewGap"]


class NewGap(msgspec.Struct):
    """`shims new-gap --json`."""

    schema: One
    gap: str
    registry: str
    package: str
    target: str
    signature: str | None
    release: str | None
    made: list[str]
    changed: list[str]
    environment: dict[str, str]
    next: list[str]
