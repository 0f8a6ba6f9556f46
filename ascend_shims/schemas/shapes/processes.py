"""Lines that processes write: the guard's report, and the log at the start."""

from __future__ import annotations

from typing import Any

import msgspec

from ...states import State
from .common import One

__all__ = ["GuardLine", "LogLine"]


class GuardLine(msgspec.Struct):
    """A line of the file that `ASCEND_SHIMS_GUARD_REPORT` names."""

    time: str
    rank: int
    step: int
    request_id: str | None
    detector: str
    evidence: dict[str, Any]


class LogLine(msgspec.Struct):
    """What follows `ascend_shims.apply` in the log of a process."""

    schema: One
    version: str
    process: str
    pid: int
    vllm: str | None
    device: str
    plan: str
    gaps: dict[State, int]
    ms: int
