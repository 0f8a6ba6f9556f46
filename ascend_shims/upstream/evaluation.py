"""Verdicts on what is relied on, at any commit, each distinct case judged once.

A judgement notes what it asked of a commit and what that answered. A commit that
gives the same answers gets the same verdict without anything being parsed. Asking
costs little, since answers come from git's names of folders and files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .check import check
from .committed import CommitTexts
from .parsed import Shelf
from .sources.snapshots import Snapshot, Store
from .traces import NEW, OLD
from .tree import Tree
from .verdict import Verdict
from .watched import Watched

__all__ = ["Evaluation", "Evaluator"]

_SHELF_BYTES = 8 << 20


@dataclass(frozen=True, eq=False)
class Evaluation:
    """A verdict, and what it was read from."""

    answers: Mapping[str, str]
    verdict: Verdict

    @property
    def modules(self) -> list[str]:
        """The modules whose text it was read from."""
        asked = (question.partition(" ") for question in self.answers)
        return [about for kind, _, about in asked if kind == "text"]


class Evaluator:
    """Judges commits of one package against one of them.

    Args:
        baseline: the commit to compare with.
        prefix: the part of the repository to look in.
    """

    def __init__(
        self,
        store: Store,
        package: str,
        prefix: str,
        baseline: str,
        watched: Sequence[Watched],
    ) -> None:
        self.watched = watched
        self.judged = 0
        """Judgements made so far; all other verdicts followed from one of these."""
        self._store = store
        self._package = package
        self._prefix = prefix
        self._shelf = Shelf(_SHELF_BYTES)
        self._old = Tree(CommitTexts(self.snapshot(baseline), OLD), self._shelf, OLD)
        self._known: list[list[Evaluation]] = [[] for _ in watched]
        self._at: dict[str, tuple[Evaluation, ...]] = {}
        self._roots: dict[str, str] = {}

    def snapshot(self, commit: str) -> Snapshot:
        """The package in a commit. Raises `BadSource`."""
        tree = self._store.commit(commit).tree
        return Snapshot(self._store, tree, self._package, self._prefix)

    def tree(self, commit: str, label: str) -> Tree:
        """The package in a commit, to be read at length."""
        return Tree(CommitTexts(self.snapshot(commit), label), self._shelf, label)

    def at(self, commit: str) -> tuple[Evaluation, ...]:
        """The verdicts at a commit, in the order of what is relied on."""
        root = self._roots.get(commit)
        if root is None:
            snapshot = self.snapshot(commit)
            root = self._roots[commit] = snapshot.identity
            if root not in self._at:
                self._at[root] = self._evaluated(CommitTexts(snapshot, NEW))
        return self._at[root]

    def _evaluated(self, texts: CommitTexts) -> tuple[Evaluation, ...]:
        tree, answers = Tree(texts, self._shelf, NEW), {}

        def answer(question: str) -> str | None:
            if question not in answers:
                answers[question] = tree.answer(question)
            return answers[question]

        found = []
        for one, known in zip(self.watched, self._known, strict=True):
            for place, evaluation in enumerate(known):
                if all(answer(q) == a for q, a in evaluation.answers.items()):
                    # The next commit most often is like this one.
                    known.insert(0, known.pop(place))
                    break
            else:
                known.insert(0, self._judge(one, texts))
            found.append(known[0])
        return tuple(found)

    def _judge(self, one: Watched, texts: CommitTexts) -> Evaluation:
        self.judged += 1
        new = Tree(texts, self._shelf, NEW)
        (finding,) = check([one], self._old, new)
        answers = new.asked()
        new.forget()
        assert answers is not None, "what git stores is always told the same"
        return Evaluation(answers, finding.verdict)
