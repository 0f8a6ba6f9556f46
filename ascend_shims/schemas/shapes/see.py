"""`shims status`, `show`, `apply-check`, `doctor`, `explain`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ...doctor.finding import Finding
from ...doctor.switched import FoundSeen, Switch
from ...explain.pages import Page
from ...registry.model import Gap
from ...report import RegistryReport
from ...states import State
from .common import (
    Device,
    GapStanding,
    GapState,
    One,
    PatchStanding,
    Report,
    either,
)

__all__ = ["ApplyCheck", "Doctor", "Explained", "Show", "Status"]


class Answered(Report):
    """A running process's own report."""

    pid: int
    role: str


class Silent(msgspec.Struct):
    """A running process that carries shims and gave no report."""

    pid: int
    problem: str


class Status(Report):
    """`shims status --json`: the plan for a new process, and the running ones."""

    parts = (Answered, Silent)
    processes: list[either("Answered", "Silent")]  # type: ignore[valid-type]


class Told(msgspec.Struct):
    truth: Literal["yes", "no", "unknown"]
    words: str
    at: str | None


class Sign(msgspec.Struct):
    """A sign of the removal probe; `seen` is null where the package is not here."""

    says: str
    package: str
    seen: Literal["yes", "no", "unknown"] | None
    told: list[Told]
    release: str | msgspec.UnsetType = msgspec.UNSET


class Drifted(msgspec.Struct):
    """What drift says of an installed upstream; `problem` where it says nothing."""

    package: str
    release: str | None
    baseline: str | None
    verdicts: dict[str, int]
    says: list[str]
    problem: str | None


class Elsewhere(msgspec.Struct):
    """The gap in a running process."""

    pid: int
    role: str
    id: str
    title: str
    status: str
    kind: str
    state: State
    reason: str
    patches: list[PatchStanding]


class Show(msgspec.Struct):
    """`shims show GAP --json`."""

    schema: One
    registry: Gap
    brought_by: RegistryReport | None
    here: GapStanding
    probe: list[Sign]
    drift: list[Drifted]
    processes: list[Elsewhere]


class ApplyCheck(msgspec.Struct):
    """`shims apply-check --json`."""

    parts = (GapStanding, GapState)
    schema: One
    ok: bool
    wanted: list[str]
    gaps: list[either("GapStanding", "GapState")]  # type: ignore[valid-type]
    not_importable: dict[str, str]
    near: dict[str, str]
    registries: list[RegistryReport]


class Package(msgspec.Struct):
    version: str | None
    distribution: str | None
    file: str | None


class Cann(msgspec.Struct):
    version: str | None
    folder: str | None
    driver: str | None
    nodes: list[str]


class RegistryInForce(msgspec.Struct):
    file: str
    source: str
    sha256: str | None
    gaps: int
    project: str | None


class Running(msgspec.Struct):
    """A process of vLLM's, or one that carries shims."""

    pid: int
    title: str | None
    role: str | None
    plan: str | None
    shims: bool


class Counts(msgspec.Struct):
    problem: int
    notice: int
    ok: int


class Doctor(msgspec.Struct):
    """`shims doctor --json`."""

    schema: One
    ok: bool
    counts: Counts
    findings: list[Finding]
    python: dict[str, Any]
    vllm: Package
    torch: Package
    torch_npu: Package
    cann: Cann
    device: Device
    plan: str | None
    registry: RegistryInForce
    switches: list[Switch]
    processes: list[Running]
    registries: list[FoundSeen] | msgspec.UnsetType = msgspec.UNSET


class Explained(msgspec.Struct):
    """`shims explain --json`."""

    schema: One
    codes: list[Page]
