"""The name upstream that somebody probably meant."""

from __future__ import annotations

from difflib import get_close_matches

from .facts.symbol import find, split
from .tree import Tree

__all__ = ["nearest_symbol"]


def nearest_symbol(tree: Tree, name: str) -> str | None:
    """What a release has instead of `name`, which it has not; None where nothing is
    alike. Of a module that there is, it is another name in the same module or class."""
    module, parts = split(name)
    if not tree.is_package(module):
        near = get_close_matches(module, list(tree.modules), n=1)
        return f"{near[0]}:{'.'.join(parts)}" if near else None
    *outer, last = parts
    near = get_close_matches(last, sorted(_names(tree, module, outer)), n=1)
    return f"{module}:{'.'.join([*outer, near[0]])}" if near else None


def _names(tree: Tree, module: str, outer: list[str]) -> set[str]:
    if not outer:
        parsed = tree.module(module)
        return set(parsed.scope.names) if parsed is not None else set()
    owner = find(tree, f"{module}:{'.'.join(outer)}")
    return set(owner.cls.names()) if owner is not None and owner.cls else set()
