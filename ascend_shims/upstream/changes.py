"""Upstream's own change, between two releases, of what a gap relies on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from .check import Finding
from .facts.symbol import Symbol, find
from .ours import Ours
from .threeway import Hunk, hunks
from .tree import Tree
from .watched import Watched

__all__ = ["Change", "changes"]


@dataclass(frozen=True)
class Change:
    """One thing relied on that is not the same text in both releases."""

    finding: Finding
    old: str
    new: str
    """Upstream's text; empty where it is not there."""
    old_place: str
    new_place: str
    """`release: path:line`, or that it is not there."""
    ours: Ours | None
    """Our version of a body that we replace or carry a copy of."""
    hunks: tuple[Hunk, ...]
    """Upstream's changes of that body, seen from ours."""

    @property
    def diff(self) -> Sequence[str]:
        """Lines of a unified diff, without their ends."""
        return list(
            unified_diff(
                self.old.splitlines(),
                self.new.splitlines(),
                self.old_place,
                self.new_place,
                lineterm="",
            )
        )


def changes(
    pairs: Iterable[tuple[Watched, Tree, Tree]], findings: Iterable[Finding]
) -> list[Change]:
    """What changed, in the registry's order. `findings` judge the same releases."""
    verdicts = {(f.watched.gap, f.watched.key): f for f in findings}
    found = []
    for watched, old, new in pairs:
        finding = verdicts.get((watched.gap, watched.key))
        if finding is None or watched.how == "removal_probe":
            continue
        before, after = _first(watched, old), _first(watched, new)
        was, now = _text(before), _text(after)
        if was == now:
            continue
        ours = watched.ours if watched.is_copy else None
        made: list[Hunk] = []
        if ours is not None and before is not None and after is not None:
            name = before.qualname.rpartition(".")[2]
            made = hunks(was, now, ours.text, name=name, our_name=ours.name)
        found.append(
            Change(
                finding,
                was,
                now,
                _place(old, before),
                _place(new, after),
                ours,
                tuple(made),
            )
        )
    return found


def _first(watched: Watched, tree: Tree) -> Symbol | None:
    return next((s for c in watched.candidates if (s := find(tree, c))), None)


def _text(symbol: Symbol | None) -> str:
    return symbol.source.decode(errors="replace") if symbol else ""


def _place(tree: Tree, symbol: Symbol | None) -> str:
    if symbol is None:
        return f"{tree.label}: not there"
    return f"{tree.label}: {symbol.path}:{symbol.line}"
