"""One process's state in a few words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from ..states import State

if TYPE_CHECKING:
    from ..report import Report

__all__ = ["Summary"]


class Summary(msgspec.Struct, frozen=True):
    """What the log line, the metrics and the span event say of a process."""

    schema: int
    version: str
    """Of ascend-shims."""
    process: str
    """Its role: `engine-core`, `worker TP1`, …"""
    pid: int
    vllm: str | None
    device: str
    plan: str
    """Digest of the plan; two processes that agree share it."""
    gaps: dict[State, int]
    """How many are in each state; states that no gap is in are left out."""

    @classmethod
    def of(cls, report: Report, version: str) -> Summary:
        """The summary of a report on this process, by ascend-shims `version`."""
        counted = Counter(gap.state for gap in report.gaps)
        return cls(
            schema=1,
            version=version,
            process=str(report.process["role"]),
            pid=int(report.process["pid"]),
            vllm=report.environment.version("vllm"),
            device=report.environment.device.kind,
            plan=report.plan,
            gaps={state: counted[state] for state in State if counted[state]},
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain
