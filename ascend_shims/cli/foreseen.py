"""What the source of the upstream that is installed here says of a target.

A plan does not look: a target is found when upstream is imported. A person who has
misspelled one wants to know before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..states import State

if TYPE_CHECKING:
    from ..plan import Plan
    from ..upstream.tree import Tree

__all__ = ["foresee", "nearest_here"]


def foresee(report: dict[str, Any], plan: Plan) -> None:
    """Say of each pending gap of `report` which of its targets there will not be.

    Its state is then the one that it comes to when upstream is imported.

    Ours are left out: every release that they are open for was tried with them.
    """
    from ..registry.loading import packaged

    ours = plan.switches.registry in (None, packaged())
    trees: dict[str, Tree | None] = {}
    for gap in report["gaps"]:
        if gap["state"] != State.PENDING or (ours and "/" not in gap["id"]):
            continue
        for patch in plan[gap["id"]].patches:
            candidates = patch.patch.candidates
            # What a patch adds is not there, which is why.
            is_needed = patch.gate != "closed" and patch.patch.kind != "add"
            if not is_needed or _has_one(candidates, trees):
                continue
            gap["state"] = str(State.MISSING_TARGET)
            near = _near(candidates[-1], trees)
            wanted = candidates[-1]
            gap["reason"] = (
                f"never applies here: the installed release has no {wanted}; did you "
                f"mean {near}? Correct its target in the registry"
                if near
                else f"never applies here: the installed release has no {wanted}; "
                "correct its target in the registry, or narrow its versions"
            )
            break


def nearest_here(targets: Iterable[str]) -> dict[str, str]:
    """What the installed release has instead of targets that it has not."""
    trees: dict[str, Tree | None] = {}
    found = {target: _near(target, trees) for target in targets}
    return {target: near for target, near in found.items() if near is not None}


def _has_one(targets: Iterable[str], trees: dict[str, Tree | None]) -> bool:
    """Whether there is one, as far as the source tells."""
    from ..upstream.facts.symbol import find

    found = [(target, _tree(target, trees)) for target in targets]
    return any(tree is None or find(tree, target) is not None for target, tree in found)


def _near(target: str, trees: dict[str, Tree | None]) -> str | None:
    from ..upstream.near import nearest_symbol

    tree = _tree(target, trees)
    return nearest_symbol(tree, target) if tree is not None else None


def _tree(target: str, trees: dict[str, Tree | None]) -> Tree | None:
    """The installed source of a target's package; None where it is not installed."""
    from ..upstream.sources import Sources, SourceUnavailable
    from ..upstream.tree import Tree

    package = target.partition(":")[0].partition(".")[0]
    if package not in trees:
        try:
            source = Sources(offline=True).open(f"installed:{package}")
        except SourceUnavailable:
            trees[package] = None
        else:
            trees[package] = Tree(source)
    return trees[package]
