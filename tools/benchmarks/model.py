"""What was measured, as values, and their JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

__all__ = ["Entry", "Limit", "Machine", "Ratio", "Results", "Row", "Spread"]


class Spread(msgspec.Struct, frozen=True):
    """Some samples: their middle, and the half of them around it."""

    median: float
    low: float
    """First quartile."""
    high: float
    """Third quartile."""
    least: float
    count: int


class Ratio(msgspec.Struct, frozen=True):
    """The middle of the ratios of the pairs."""

    value: float
    low: float
    """Of the 95 % confidence interval, by bootstrap over the pairs."""
    high: float


class Limit(msgspec.Struct, frozen=True):
    """What must hold, and whether it does."""

    says: str
    """`at most 60 ms`."""
    found: float
    met: bool


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison, or something that stands alone."""

    name: str
    what: str
    against: str = ""
    """Empty: nothing to compare with."""
    unit: str
    ours: Spread
    theirs: Spread | None = None
    ratio: Ratio | None = None
    """Ours to theirs."""
    better: Literal["less", "more"] = "less"
    limits: tuple[Limit, ...] = ()
    note: str = ""


class Machine(msgspec.Struct, frozen=True):
    """Where it was taken."""

    processor: str
    cores: int
    python: str
    versions: dict[str, str]


class Entry(msgspec.Struct, frozen=True):
    """The rows of one benchmark, all of one run."""

    benchmark: str
    title: str
    taken: str
    """The day."""
    quick: bool
    seconds: float
    machine: Machine
    rows: tuple[Row, ...]


class Results(msgspec.Struct, frozen=True):
    """All that is known; an entry a benchmark."""

    entries: tuple[Entry, ...] = ()
    schema: Literal[1] = 1

    @property
    def rows(self) -> dict[str, Row]:
        return {row.name: row for entry in self.entries for row in entry.rows}

    def over(self, earlier: Results, order: Sequence[str]) -> Results:
        """With the benchmarks of `earlier` that are not among these; one that `order`
        does not name is gone."""
        entries = {one.benchmark: one for one in (*earlier.entries, *self.entries)}
        return Results(tuple(entries[name] for name in order if name in entries))

    def to_json(self) -> str:
        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode() + "\n"

    @classmethod
    def read(cls, path: Path) -> Results:
        """Raises `SystemExit` for a file that is none of ours; empty if not there."""
        if not path.exists():
            return cls()
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except msgspec.DecodeError as error:
            raise SystemExit(
                f"{path}: {error}; write it anew with tools/bench --json FILE"
            ) from error
