"""From checked releases, a plan and running processes to what the page shows."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..processes.client import Answer
from ..registry.model import Companion, Gap, Registry
from ..upstream.changes import Change as Upstreams
from ..upstream.changes import changes
from ..upstream.check import ORDER, Checked
from ..upstream.check import Finding as Found
from ..upstream.facts.symbol import find
from ..upstream.run import Run
from ..upstream.texts import Texts
from ..upstream.tree import Tree
from ..upstream.watched import Watched
from .entries import entry
from .model import (
    SCHEMA,
    Cell,
    Change,
    Finding,
    Hunk,
    Mark,
    Page,
    Process,
    Release,
    Spot,
    Standing,
    Thing,
)

__all__ = ["Asked", "gather"]

_SAME = ("identical", "cosmetic")


@dataclass(frozen=True)
class Asked:
    """What a page is to show, besides what upstream's releases say."""

    registry: Registry
    package: str
    releases: Sequence[tuple[str, str]]
    """Version and source of each, oldest first."""
    report: dict[str, Any] | None
    """Of a new process here, schema 1; None where there can be none."""
    answers: Sequence[Answer] = ()
    where: str = ""
    made: str = ""
    toolkit: str = ""
    notes: Sequence[str] = ()


def gather(run: Run, asked: Asked) -> Page:
    """Check the releases, and put together all that the page shows.

    Raises `SourceUnavailable` or `NoBaselineError`.
    """
    checked = run.check_all([spec for _, spec in asked.releases], asked.package)
    watched = [one for one in run.watched if one.package == asked.package]
    history = _History(watched)
    for (_, spec), one in zip(asked.releases, checked, strict=True):
        source = run.releases[spec]
        history.add(Tree(Texts(source)), source.version, one)
    rows = dict.fromkeys(
        [gap.id for gap in asked.registry.gaps] + [one.gap for one in watched]
    )
    reported = {gap["id"]: gap for gap in (asked.report or {}).get("gaps", ())}
    return Page(
        schema=SCHEMA,
        made=asked.made,
        toolkit=asked.toolkit,
        package=asked.package,
        where=asked.where,
        notes=tuple(asked.notes),
        releases=tuple(
            Release(version, one.baseline, (*one.notes, *one.problems))
            for (version, _), one in zip(asked.releases, checked, strict=True)
        ),
        entries=tuple(
            entry(
                asked.registry,
                row,
                reported.get(row),
                tuple(_cells(row, checked)),
                history.of(row, _targets(asked.registry, row)),
            )
            for row in rows
        ),
        changes=tuple(history.changes),
        processes=tuple(_process(one) for one in asked.answers),
    )


# Cells ----------------------------------------------------------------------------


def _cells(row: str, checked: Iterable[Checked]) -> Iterator[Cell]:
    last, is_first = None, True
    for one in checked:
        verdict = one.worst_of(row)
        mine = [found for found in one.findings if found.watched.gap == row]
        mine.sort(key=lambda found: ORDER.index(found.verdict.kind))
        kinds = [found.verdict.kind for found in mine]
        yield Cell(
            verdict=verdict,
            sentence=_sentence(mine, one),
            counts={kind: kinds.count(kind) for kind in ORDER if kind in kinds},
            findings=tuple(_finding(f) for f in mine if f.verdict.kind not in _SAME),
            changed=not is_first and verdict is not None and verdict != last,
        )
        last, is_first = verdict, False


def _sentence(mine: Sequence[Found], checked: Checked) -> str:
    """What decides the cell, in words."""
    if not mine:
        return f"Not for {checked.release}, or it relies on nothing there."
    worst = mine[0].verdict
    many = len(mine)
    things = "The one thing" if many == 1 else f"All {many} things"
    if worst.kind == "identical":
        verb = "is" if many == 1 else "are"
        return f"{things} it relies on {verb} as in {checked.baseline}."
    if worst.kind == "cosmetic":
        return (
            f"Against {checked.baseline} nothing differs but comments, docstrings, "
            "formatting or the spelling of annotations."
        )
    return f"{worst.sentence}."


def _finding(found: Found) -> Finding:
    verdict = found.verdict
    return Finding(
        symbol=verdict.symbol,
        how=verdict.how,
        verdict=verdict.kind,
        sentence=f"{verdict.sentence}.",
        moved_to=verdict.moved_to,
        place=str(verdict.new) if verdict.new else None,
    )


# Things, release by release -------------------------------------------------------

_Place = tuple[str, str, int]
"""Candidate, file and line."""


@dataclass
class _History:
    """What became of each thing that is relied on, one release after the other."""

    watched: Sequence[Watched]
    changes: list[Change] = field(default_factory=list)
    _spots: list[list[Spot | None]] = field(init=False)
    _places: list[_Place | None] = field(init=False)
    _numbers: dict[Change, int] = field(default_factory=dict)
    _last: Tree | None = None

    def __post_init__(self) -> None:
        self._spots = [[] for _ in self.watched]
        self._places = [None for _ in self.watched]

    def add(self, tree: Tree, version: str | None, checked: Checked) -> None:
        """The next release: what is there, and what changed since the last one."""
        made = self._made(tree, checked)
        for at, one in enumerate(self.watched):
            was, now = self._places[at], _where(one, tree)
            self._places[at] = now
            is_meant = one.how != "removal_probe" and one.is_for(version)
            change = made.get((one.gap, one.key))
            mark = _mark(was, now, change, is_first=self._last is None)
            place = f"{now[1]}:{now[2]}" if now else None
            spot = Spot(mark, now and now[0], place, change)
            self._spots[at].append(spot if is_meant else None)
        if self._last is not None:
            self._last.forget()
        self._last = tree

    def of(self, row: str, targets: Container[tuple[str, ...]]) -> tuple[Thing, ...]:
        """What a row relies on, the targets of its patches first."""
        found = [
            Thing(one.candidates, one.how, one.candidates in targets, tuple(spots))
            for one, spots in zip(self.watched, self._spots, strict=True)
            if one.gap == row and any(spots)
        ]
        return tuple(sorted(found, key=lambda thing: not thing.is_target))

    def _made(self, tree: Tree, checked: Checked) -> dict[tuple[str, str], int]:
        """Changes since the last release, by what relies on it."""
        if self._last is None:
            return {}
        pairs = [(one, self._last, tree) for one in self.watched]
        return {
            (one.finding.watched.gap, one.finding.watched.key): self._number(one)
            for one in changes(pairs, checked.findings)
        }

    def _number(self, change: Upstreams) -> int:
        """Of a change, which many gaps may have in common."""
        made = _change(change)
        if made not in self._numbers:
            self._numbers[made] = len(self.changes)
            self.changes.append(made)
        return self._numbers[made]


def _mark(
    was: _Place | None, now: _Place | None, change: int | None, *, is_first: bool
) -> Mark:
    if now is None:
        return "absent" if was is None else "gone"
    if is_first:
        return "first"
    if was is None:
        return "new"
    if change is not None:
        return "changed"
    return "same" if was[:2] == now[:2] else "moved"


def _where(one: Watched, tree: Tree) -> _Place | None:
    for candidate in one.candidates if one.how != "removal_probe" else ():
        symbol = find(tree, candidate)
        if symbol is not None:
            return candidate, symbol.path, symbol.line
    return None


def _targets(registry: Registry, row: str) -> set[tuple[str, ...]]:
    entries: tuple[Gap | Companion, ...] = (*registry.gaps, *registry.companions)
    return {p.candidates for one in entries if one.id == row for p in one.patches}


def _change(change: Upstreams) -> Change:
    lines = tuple(change.diff)
    ours = change.ours
    body = lines[2:]
    return Change(
        diff=lines,
        added=sum(line.startswith("+") for line in body),
        removed=sum(line.startswith("-") for line in body),
        # The folder is of the machine that made the page.
        ours=f"{ours.path.rpartition('/')[2]}:{ours.line}" if ours else None,
        hunks=tuple(
            Hunk(
                hunk.standing,
                hunk.old,
                hunk.new,
                hunk.ours,
                ours.line + hunk.line if ours and hunk.ours else None,
            )
            for hunk in change.hunks
        ),
    )


# Processes ------------------------------------------------------------------------


def _process(answer: Answer) -> Process:
    report = answer.report
    if report is None:
        return Process(answer.pid, "", "", answer.problem, {})
    states = {gap["id"]: Standing.of(gap) for gap in report["gaps"]}
    return Process(
        answer.pid, str(report["process"]["role"]), report["plan"], "", states
    )
