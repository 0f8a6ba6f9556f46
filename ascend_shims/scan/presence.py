"""Whether releases have what the code patches or relies on, as far as text tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..upstream.facts.symbol import find
from ..upstream.tree import Tree
from .found import Found

__all__ = ["is_guarded", "is_nowhere", "is_unknown", "owner_of", "place_of"]

_OPEN = ("value", "set", "property", "external")
"""Kinds of which the text does not tell what attributes there are."""

_MADE = re.compile(r"(^|[.:])(_version|_?(\w+_)?C(_\w+)?)(\.|:|$)")
"""Modules that a build makes, as `_C`, `_moe_C` and `_version`: no source has them."""


def owner_of(target: str) -> str | None:
    """The class or object that it is an attribute of."""
    module, _, qualname = target.partition(":")
    owner, _, _ = qualname.rpartition(".")
    return f"{module}:{owner}" if owner else None


def is_nowhere(found: Found, trees: Iterable[Tree]) -> bool:
    """Whether none of the releases has it, nor could have."""
    if found.adds or found.target is None or not found.sure:
        return False
    targets = (found.target, *found.candidates)
    return not any(_may_be(one, tree) for tree in trees for one in targets)


def is_unknown(targets: Sequence[str], tree: Tree) -> bool:
    """Whether a release lacks it and nothing says that it might have it."""
    return not any(_may_be(one, tree) for one in targets)


def is_guarded(found: Found) -> bool:
    """Whether the code expects that it may not be there."""
    return any(gate.kind in ("try", "suppress", "exists") for gate in found.gates)


def _may_be(target: str, tree: Tree) -> bool:
    """Whether a release has it, as far as its text can tell."""
    if _MADE.search(target) or find(tree, target) is not None:
        return True
    module, _, name = target.partition(":")
    if tree.is_package(f"{module}.{name}"):
        return True
    owner = owner_of(target)
    if owner is None:
        # Where a module cannot be read, nothing can be said of what is in it.
        return module in tree and tree.module(module) is None
    symbol = find(tree, owner)
    if symbol is None:
        return False
    if symbol.kind == "class" and re.search(r"\.__\w+__$", name):
        # `object` has most of these, and a dataclass gets the others.
        return True
    # A class with a base that the text does not show may inherit it.
    closed = symbol.cls is None or symbol.cls.is_closed
    return symbol.kind in _OPEN or not closed


def place_of(target: str, trees: Iterable[Tree]) -> str:
    """The name under which it is defined: a class may be imported from anywhere.

    A name of a module is that module's own, wherever its value is from.
    """
    owner = owner_of(target)
    if owner is None:
        return target
    for tree in trees:
        symbol = find(tree, owner)
        if symbol is not None and symbol.kind == "class" and symbol.qualname:
            return f"{symbol.place}.{target.rpartition('.')[2]}"
    return target
