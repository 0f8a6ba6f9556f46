"""What one release does to everything that is relied on.

watched x baseline tree x release tree -> findings
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from . import probes
from .compare import judge
from .contract import Reliance
from .facts.record import Record
from .facts.signature import Signature
from .facts.symbol import Symbol, find
from .judges.changes import misplaced
from .lock import Lock
from .tree import Tree
from .verdict import Breakage, Location, Verdict, VerdictKind
from .watched import Watched

__all__ = ["Checked", "Finding", "Recorded", "check", "paths_needed", "worst"]

ORDER: tuple[VerdictKind, ...] = (
    "broken",
    "review",
    "fixed-upstream",
    "compatible",
    "cosmetic",
    "identical",
)
"""Worst first."""


_REPLACING = ("wraps_function", "replaces_function", "replaces_class_binding")
"""Ways in which ours is called in the symbol's place."""

_BOUND = ("function", "async", "classmethod", "property")


Recorded: TypeAlias = Callable[[str], Record | None]
"""What a lock says of a symbol in the baseline, if anything."""


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
    notes: tuple[str, ...] = ()
    """What a person should know of how it was compared."""
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
    watched: Watched,
    old: Tree,
    new: Tree,
    recorded: Recorded,
    probes: Mapping[str, str],
) -> Verdict:
    if watched.how == "removal_probe":
        return _probed(watched, old, new, probes.get(watched.gap))
    before = _chosen(watched, old) or watched.candidates[-1]
    after = _chosen(watched, new)
    if after is None or after == before:
        was, now = find(old, before), find(new, before)
        reliance = _reliance(watched, before, was)
        verdict = judge(reliance, old, new, **_known(recorded(before)))
        return _stale(watched, _as_called(watched, verdict, was, now), was, now)
    # Upstream moved it, and the registry knows where to: the new place is judged
    # by itself, against what it is now.
    was, now = find(old, before), find(new, after)
    reliance = _reliance(watched, after, now)
    settled = judge(reliance, new, new, **_known(recorded(before)))
    sentence = f"`{before}` is `{after}` there, which the registry lists as a candidate"
    if settled.kind in ("broken", "review"):
        return settled
    moved = Verdict(
        "compatible",
        before,
        watched.how,
        None,
        sentence,
        None if was is None else Location(old.label, was.place, was.path, was.line),
        settled.new,
        after,
    )
    return _stale(watched, moved, was, now)


def _known(record: Record | None) -> dict[str, Any]:
    """What a lock knows of who uses a symbol, as a judge takes it."""
    if record is None:
        return {}
    return {"hints": record.callers, "reached": record.reached}


def _reliance(watched: Watched, name: str, symbol: Symbol | None) -> Reliance:
    assert watched.how != "removal_probe"
    ours = _parameters(watched, symbol)
    return Reliance(name, watched.how, watched.by_keyword, ours)


def _parameters(watched: Watched, symbol: Symbol | None) -> Signature | None:
    """What ours takes, of that which upstream passes."""
    if watched.ours is None or watched.ours.signature is None or symbol is None:
        return None
    if watched.how not in _REPLACING:
        return None
    ours = watched.ours.signature
    for _ in range(watched.skipped):
        ours = ours.without_first()
    # `self` is bound by then, as it is in upstream's parameters.
    return ours.without_first() if _is_bound(symbol) else ours


_OF_PARAMETERS: frozenset[Breakage] = frozenset(
    {
        "required-parameter-added",
        "parameter-removed",
        "parameter-renamed",
        "parameters-reordered",
        "fields-changed",
    }
)


def _as_called(
    watched: Watched, verdict: Verdict, was: Symbol | None, now: Symbol | None
) -> Verdict:
    """Where our own calls can be read, they decide, and not all that is possible."""
    if verdict.breakage not in _OF_PARAMETERS or not watched.calls:
        return verdict
    if was is None or now is None:
        return verdict
    old, new = was.signature, now.signature
    for shape in watched.calls:
        if shape.star or shape.double_star or new.refusal(shape) is not None:
            return verdict
        if misplaced(old, new, shape.positional) is not None:
            return verdict
    sentence = f"`{watched.candidates[0]}` takes what we pass, though not all it took"
    return replace(verdict, kind="compatible", breakage=None, sentence=sentence)


def _is_bound(symbol: Symbol) -> bool:
    """Whether the first parameter as written is not among those as called."""
    return symbol.member is not None and symbol.kind in _BOUND


def _stale(
    watched: Watched, verdict: Verdict, was: Symbol | None, now: Symbol | None
) -> Verdict:
    """Review where a copied body's model changed and its contract did not."""
    if not watched.is_copy or verdict.kind not in ("compatible", "cosmetic"):
        return verdict
    if was is None or now is None or was.quiet_body == now.quiet_body:
        return verdict
    sentence = f"the body of `{now.name}` changed, of which we carry a copy"
    return replace(verdict, kind="review", breakage="body-changed", sentence=sentence)


def _probed(watched: Watched, old: Tree, new: Tree, before: str | None) -> Verdict:
    """Whether a release needs the gap: one verdict for all signs of a package."""
    said = probes.answer(watched.probe, new)
    told = said.deciding.deciding
    if said.truth == "unknown":
        sentence = (
            f"whether {new.label} needs `{watched.gap}` cannot be told: {told.words}"
        )
        return _probe_verdict(watched, said, "review", "unreadable", sentence)
    if watched.landed:
        return _landed(watched, said, old, new, before)
    if said.truth == "no":
        sentence = f"{new.label} still needs `{watched.gap}`: {told.words}"
        return _probe_verdict(watched, said, "identical", None, sentence)
    sentence = (
        f"{new.label} no longer needs `{watched.gap}`: {said.deciding.sign.says}; "
        "remove the gap rather than port its patches"
    )
    return _probe_verdict(watched, said, "fixed-upstream", None, sentence)


def _landed(
    watched: Watched, said: probes.Answer, old: Tree, new: Tree, before: str | None
) -> Verdict:
    """Of a gap that upstream closed: the release must not open it again."""
    was_there = (before or probes.answer(watched.probe, old).truth) == "yes"
    words = said.deciding.deciding.words
    kind: VerdictKind = "identical"
    if said.truth == "yes" and was_there:
        sentence = f"{new.label} still does what `{watched.gap}` was for"
    elif said.truth == "yes":
        kind = "fixed-upstream"
        sentence = (
            f"{new.label} does what `{watched.gap}` was for, and {old.label} did not: "
            f"{said.deciding.sign.says}"
        )
    elif was_there:
        kind = "broken"
        sentence = (
            f"`{watched.gap}` is landed in {old.label} and open in {new.label}: {words}"
        )
    else:
        sentence = f"`{watched.gap}` has not landed in {new.label} yet: {words}"
    breakage: Breakage | None = "removed" if kind == "broken" else None
    return _probe_verdict(watched, said, kind, breakage, sentence)


def _probe_verdict(
    watched: Watched,
    said: probes.Answer,
    kind: VerdictKind,
    breakage: Breakage | None,
    sentence: str,
) -> Verdict:
    told = said.deciding.told
    return Verdict(
        kind,
        watched.candidates[0],
        watched.how,
        breakage,
        sentence,
        None,
        said.deciding.deciding.at,
        evidence=tuple(dict.fromkeys(str(t.at) for t in told if t.at is not None)),
    )


def check(
    watched: Iterable[Watched],
    old: Tree,
    new: Tree,
    *,
    version: str | None = None,
    recorded: Recorded = lambda _: None,
    probes: Mapping[str, str] | None = None,
) -> tuple[Finding, ...]:
    """Judge everything that is relied on and meant for the release `version`.

    `recorded` gives what a lock says of a symbol in `old`; `probes`, of a gap, what its
    removal probe says of `old`, where that cannot be asked.
    """
    return tuple(
        Finding(one, _judged(one, old, new, recorded, probes or {}))
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
