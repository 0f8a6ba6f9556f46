"""The states a gap, and each of its patches, can be in."""

from __future__ import annotations

from enum import Enum

__all__ = ["State"]


class State(str, Enum):
    """Where a gap stands in one process. Every use comes with a reason."""

    APPLIED = "applied"
    PENDING = "pending"
    PARTIAL = "partial"
    OFF = "off"
    NOT_APPLICABLE = "not-applicable"
    VERSION_SKIPPED = "version-skipped"
    MISSING_TARGET = "missing-target"
    BROKEN_CONTRACT = "broken-contract"
    CONFLICT = "conflict"
    FAILED = "failed"
    LOST = "lost"
    BURIED = "buried"
    PROVIDED = "provided"
    LANDED = "landed"
    OBSOLETE = "obsolete"
    REVERTED = "reverted"

    def __str__(self) -> str:
        return self.value

    @property
    def is_fault(self) -> bool:
        """Whether a gap that was wanted is not in force, and nobody asked for that."""
        return self in _FAULTS


_FAULTS = frozenset(
    {
        State.MISSING_TARGET,
        State.BROKEN_CONTRACT,
        State.CONFLICT,
        State.FAILED,
        State.LOST,
        State.BURIED,
    }
)
