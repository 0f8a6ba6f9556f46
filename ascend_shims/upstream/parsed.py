"""Parsed files, shared by all releases that hold the very same text.

Neighbouring releases differ in a part of their files. What depends on nothing but a
file's own text (its syntax tree, its names, its index) is made once for all of them.
"""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property

from ascend_shims.upstream.facts.scope import Scope, scope_of
from ascend_shims.upstream.index import Index, Place, index_of

__all__ = ["Parsed", "Shelf", "digest_of"]

_KEPT = 3 << 20
"""Bytes of source whose syntax trees are kept; a tree takes about 15 times that."""


def digest_of(text: bytes) -> str:
    """Names a content."""
    return hashlib.blake2b(text, digest_size=16).hexdigest()


@dataclass(eq=False, repr=False)
class Parsed:
    """What one text says, whichever release and file it is found in."""

    text: bytes
    tree: ast.Module
    scope: Scope = field(init=False)

    def __post_init__(self) -> None:
        self.scope = scope_of(self.tree.body)

    @cached_property
    def index(self) -> Index:
        """Calls, look-ups and assignments of the whole file."""
        return index_of(self.tree)

    @cached_property
    def held(self) -> dict[str, list[tuple[ast.expr, Place]]]:
        """Names of things that are assigned as they are: to what, and where."""
        found: dict[str, list[tuple[ast.expr, Place]]] = {}
        for entries in self.index.assigned.values():
            for target, value, place in entries:
                choices = [value]
                if isinstance(value, ast.IfExp):
                    choices = [value.body, value.orelse]
                for choice in choices:
                    if isinstance(choice, ast.Name):
                        found.setdefault(choice.id, []).append((target, place))
        return found

    @cached_property
    def lines(self) -> list[bytes]:
        return self.text.splitlines()


class Shelf:
    """The parsed files that were used last, up to a certain size together."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._size = 0
        self._files: OrderedDict[str, Parsed] = OrderedDict()

    def parsed(self, digest: str, text: bytes, path: str) -> Parsed:
        """The parsed text.

        Args:
            digest: `digest_of(text)`.
            path: for the error alone.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError: it cannot be parsed.
        """
        known = self._files.get(digest)
        if known is not None:
            self._files.move_to_end(digest)
            return known
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = Parsed(text, ast.parse(text, path))
        self._files[digest] = made
        self._size += len(text)
        while self._size > self._kept and len(self._files) > 1:
            _, dropped = self._files.popitem(last=False)
            self._size -= len(dropped.text)
        return made
