"""The commits at which upstream changed a verdict.

Every commit between the two revisions is evaluated, not one in two: a verdict may
change, change back and change again, and halving would then find any of the three.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ..errors import ConfigurationError
from .check import ORDER, worst
from .evaluation import Evaluation, Evaluator
from .history import History, Origins, is_shallow, read_history
from .hunks import relevant
from .sources.errors import BadSource
from .sources.git import commit_of, prefix_of
from .sources.progress import Progress
from .sources.revisions import revision_version
from .sources.snapshots import Commit, Store
from .traces import called
from .verdict import Verdict, VerdictKind
from .watched import Watched

__all__ = ["Answer", "Bisected", "BisectError", "Revision", "Step", "bisect"]


class BisectError(ConfigurationError):
    """What was asked cannot be found out in this clone."""


@dataclass(frozen=True)
class Revision:
    """A commit, and how the user calls it."""

    name: str
    commit: str

    def __str__(self) -> str:
        return f"{self.name} ({self.commit[:10]})"


@dataclass(frozen=True)
class Step:
    """A commit at which a verdict changes."""

    commit: Commit
    before: tuple[VerdictKind, ...]
    """In its parents; of each once."""
    after: Verdict
    stands: bool
    """Whether the verdict at the tip comes from here."""
    merged_by: Commit | None
    """The merge that brought it onto the tip's own line."""
    diff: tuple[str, ...]
    """Lines of what decided."""


@dataclass(frozen=True)
class Answer:
    """What became of one thing relied on."""

    watched: Watched
    good: Verdict
    bad: Verdict
    steps: tuple[Step, ...]
    """Those that stand first, each group from the oldest on."""
    reverse: tuple[Step, ...] = ()
    """Commits that only the good revision has and that made it as it is there."""
    notes: tuple[str, ...] = ()

    @property
    def standing(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.stands)


@dataclass(frozen=True)
class Bisected:
    package: str
    good: Revision
    bad: Revision
    commits: int
    """That were evaluated."""
    judged: int
    """Judgements that this took: the other commits had answers seen before."""
    seconds: float
    answers: tuple[Answer, ...]
    ends: tuple[tuple[VerdictKind, VerdictKind], ...]
    """Of each thing relied on: the verdicts at the good and at the bad revision."""
    notes: tuple[str, ...] = ()

    @property
    def unchanged(self) -> int:
        """Things relied on whose verdict is the same at both."""
        return sum(good == bad for good, bad in self.ends)


def bisect(
    watched: Sequence[Watched],
    clone: Path,
    good: str,
    bad: str,
    *,
    package: str,
    wanted: VerdictKind | None = None,
    progress: Progress,
) -> Bisected:
    """Find what changed the verdicts on what is relied on in one package.

    Args:
        wanted: look for changes to this verdict; by default for those to the gravest
            verdict at `bad`.

    Raises:
        BadSource: the clone lacks a revision or an object.
        BisectError: the revisions do not make a question.
    """
    begun = time.monotonic()
    first, last = (_revision(clone, name) for name in (good, bad))
    history = _history(clone, first, last)
    store, prefix = Store(clone), prefix_of(clone)
    entries = _meant(watched, clone, first, last)
    evaluator = Evaluator(store, package, prefix, first.commit, entries)
    for revision in (first, last):
        if not evaluator.snapshot(revision.commit).identity:
            raise BisectError(f"{clone} has no package {package} at {revision}")
    everything = dict.fromkeys([first.commit, *history.boundary, *history.parents])
    for done, commit in enumerate(everything, start=1):
        evaluator.at(commit)
        progress.count("evaluating commits", done, len(everything))
    search = _Search(store, evaluator, history, clone)
    lost = search.nowhere()
    if len(lost) == len(entries):
        raise BisectError(f"there is nothing to look for: {search.sentence(lost[0])}")
    chosen = search.chosen(wanted)
    answers = tuple(search.answer(number, wanted) for number in chosen)
    return Bisected(
        package,
        first,
        last,
        len(everything),
        evaluator.judged,
        time.monotonic() - begun,
        answers,
        tuple(search.ends(number) for number in range(len(entries))),
        (*search.notes(wanted, chosen), *map(search.sentence, lost)),
    )


def _revision(clone: Path, name: str) -> Revision:
    try:
        return Revision(name, commit_of(clone, name))
    except BadSource as error:
        said, _, hint = str(error).partition("; a shallow clone")
        if not hint or is_shallow(clone):
            raise
        raise BadSource(
            f"{said}; `git fetch --tags` there may bring it, and `git tag` lists those "
            "that it has"
        ) from None


def _history(clone: Path, good: Revision, bad: Revision) -> History:
    if good.commit == bad.commit:
        raise BisectError(f"{good.name} and {bad.name} are the same commit")
    history = read_history(clone, good.commit, bad.commit)
    if not history.parents:
        raise BisectError(
            f"{good.name} has all commits of {bad.name}: name the older one with "
            "--good and the newer one with --bad"
        )
    return history


def _meant(
    watched: Sequence[Watched], clone: Path, good: Revision, bad: Revision
) -> list[Watched]:
    """What is relied on of both revisions, where their tags tell a version."""
    versions = [revision_version(clone, r.name, r.commit) for r in (good, bad)]
    meant = [one for one in watched if all(one.is_for(v) for v in versions)]
    if not meant:
        raise BisectError(
            f"nothing of it is relied on in {good.name} and in {bad.name}: see the "
            "`versions` in the registry, and name two revisions within them"
        )
    return meant


class _Search:
    def __init__(
        self, store: Store, evaluator: Evaluator, history: History, clone: Path
    ) -> None:
        self._store = store
        self._evaluator = evaluator
        self._history = history
        self._clone = clone

    def _evaluation(self, number: int, commit: str) -> Evaluation:
        return self._evaluator.at(commit)[number]

    def _kind(self, number: int, commit: str) -> VerdictKind:
        return self._evaluation(number, commit).verdict.kind

    def ends(self, number: int) -> tuple[VerdictKind, VerdictKind]:
        history = self._history
        return self._kind(number, history.base), self._kind(number, history.tip)

    def nowhere(self) -> list[int]:
        """Positions of what no commit has."""
        numbers = range(len(self._evaluator.watched))
        return [n for n in numbers if self._is_lost(n) and not self._changes(n)]

    def _is_lost(self, number: int) -> bool:
        history = self._history
        if self._evaluator.watched[number].how == "removal_probe":
            return False
        verdicts = (
            self._evaluation(number, commit).verdict
            for commit in (history.base, history.tip)
        )
        return all(v.kind == "broken" and v.old is v.new is None for v in verdicts)

    def sentence(self, number: int) -> str:
        """What is so at the tip."""
        return self._called(number, self._history.tip).sentence

    def is_unchanged(self, number: int) -> bool:
        good, bad = self.ends(number)
        return good == bad

    def chosen(self, wanted: VerdictKind | None) -> list[int]:
        """Positions of what is relied on that there is something to say of."""
        numbers = range(len(self._evaluator.watched))
        if wanted is None:
            moved = [n for n in numbers if not self.is_unchanged(n)]
            gravest = worst(self.ends(n)[1] for n in moved)
            return [n for n in moved if self.ends(n)[1] == gravest]
        return [n for n in numbers if self._ever(n, wanted)]

    def _ever(self, number: int, wanted: VerdictKind) -> bool:
        """Whether the verdict becomes that one anywhere."""
        good, bad = self.ends(number)
        return (bad == wanted != good) or any(
            self._kind(number, commit) == wanted for commit in self._changes(number)
        )

    def _changes(self, number: int) -> tuple[str, ...]:
        return self._history.changes(partial(self._kind, number))

    def answer(self, number: int, wanted: VerdictKind | None) -> Answer:
        history = self._history
        good, bad = self.ends(number)
        target = wanted or bad
        origins = Origins((), False)
        if bad == target:
            origins = history.origins(lambda one: self._kind(number, one) == target)
        others = [c for c in self._changes(number) if c not in origins.commits]
        steps = [self._step(number, history, one, target) for one in origins.commits]
        steps = [replace(step, stands=True) for step in steps]
        steps += [self._step(number, history, one, target) for one in others]
        reverse: tuple[Step, ...] = ()
        if not origins.commits and bad == target and good != target:
            reverse = self._reverse(number)
        notes = self._notes(origins, bad == target, target)
        return Answer(
            self._evaluator.watched[number],
            self._called(number, history.base),
            self._called(number, history.tip),
            tuple(steps),
            reverse,
            notes,
        )

    def _reverse(self, number: int) -> tuple[Step, ...]:
        """What made it as it is at the good revision, on a line of its own."""
        history = read_history(self._clone, self._history.tip, self._history.base)
        if not history.parents:
            return ()
        kind = self._kind(number, history.tip)
        origins = history.origins(lambda one: self._kind(number, one) == kind)
        return tuple(self._step(number, history, one, kind) for one in origins.commits)

    def _step(
        self, number: int, history: History, commit: str, target: VerdictKind
    ) -> Step:
        mine = self._evaluation(number, commit)
        kinds = {p: self._kind(number, p) for p in history.parents[commit]}
        # The parent to compare with is one in which it was otherwise.
        other = next((p for p in kinds if kinds[p] != mine.verdict.kind), None)
        merge = history.merged_by(commit)
        return Step(
            self._store.commit(commit),
            tuple(sorted(set(kinds.values()), key=ORDER.index)),
            self._called(number, commit),
            False,
            self._store.commit(merge) if merge else None,
            self._diff(number, other, commit)
            if other and mine.verdict.kind == target
            else (),
        )

    def _diff(self, number: int, parent: str, commit: str) -> tuple[str, ...]:
        modules = [
            *self._evaluation(number, parent).modules,
            *self._evaluation(number, commit).modules,
        ]
        before = self._evaluator.tree(parent, parent[:10])
        after = self._evaluator.tree(commit, commit[:10])
        verdict = self._evaluation(number, commit).verdict
        found = relevant(
            self._evaluator.watched[number], verdict, before, after, modules
        )
        return tuple(found)

    def _called(self, number: int, commit: str) -> Verdict:
        verdict = self._evaluation(number, commit).verdict
        return called(verdict, self._history.base[:10], commit[:10])

    def _notes(
        self, origins: Origins, stands: bool, target: VerdictKind
    ) -> tuple[str, ...]:
        notes = []
        hidden = [one for one in origins.commits if one in self._history.shallow]
        if hidden:
            notes.append(
                f"the clone is shallow and ends at {hidden[0][:10]}: the change may be "
                "older; `git fetch --unshallow` brings the rest"
            )
        if not stands:
            notes.append(f"none of this stands: it is not {target} at the bad revision")
        elif not origins.commits:
            notes.append(
                f"it was {target} where the two revisions parted: only the good "
                "revision has what made it otherwise"
            )
        elif len(origins.commits) > 1:
            notes.append("each of these made it so by itself, on a line of its own")
        if origins.is_older and origins.commits:
            notes.append(f"on one line it was {target} before, too")
        return tuple(notes)

    def notes(
        self, wanted: VerdictKind | None, chosen: Sequence[int]
    ) -> tuple[str, ...]:
        """What a person should know where nothing else is said."""
        passing = [
            n
            for n in range(len(self._evaluator.watched))
            if n not in chosen and self.is_unchanged(n) and self._changes(n)
        ]
        if wanted is not None or not passing:
            return ()
        seen = worst(
            self._kind(n, commit) for n in passing for commit in self._changes(n)
        )
        return (
            f"{len(passing)} changed in between and back again, up to {seen}: "
            f"`--verdict {seen}` shows the commits",
        )
