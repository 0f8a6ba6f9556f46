"""`shims drift`, `matrix`, `report`, `diff`, `scan`, `bisect`."""

from __future__ import annotations

from typing import Literal

import msgspec

from ...page.model import Page
from ...scan.found import Form, Gate, QuestionKind
from ...upstream.verdict import Breakage, Location, VerdictKind
from .common import Costs, One

__all__ = ["Bisected", "Compared", "Drift", "Matrix", "Page", "Scan", "Unpatched"]


class Drifted(msgspec.Struct):
    """What a release does to one thing that a gap relies on."""

    gap: str
    how: str
    symbol: str
    verdict: VerdictKind
    breakage: Breakage | None
    sentence: str
    old: Location | None
    new: Location | None
    moved_to: str | None
    confidence: float
    evidence: list[str]
    file: str
    line: int
    fingerprint: str


class Drift(msgspec.Struct):
    """`shims drift --json`."""

    schema: One
    baseline: str
    release: str
    findings: list[Drifted]
    problems: list[str]
    notes: list[str]
    costs: Costs


class Matrix(msgspec.Struct):
    """`shims matrix --json`: the gravest verdict of each gap at each release."""

    schema: One
    package: str
    releases: list[str]
    gaps: dict[str, dict[str, VerdictKind | None]]
    costs: Costs


class Probe(msgspec.Struct):
    verdict: VerdictKind
    sentence: str


class Side(msgspec.Struct):
    place: str | None
    text: str | None


class Ours(msgspec.Struct):
    name: str
    path: str
    line: int
    text: str


class Hunk(msgspec.Struct):
    standing: Literal["to-port", "ported", "by-hand"]
    old: list[str]
    new: list[str]
    ours: list[str]
    line: int | None


class Change(msgspec.Struct):
    symbol: str
    how: str
    verdict: VerdictKind
    breakage: Breakage | None
    sentence: str
    moved_to: str | None
    old: Side
    new: Side
    diff: list[str]
    ours: Ours | None
    hunks: list[Hunk]


class Compared(msgspec.Struct):
    """`shims diff GAP --json`, of a gap that relies on something."""

    schema: One
    gap: str
    # `from` is a word of Python's.
    from_: str = msgspec.field(name="from")
    to: str
    probe: list[Probe]
    changes: list[Change]


class Unpatched(msgspec.Struct):
    """`shims diff GAP --json`, of a gap that relies on nothing."""

    schema: One
    gap: str
    changes: list[Change]
    unpatched: str


class Skipped(msgspec.Struct):
    file: str
    reason: str


class Judged(msgspec.Struct):
    release: str
    verdict: VerdictKind
    breakage: Breakage | None
    sentence: str
    new: str | None
    moved_to: str | None
    confidence: float
    evidence: list[str]
    fingerprint: str


class Found(msgspec.Struct):
    """A statement that patches something, or relies on something private."""

    file: str
    line: int
    form: Form
    is_patch: bool
    how: str
    target: str | None
    candidates: list[str]
    unresolved: str | None
    gates: list[Gate]
    versions: dict[str, str]
    undone_at: int
    within: str
    replacement: str
    comment: str
    adds: bool
    verdicts: list[Judged | None]


class Question(msgspec.Struct):
    kind: QuestionKind
    file: str
    line: int
    target: str | None
    sentence: str
    places: list[str]


class Unplaced(msgspec.Struct):
    file: str
    line: int
    target: str | None


class Scan(msgspec.Struct):
    """`shims scan PATH --json`."""

    schema: One
    files: int
    tests_left_out: int
    skipped: list[Skipped]
    package: str | None
    baseline: str | None
    releases: list[str]
    found: list[Found]
    questions: list[Question]
    problems: list[str]
    unplaced: list[Unplaced]
    costs: list[Costs]


class Revision(msgspec.Struct):
    revision: str
    commit: str


class Standing(msgspec.Struct):
    verdict: VerdictKind
    breakage: Breakage | None
    sentence: str
    moved_to: str | None


class Commit(msgspec.Struct):
    commit: str
    subject: str
    author: str
    authored: str | None
    committed: str | None


class Step(msgspec.Struct):
    """A commit at which a verdict changes."""

    commit: str
    subject: str
    author: str
    authored: str | None
    committed: str | None
    before: list[str]
    after: Standing
    merged_by: Commit | None
    diff: list[str]


class Moved(msgspec.Struct):
    gap: str
    symbol: str
    how: str
    good: Standing
    bad: Standing
    commits: list[Step]
    others: list[Step]
    only_in_good: list[Step]
    notes: list[str]


class Effort(msgspec.Struct):
    commits: int
    judged: int
    seconds: float


class Bisected(msgspec.Struct):
    """`shims bisect --json`."""

    schema: One
    package: str
    good: Revision
    bad: Revision
    findings: list[Moved]
    unchanged: int
    notes: list[str]
    costs: Effort
