"""What one rank says of itself, as a value and as text for the others."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterable, Mapping

import msgspec

from ..states import State

__all__ = ["GapTold", "RankTold", "tell"]

_IN_FORCE = frozenset({State.APPLIED, State.PENDING, State.PARTIAL})
"""How far a gap has got differs with what a process has imported so far."""


class GapTold(msgspec.Struct, frozen=True):
    """One gap on one rank."""

    id: str
    state: State
    reason: str
    version: str | None
    """Digits of the entry and the code in force; None where nothing is."""

    @property
    def standing(self) -> str:
        """What has to be the same on all ranks, in words."""
        if self.state in _IN_FORCE:
            return f"in force ({self.version})" if self.version else "not in force"
        if self.state.is_fault or self.state is State.PROVIDED:
            return self.state.value
        return "off"


class RankTold(msgspec.Struct, frozen=True):
    """One rank."""

    rank: int
    plan: str | None = None
    """Digest of its plan; None where no patch is in force."""
    where: str = ""
    """Its process and machine."""
    gaps: tuple[GapTold, ...] = ()

    def as_text(self) -> str:
        return json.dumps(msgspec.to_builtins(self))

    @classmethod
    def from_text(cls, rank: int, text: str) -> RankTold:
        """What the rank `rank` has told."""
        told = json.loads(text)
        gaps = (GapTold(**{**g, "state": State(g["state"])}) for g in told["gaps"])
        return cls(rank, told["plan"], told["where"], tuple(gaps))


def tell(
    rank: int,
    plan: str,
    states: Iterable[tuple[str, State, str]],
    versions: Mapping[str, str],
) -> RankTold:
    """What this process has to say: the id, state and reason of each gap, and the
    versions of those that are in force."""
    gaps = (GapTold(g, state, why, versions.get(g)) for g, state, why in states)
    where = f"process {os.getpid()} on {socket.gethostname()}"
    return RankTold(rank, plan, where, tuple(gaps))
