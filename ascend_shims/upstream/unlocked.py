"""What can be said of a release where there is nothing to compare it with."""

from __future__ import annotations

from .baselines import distribution_of
from .check import Finding, check
from .facts.symbol import find
from .tree import Tree
from .verdict import Location, Verdict
from .watched import Watched

__all__ = ["without_baseline"]


def without_baseline(watched: Watched, tree: Tree, version: str | None) -> Finding:
    """Of an entry that no locked release is for: whether the release has it."""
    if watched.how == "removal_probe":
        # That asks the release alone.
        return check([watched], tree, tree)[0]
    found = next((s for c in watched.candidates if (s := find(tree, c))), None)
    symbol = watched.candidates[-1] if found is None else found.name
    if found is None:
        sentence = (
            f"{tree.label} has no `{symbol}`, and no locked release is one that it is "
            "for"
        )
        verdict = Verdict(
            "broken", symbol, watched.how, "removed", sentence, None, None
        )
        return Finding(watched, verdict)
    release = f"{distribution_of(watched.package)}=={version or 'VERSION'}"
    sentence = (
        f"`{symbol}` is there, and no locked release is one that it is for, to compare "
        f"with: lock one on which it works, as in `shims lock {release}`"
    )
    place = Location(tree.label, found.place, found.path, found.line)
    verdict = Verdict(
        "review", symbol, watched.how, "unreadable", sentence, None, place
    )
    return Finding(watched, verdict)
