"""What a doctor says of one thing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Verdict", "by_urgency", "notice", "ok", "problem"]

Verdict = Literal["problem", "notice", "ok"]

_ORDER: tuple[Verdict, ...] = ("problem", "notice", "ok")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    code: str
    """Short, and the same whatever the sentence says."""
    area: str
    """What it is about: `toolkit`, `vllm`, `switches`, …"""
    verdict: Verdict
    seen: str
    """One sentence."""
    fix: str = ""
    """One sentence more, for all but `ok`."""


def ok(area: str, code: str, seen: str) -> Finding:
    return Finding(code, area, "ok", seen)


def notice(area: str, code: str, seen: str, fix: str) -> Finding:
    return Finding(code, area, "notice", seen, fix)


def problem(area: str, code: str, seen: str, fix: str) -> Finding:
    return Finding(code, area, "problem", seen, fix)


def by_urgency(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Problems first; in the order of the areas otherwise."""
    return tuple(sorted(findings, key=lambda one: _ORDER.index(one.verdict)))
