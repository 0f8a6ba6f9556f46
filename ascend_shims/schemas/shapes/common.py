"""Parts that several documents have in common."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ...report import RegistryReport
from ...states import State

__all__ = [
    "Costs",
    "Device",
    "Distribution",
    "Environment",
    "GapState",
    "GapStanding",
    "One",
    "PatchStanding",
    "Process",
    "Report",
    "either",
]

One = Literal[1]
"""The version of a document's form."""


def either(*names: str) -> Any:
    """One of several shapes, each named among a document's `parts`."""
    refs = [{"$ref": f"#/$defs/{name}"} for name in names]
    return Annotated[Any, msgspec.Meta(extra_json_schema={"anyOf": refs})]


class Device(msgspec.Struct):
    kind: str
    reason: str


class Distribution(msgspec.Struct):
    """A package as an interpreter has it; `origin` is `nowhere` where it has not."""

    version: str | None
    distribution: str | None
    file: str | None
    origin: str


class Environment(msgspec.Struct):
    python: str
    device: Device
    distributions: dict[str, Distribution]
    """By import package."""


class PatchStanding(msgspec.Struct):
    target: str
    kind: str
    replacement: str
    state: State
    reason: str
    companion: str | None


class GapStanding(msgspec.Struct):
    id: str
    title: str
    status: Literal["open", "landed", "retired"]
    kind: Literal["workaround", "adaptation"]
    state: State
    reason: str
    patches: list[PatchStanding]


class GapState(msgspec.Struct):
    id: str
    state: State
    reason: str


class Process(msgspec.Struct):
    pid: int
    role: str


class Report(msgspec.Struct):
    """All gaps of one process: what `ascend_shims.status().as_dict()` returns."""

    schema: One
    plan: str
    process: Process
    environment: Environment
    registries: list[RegistryReport]
    gaps: list[GapStanding]
    rebound: list[str]
    stale: list[str]


class Costs(msgspec.Struct):
    bytes: int
    requests: int
    cached: int
    seconds: float
