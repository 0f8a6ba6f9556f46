"""Names and what they stand for, while a file is read from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .values import NOTHING, OwnClass, Value, Values, merged

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["Scope"]


@dataclass(eq=False)
class Scope:
    """A module, class or function body."""

    parent: Scope | None = None
    owner: OwnClass | None = None
    """Of a class body: the class."""
    names: dict[str, Values] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    """Names declared `global` or `nonlocal`."""
    reader: Reader | None = None
    """Of the file."""

    def __post_init__(self) -> None:
        if self.reader is None and self.parent is not None:
            self.reader = self.parent.reader

    def lookup(self, name: str) -> Values | None:
        """What a name may stand for; `None` where nothing here binds it."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            # Methods do not see the names of their class.
            if found is not None and (scope.owner is None or scope is self):
                return found
            scope = scope.parent
        stars = self.reader.stars if self.reader is not None else None
        return stars.lookup(name) if stars is not None else None

    def called(self, value: Value) -> set[str]:
        """The names under which something is known here, or around."""
        found: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            found.update(name for name, vs in scope.names.items() if value in vs)
            scope = scope.parent
        return found

    def bind(self, name: str, values: Values) -> None:
        if name in self.elsewhere:
            top = self
            while top.parent is not None:
                top = top.parent
            top.names[name] = merged(top.names.get(name, NOTHING), values)
            return
        self.names[name] = values

    @contextmanager
    def apart(self) -> Iterator[dict[str, Values]]:
        """Run a branch; gives what the names stand for after it, and forgets it."""
        before = self.names
        self.names = dict(before)
        after: dict[str, Values] = {}
        try:
            yield after
        finally:
            after.update(self.names)
            self.names = before

    def join(self, ends: list[dict[str, Values]]) -> None:
        """Go on after branches, any of which may have been taken."""
        if not ends:
            return
        if len(ends) == 1:
            self.names = ends[0]
            return
        joined = dict(ends[0])
        for end in ends[1:]:
            for name, values in end.items():
                mine = joined.get(name)
                if mine is None:
                    joined[name] = values
                elif mine is not values:
                    joined[name] = merged(mine, values)
        self.names = joined
