"""What a release does to one thing we rely on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

__all__ = ["Breakage", "Location", "Verdict", "VerdictKind"]

VerdictKind = Literal[
    "identical", "cosmetic", "compatible", "review", "broken", "fixed-upstream"
]

Breakage = Literal[
    "removed",
    "moved",
    "renamed",
    "attribute-removed",
    "required-parameter-added",
    "optional-parameter-passed",
    "parameter-removed",
    "parameter-renamed",
    "parameters-reordered",
    "kind-changed",
    "fields-changed",
    "base-changed",
    "not-looked-up",
    "not-called",
    "returns-changed",
    "body-changed",
    "unreadable",
    # Of a scan: what nobody asks of a patch.
    "exists-nowhere",
    "gate-never-true",
    "reason-gone",
    "contested",
    "never-restored",
    "bound-by-name",
]


@dataclass(frozen=True)
class Location:
    """A place in one release's source."""

    release: str
    symbol: str
    """`module:Qual.name` where it is defined."""
    path: str
    line: int
    """1-based; 0 where it is not known."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Verdict:
    kind: VerdictKind
    symbol: str
    how: str
    breakage: Breakage | None
    """What changed; only of `review` and `broken`."""
    sentence: str
    """For a person, complete in itself."""
    old: Location | None
    new: Location | None
    moved_to: str | None = None
    """`module:Qual.name` of what took its place, where there is one."""
    confidence: float = 0.0
    """That `moved_to` is right, 0 to 1."""
    evidence: tuple[str, ...] = ()
    """Call sites and other places that decided it, `path:line`."""

    @property
    def fingerprint(self) -> str:
        """Stays the same while the same thing is wrong in the same way.

        Neither lines nor releases are in it: a finding keeps its identity across
        reformatting and across the next release.
        """
        parts: list[str] = [self.symbol, self.how, self.kind]
        parts += [self.breakage or "", self.moved_to or ""]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
