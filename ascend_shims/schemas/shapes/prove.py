"""`shims verify`, `audit`, `demo`."""

from __future__ import annotations

from typing import Any

import msgspec

from ...states import State
from ...verify.audit import Row
from ...verify.result import Difference, Extent
from .common import GapState, One, Report

__all__ = ["Audited", "Demo", "NoAnswer", "Proof"]


class InForce(msgspec.Struct):
    id: str
    in_force: bool
    state: State
    reason: str
    patches: int
    applied: int
    changed: int


class Stage(msgspec.Struct):
    name: str
    against: str
    ok: bool
    gaps: list[InForce]
    differences: list[Difference]
    errors: list[str]


class AssumedDevice(msgspec.Struct):
    kind: str
    assumed: bool


class Proof(msgspec.Struct):
    """`shims verify --json`."""

    schema: One
    ok: bool
    proved: bool
    digest: str
    digests: dict[str, str]
    upstream: dict[str, str]
    device: AssumedDevice
    compared: Extent
    stages: list[Stage]
    left_out: list[GapState]
    absent: list[str]
    not_importable: dict[str, str]
    varying: dict[str, str]
    seconds: float


class NoAnswer(msgspec.Struct):
    """`shims verify --json` where an interpreter ended: neither proof nor finding."""

    schema: One
    ok: bool
    proved: bool
    error: str
    code: str
    gap: str | None
    interpreter: str


class Audited(msgspec.Struct):
    """`shims audit MODULE --json`."""

    schema: One
    python: str
    version: str
    modules: list[str]
    without_source: list[str]
    rows: list[Row]
    problems: dict[str, str]


class Bases(msgspec.Struct):
    """Where the memory of the KV caches begins, in hexadecimal."""

    stock: list[str]
    applied: list[str]
    reverted: list[str]


class Digests(msgspec.Struct):
    before: str
    after: str


class Without(msgspec.Struct):
    error: str | None
    message: Any


class Rig(msgspec.Struct):
    graphs: list[int]
    error: str | None
    without_graph_manager: Without


class Demo(msgspec.Struct):
    """`shims demo --json`."""

    schema: One
    ok: bool
    checks: dict[str, bool]
    tokens: list[list[int]]
    steps: int
    guarded_steps: int
    kv_bases: Bases
    definitions: int
    digest: Digests
    differences: list[str]
    seconds: list[float]
    rig: Rig
    report: Report
    guard_report_lines: int
