"""What got worse since the results that are kept in the repository."""

from __future__ import annotations

from dataclasses import dataclass

from .model import Results, Row
from .wording import number

__all__ = ["TOLERANCE", "Regression", "regressions", "unmeasured"]

TOLERANCE = 0.10


@dataclass(frozen=True)
class Regression:
    """A row whose ratio is worse than it was."""

    name: str
    share: float
    """0.11: by eleven percent."""
    text: str


def _share(now: Row, before: Row) -> float | None:
    if now.ratio is None or before.ratio is None:
        return None
    new, old = now.ratio.value, before.ratio.value
    return new / old - 1 if now.better == "less" else old / new - 1


def _told(now: Row, before: Row, share: float) -> str:
    assert now.ratio is not None
    assert before.ratio is not None
    new, old = now.ratio, before.ratio
    text = (
        f"{now.name}: {100 * share:.0f} % worse; {number(new.value)} x "
        f"({number(new.low)} to {number(new.high)}), was {number(old.value)} x"
    )
    if now.ours.count > 1 and new.low <= old.value <= new.high:
        text += "; not sure: what it was is inside the interval"
    return text


def regressions(now: Results, before: Results) -> list[Regression]:
    """Worst first; what was not measured now is left out."""
    found = []
    for name, row in now.rows.items():
        share = _share(row, before.rows[name]) if name in before.rows else None
        if share is not None and share > TOLERANCE:
            found.append(Regression(name, share, _told(row, before.rows[name], share)))
    return sorted(found, key=lambda one: -one.share)


def unmeasured(now: Results, before: Results) -> list[str]:
    """Rows that a benchmark gave before and does not give any more.

    A quick run leaves out what takes minutes, so nothing is missed there.
    """
    whole = {entry.benchmark for entry in now.entries if not entry.quick}
    return [
        row.name
        for entry in before.entries
        if entry.benchmark in whole
        for row in entry.rows
        if row.name not in now.rows
    ]
