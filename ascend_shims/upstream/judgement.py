"""Judges what is relied on, or finds that the same was judged before."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from .check import Finding, Recorded, check
from .facts.symbol import Symbol, find, split
from .parsed import Shelf
from .reach import REACH_BYTES, reach
from .texts import Problem, Texts
from .traces import NEW, OLD, Trace, Traces, about
from .tree import Tree
from .verdict import Verdict
from .watched import Watched

__all__ = ["Baseline", "Judged", "judged"]

Fetch = Callable[[Sequence[str]], None]


@dataclass
class Baseline:
    """A release to compare with, and what was found out by comparing with it."""

    texts: Texts
    tree: Tree
    traces: Traces
    shelf: Shelf
    recorded: Recorded
    known: Sequence[str]
    """The modules that a check reads anyway."""
    probes: Mapping[str, str]
    """What the lock says that each removal probe says of it."""

    @classmethod
    def of(
        cls,
        texts: Texts,
        shelf: Shelf,
        traces: Traces,
        recorded: Recorded,
        known: Sequence[str],
        probes: Mapping[str, str] | None = None,
    ) -> Baseline:
        tree = Tree(texts, shelf, OLD)
        return cls(texts, tree, traces, shelf, recorded, known, probes or {})


@dataclass(frozen=True)
class Judged:
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    """Files of the release that could not be parsed."""


def judged(
    watched: Sequence[Watched],
    baseline: Baseline,
    texts: Texts,
    version: str | None,
    fetch: Fetch | None,
) -> Judged:
    """What a release does to everything that is relied on and meant for it.

    Args:
        texts: the release.
        fetch: brings modules of both releases here. With it, what is gone is looked
            for near where it was; without it, in the whole package.
    """
    search = None if fetch is None else _Search(watched, baseline, texts, fetch)
    findings: dict[int, Finding] = {}
    problems: dict[str, Problem] = {}
    keys = [f"{one.gap} {one.key}" for one in watched]
    everything = about(keys, ())
    for numbers in _groups(watched):
        group = [watched[number] for number in numbers]
        mine = [keys[number] for number in numbers]
        trace = _trace(group, mine, everything, baseline, texts, version, search)
        verdicts = trace.verdicts_for(baseline.texts.label, texts.label)
        for number, verdict in zip(numbers, verdicts, strict=True):
            findings[number] = Finding(watched[number], verdict)
        problems |= {problem.path: problem for problem in trace.problems}
    baseline.tree.forget()
    ordered = tuple(findings[number] for number in sorted(findings))
    return Judged(ordered, tuple(problems.values()))


def _groups(watched: Sequence[Watched]) -> list[list[int]]:
    """Positions of what is relied on of one class or function: it is judged together,
    since it is read from the same files."""
    found: dict[str, list[int]] = {}
    for number, one in enumerate(watched):
        module, parts = split(one.candidates[-1])
        name = f"{module}:{parts[0]}"
        if one.how == "removal_probe":
            name = one.gap
        found.setdefault(name, []).append(number)
    return list(found.values())


def _trace(
    group: Sequence[Watched],
    keys: Sequence[str],
    everything: str,
    baseline: Baseline,
    texts: Texts,
    version: str | None,
    search: _Search | None,
) -> Trace:
    records = [baseline.recorded(symbol) for one in group for symbol in one.candidates]
    hints = [None if one is None else (one.callers, one.reached) for one in records]
    new = Tree(texts, baseline.shelf, NEW)
    alone = about(keys, hints)
    # Where something is looked for depends on all that is gone.
    together = about([alone, search is None, everything], hints)
    for name in (alone, together):
        trace = baseline.traces.find(name, baseline.tree, new)
        if trace is not None:
            return trace
    verdicts, searched = [], False
    for one in group:
        near: AbstractContextManager[str | None] = contextlib.nullcontext()
        if search is not None:
            near = search.near(one, new)
        with near as limits:
            (finding,) = check(
                [one],
                baseline.tree,
                new,
                version=version,
                recorded=baseline.recorded,
                probes=baseline.probes if baseline.tree.is_stub else {},
            )
        searched = searched or limits is not None
        verdicts.append(_limited(finding.verdict, limits))
    name = together if searched or search is None else alone
    new.forget()
    old_asked, new_asked = baseline.tree.asked(), new.asked()
    trace = Trace(
        name, old_asked or {}, new_asked or {}, tuple(verdicts), tuple(new.broken)
    )
    if old_asked is not None and new_asked is not None:
        baseline.traces.add(trace)
    return trace


def _limited(verdict: Verdict, limits: str | None) -> Verdict:
    if limits is None or verdict.kind != "broken" or verdict.moved_to is not None:
        return verdict
    return replace(verdict, sentence=f"{verdict.sentence} {limits}")


class _Search:
    """Where to look for what is gone, decided once for a release."""

    def __init__(
        self,
        watched: Sequence[Watched],
        baseline: Baseline,
        texts: Texts,
        fetch: Fetch,
    ) -> None:
        self._watched = watched
        self._baseline = baseline
        self._texts = texts
        self._fetch = fetch
        self._reach: tuple[str, ...] | None = None

    @contextlib.contextmanager
    def near(self, one: Watched, new: Tree) -> Iterator[str | None]:
        """While this is judged, a search of all modules is one of the nearest.

        Gives what to say of it, or None where nothing has to be looked for.
        """
        old = self._baseline.tree
        if not _lost(one, old, new):
            yield None
            return
        modules = self._modules(new)
        with (
            old.reaching(modules, self._baseline.known),
            new.reaching(modules, self._baseline.known),
        ):
            yield (
                f"among the {len(modules)} nearest modules that changed; "
                "`--search-all` looks through the whole package"
            )

    def _modules(self, new: Tree) -> tuple[str, ...]:
        if self._reach is None:
            old = self._baseline.tree
            lost = {m: None for one in self._watched for m in _lost(one, old, new)}
            self._reach = reach(lost, self._baseline.texts, self._texts, REACH_BYTES)
            self._fetch(self._reach)
        return self._reach


def _lost(one: Watched, old: Tree, new: Tree) -> list[str]:
    """The modules in which something was that has to be looked for elsewhere."""
    if one.how == "removal_probe":
        return []
    was = next((s for c in one.candidates if (s := find(old, c))), None)
    if was is None or any(_is_there(c, was, new) for c in one.candidates):
        return []
    module, parts = split(was.name)
    owner = f"{module}:{'.'.join(parts[:-1])}"
    if len(parts) > 1 and find(new, owner) is not None:
        # A member is looked for in its class.
        return []
    return list(dict.fromkeys([was.module, module]))


def _is_there(symbol: str, was: Symbol, new: Tree) -> bool:
    now = find(new, symbol)
    return now is not None and (was.typing_only or not now.typing_only)
