"""Rows from samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .figures import ratio_of, spread
from .model import Limit, Row

__all__ = ["Benchmark", "Effort", "at_least", "at_most", "row"]


@dataclass(frozen=True)
class Effort:
    """How often things are done."""

    quick: bool

    def times(self, count: int, quick: int) -> int:
        return quick if self.quick else count


@dataclass(frozen=True)
class Benchmark:
    """Something that `tools/bench` measures."""

    name: str
    title: str
    measure: Callable[[Effort], Sequence[Row]]


def at_most(bound: float, unit: str, found: float) -> Limit:
    return Limit(
        f"at most {bound:g} {unit}".rstrip(), float(f"{found:.4g}"), found <= bound
    )


def at_least(bound: float, unit: str, found: float) -> Limit:
    return Limit(
        f"at least {bound:g} {unit}".rstrip(), float(f"{found:.4g}"), found >= bound
    )


def row(
    name: str,
    what: str,
    against: str,
    unit: str,
    samples: Mapping[str, Sequence[float]],
    ours: str,
    theirs: str,
    *limits: Limit,
    note: str = "",
) -> Row:
    """Compares two of the things that were measured in turns."""
    return Row(
        name=name,
        what=what,
        against=against,
        unit=unit,
        ours=spread(samples[ours]),
        theirs=spread(samples[theirs]),
        ratio=ratio_of(samples[ours], samples[theirs]),
        limits=limits,
        note=note,
    )
