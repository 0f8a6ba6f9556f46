"""Which commits lie between two revisions, and which of them made a thing so.

Only who descends from whom counts. Dates in commits say when somebody wrote or
applied them, in whatever order, and nothing here reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .sources.git import git

__all__ = ["History", "Origins", "is_shallow", "read_history"]


@dataclass(frozen=True)
class Origins:
    """Where what is so at the tip came from."""

    commits: tuple[str, ...]
    """It is so in them and was so in none of their parents; the oldest first."""
    is_older: bool
    """It is also inherited from commits that the base has."""


@dataclass(frozen=True)
class History:
    """The commits that `tip` has and `base` lacks."""

    tip: str
    base: str
    parents: Mapping[str, tuple[str, ...]]
    """Of each of the commits; children come before their parents."""
    shallow: frozenset[str] = frozenset()
    """Those whose parents a shallow clone hides."""

    @property
    def boundary(self) -> tuple[str, ...]:
        """Parents that the base has as well."""
        outside = (p for ps in self.parents.values() for p in ps)
        return tuple(dict.fromkeys(p for p in outside if p not in self.parents))

    @cached_property
    def _age(self) -> Mapping[str, int]:
        """The higher the older, as far as one descends from the other."""
        return {commit: place for place, commit in enumerate(self.parents)}

    def oldest_first(self, commits: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(commits, key=lambda one: -self._age[one]))

    def origins(self, is_so: Callable[[str], bool]) -> Origins:
        """Which commits made something so that is so at the tip.

        Followed from the tip through every parent in which it is so, into merged
        branches too: a merge that took it over did not make it. Where it is so on
        several lines of history, each has an origin of its own. A merge that took it
        from a line on which it was so before all of these commits counts as one if
        nothing else does: another parent of it knew better.
        """
        found, choosing, older = [], [], False
        seen, left = {self.tip}, [self.tip]
        while left:
            commit = left.pop()
            parents = self.parents[commit]
            carrying = [parent for parent in parents if is_so(parent)]
            if not carrying:
                found.append(commit)
            elif len(carrying) < len(parents):
                choosing.append(commit)
            for parent in carrying:
                if parent not in self.parents:
                    older = True
                elif parent not in seen:
                    seen.add(parent)
                    left.append(parent)
        if not found:
            # The oldest of the merges is the one through which it came in.
            found = list(self.oldest_first(choosing)[:1])
        return Origins(self.oldest_first(found), older)

    def changes(self, state: Callable[[str], object]) -> tuple[str, ...]:
        """Commits in which something is as in none of their parents."""
        return self.oldest_first(
            commit
            for commit, parents in self.parents.items()
            if parents and all(state(parent) != state(commit) for parent in parents)
        )

    def merged_by(self, commit: str) -> str | None:
        """The merge that brought a commit onto the tip's own line, its first parents.

        None where the commit is on that line.
        """
        descends = {commit}
        for one in self.oldest_first(self.parents):
            if any(parent in descends for parent in self.parents[one]):
                descends.add(one)
        brought, at = None, self.tip
        while at in descends and at != commit:
            brought = at
            parents = self.parents[at]
            if not parents:
                break
            at = parents[0]
        return None if at == commit else brought


def read_history(clone: Path, base: str, tip: str) -> History:
    """Raises `BadSource` where git cannot tell."""
    listing = git(clone, "rev-list", "--topo-order", "--parents", tip, f"^{base}")
    parents = {}
    for line in listing.decode().splitlines():
        commit, *others = line.split()
        parents[commit] = tuple(others)
    return History(tip, base, parents, _shallow(clone))


def is_shallow(clone: Path) -> bool:
    """Whether a clone lacks history that its origin has. Raises `BadSource`."""
    return bool(_shallow(clone))


def _shallow(clone: Path) -> frozenset[str]:
    place = git(clone, "rev-parse", "--git-path", "shallow").decode().rstrip("\n")
    try:
        return frozenset(_lines(clone / place))
    except FileNotFoundError:
        return frozenset()


def _lines(file: Path) -> Sequence[str]:
    return file.read_text("ascii").split()
