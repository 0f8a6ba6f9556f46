"""What one release does to everything that is relied on.

watched x baseline tree x release tree -> findings
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .compare import judge
from .contract import Reliance
from .facts.symbol import find
from .lock import Lock
from .tree import Tree
from .verdict import Verdict, VerdictKind
from .watched import Watched

__all__ = ["Checked", "Finding", "check", "paths_needed", "worst"]

ORDER: tuple[VerdictKind, ...] = (
    "broken",
    "review",
    "fixed-upstream",
    "compatible",
    "cosmetic",
    "identical",
)
"""Worst first."""


@dataclass(frozen=True)
class Finding:
    """A verdict, and the entry that relies on it."""

    watched: Watched
    verdict: Verdict

    @property
    def fingerprint(self) -> str:
        return f"{self.watched.gap}-{self.verdict.fingerprint}"


@dataclass(frozen=True)
class Checked:
    """The result of checking one release."""

    baseline: str
    release: str
    findings: tuple[Finding, ...]
    problems: tuple[str, ...] = ()
    """Files that could not be used, `path: reason`."""
    costs: dict[str, Any] = field(default_factory=dict)
    """`bytes` fetched, `requests`, `seconds`."""

    def worst_of(self, gap: str) -> VerdictKind | None:
        return worst(f.verdict.kind for f in self.findings if f.watched.gap == gap)


def worst(kinds: Iterable[VerdictKind]) -> VerdictKind | None:
    """The gravest of some verdicts; None of none."""
    return min(kinds, key=ORDER.index, default=None)


def _chosen(watched: Watched, tree: Tree) -> str | None:
    return next((s for s in watched.candidates if find(tree, s) is not None), None)


def _judged(
    watched: Watched, old: Tree, new: Tree, hints: Callable[[str], Sequence[str] | None]
) -> Verdict:
    before = _chosen(watched, old) or watched.candidates[-1]
    after = _chosen(watched, new)
    if after is None or after == before:
        reliance = Reliance(before, watched.how)
        return judge(reliance, old, new, hints=hints(before))
    # Upstream moved it, and the registry knows where to: the new place is judged
    # by itself, against what it is now.
    settled = judge(Reliance(after, watched.how), new, new, hints=hints(before))
    sentence = f"`{before}` is `{after}` there, which the registry lists as a candidate"
    if settled.kind in ("broken", "review"):
        return settled
    return Verdict(
        "compatible",
        before,
        watched.how,
        None,
        sentence,
        settled.old,
        settled.new,
        after,
    )


def check(
    watched: Iterable[Watched],
    old: Tree,
    new: Tree,
    *,
    version: str | None = None,
    hints: Callable[[str], Sequence[str] | None] = lambda _: None,
) -> tuple[Finding, ...]:
    """Judge everything that is relied on and meant for the release `version`.

    `hints` gives, for a symbol, the modules known to call or import it.
    """
    return tuple(
        Finding(one, _judged(one, old, new, hints))
        for one in watched
        if one.is_for(version)
    )


def paths_needed(watched: Iterable[Watched], lock: Lock, baseline: str) -> list[str]:
    """Files that a check is bound to read: what it read of the baseline, and the
    modules of all candidates."""
    modules = {s.partition(":")[0]: None for one in watched for s in one.candidates}
    known = lock.baselines.get(baseline)
    modules.update(dict.fromkeys(known.modules if known else ()))
    stems = [name.replace(".", "/") for name in modules]
    return [f"{stem}{end}" for stem in stems for end in (".py", "/__init__.py")]
