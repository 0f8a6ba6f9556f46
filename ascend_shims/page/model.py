"""What the page shows, as frozen values; their JSON is what its script reads."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..states import State

__all__ = [
    "SCHEMA",
    "Cell",
    "Change",
    "Entry",
    "Finding",
    "Hunk",
    "Page",
    "Patch",
    "Process",
    "Release",
    "Sign",
    "Spot",
    "Standing",
    "Thing",
]

SCHEMA = 1


class Finding(msgspec.Struct, frozen=True):
    """One verdict on one thing that is relied on."""

    symbol: str
    how: str
    verdict: str
    sentence: str
    moved_to: str | None
    place: str | None
    """`path:line` in the release; None where it is not there."""


class Cell(msgspec.Struct, frozen=True):
    """A gap at a release."""

    verdict: str | None
    """The gravest; None where the gap is not for the release or relies on nothing."""
    sentence: str
    counts: dict[str, int]
    """Verdict to number of things, gravest first."""
    findings: tuple[Finding, ...]
    """Gravest first, without what is the same."""
    changed: bool
    """Another verdict than at the release before."""


class Hunk(msgspec.Struct, frozen=True):
    """Upstream's change of a body that we carry, seen from ours."""

    standing: Literal["to-port", "ported", "by-hand"]
    old: tuple[str, ...]
    new: tuple[str, ...]
    ours: tuple[str, ...]
    line: int | None


class Change(msgspec.Struct, frozen=True):
    """Upstream's own change of one thing from a release to the next."""

    diff: tuple[str, ...]
    added: int
    removed: int
    ours: str | None
    """`module.py:line` of our version of the body."""
    hunks: tuple[Hunk, ...]


Mark = Literal["first", "same", "changed", "moved", "new", "gone", "absent"]


class Spot(msgspec.Struct, frozen=True):
    """One thing at one release, beside the release before."""

    mark: Mark
    """`first`: there is no release before. `moved`: the same text elsewhere."""
    symbol: str | None
    """The candidate that is meant there."""
    place: str | None
    change: int | None
    """Index into the page's changes."""


class Thing(msgspec.Struct, frozen=True):
    """One thing that a gap relies on, release by release."""

    candidates: tuple[str, ...]
    how: str
    is_target: bool
    spots: tuple[Spot | None, ...]
    """None at a release that it is not for."""


class Standing(msgspec.Struct, frozen=True):
    """A state and its reason."""

    state: str
    reason: str
    fault: bool
    """A gap that was wanted is not in force, and nobody asked for that."""

    @classmethod
    def of(cls, reported: dict[str, Any]) -> Standing:
        """Of a gap or patch in a report, schema 1."""
        state = State(reported["state"])
        return cls(state.value, str(reported["reason"]), state.is_fault)


class Patch(msgspec.Struct, frozen=True):
    """One edit of an upstream binding, and where it stands in a new process here."""

    candidates: tuple[str, ...]
    kind: str
    replacement: str
    gate: str
    notes: tuple[str, ...]
    chosen: str | None
    """The candidate that was chosen in this environment, of several."""
    here: Standing | None


class Sign(msgspec.Struct, frozen=True):
    """One sign of a removal probe."""

    says: str
    package: str
    conditions: tuple[str, ...]


class Entry(msgspec.Struct, frozen=True):
    """A row of the heat map: a gap, a companion, or what else is watched."""

    id: str
    sort: Literal["gap", "companion", "watch"]
    title: str
    status: str
    kind: str
    why: str
    remove_when: str
    facts: tuple[tuple[str, tuple[str, ...]], ...]
    """What else the registry says, each with its name and one or more lines."""
    patches: tuple[Patch, ...]
    probe: tuple[Sign, ...]
    here: Standing | None
    cells: tuple[Cell, ...]
    things: tuple[Thing, ...]


class Release(msgspec.Struct, frozen=True):
    version: str
    baseline: str
    """What it was compared with."""
    notes: tuple[str, ...]


class Process(msgspec.Struct, frozen=True):
    """A running process that carries shims."""

    pid: int
    role: str
    plan: str
    problem: str
    """Why it says nothing; empty where it does."""
    states: dict[str, Standing]


class Page(msgspec.Struct, frozen=True):
    schema: int
    made: str
    """When, in UTC: all that differs between two pages of the same input."""
    toolkit: str
    package: str
    where: str
    """The environment that new processes are planned for, in one line."""
    notes: tuple[str, ...]
    releases: tuple[Release, ...]
    entries: tuple[Entry, ...]
    changes: tuple[Change, ...]
    processes: tuple[Process, ...]
