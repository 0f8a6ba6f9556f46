"""`from module import *`: names that nothing else in a file binds."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .values import NOTHING, Ref, Values

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["Stars"]


class Stars:
    """The star imports of one file, in their order."""

    def __init__(self, reader: Reader, tree: ast.Module) -> None:
        self._reader = reader
        self._bound = {name for node in ast.walk(tree) for name in _binds(node)}
        self.homes: list[tuple[str, ...]] = []
        self._known: dict[str, Values | None] = {}

    def add(self, home: tuple[str, ...]) -> None:
        if home not in self.homes:
            self.homes.append(home)
            self._known.clear()

    def lookup(self, name: str) -> Values | None:
        """What one of them may have bound a name to."""
        if not self.homes or name in self._bound or hasattr(builtins, name):
            return None
        if name not in self._known:
            self._known[name] = None
            self._known[name] = self._lookup(name)
        return self._known[name]

    def _lookup(self, name: str) -> Values | None:
        foreign: list[Ref] = []
        for home in reversed(self.homes):
            if home[0] in self._reader.setting.own:
                found = self._reader.library.offered(home, name)
                if found is not None:
                    return found
            elif not name.startswith("_"):
                foreign.append(Ref((*home, name)))
        if not foreign:
            return None
        # Which of several modules has it only their texts tell.
        first, *others = foreign
        either = self._reader.facts.either
        either += [(first.parts, other.parts) for other in others]
        return tuple(foreign) or NOTHING


def _binds(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        if node.name:
            yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
