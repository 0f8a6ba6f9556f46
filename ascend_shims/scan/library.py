"""The scanned code's other modules, read as far as their names: one at a time, and
only when one of them is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .files import SkipError, Source, parse
from .raw import Setting
from .values import NOTHING, Seq, Text, Values
from .views import member

if TYPE_CHECKING:
    from .scopes import Scope

__all__ = ["Library", "on_disk"]

_MOST = 400
"""Modules that are read for one another, in one process."""


class Library:
    """Looks names up in modules of the scanned code."""

    def __init__(
        self,
        setting: Setting,
        sources: Mapping[str, Source] | None = None,
        tops: Sequence[Path] = (),
    ) -> None:
        self._setting = setting
        self._sources = sources or {}
        self._tops = tops
        self._scopes: dict[str, Scope | None] = {}

    def find(self, parts: tuple[str, ...]) -> Values:
        """What a dotted name of the scanned code stands for."""
        for count in range(len(parts) - 1, 0, -1):
            scope = self.scope(".".join(parts[:count]))
            if scope is None:
                continue
            values = scope.lookup(parts[count]) or NOTHING
            for name in parts[count + 1 :]:
                values = member(values, name)
            return values
        return NOTHING

    def offered(self, module: tuple[str, ...], name: str) -> Values | None:
        """What `from module import *` binds a name to; `None`: nothing."""
        scope = self.scope(".".join(module))
        if scope is None:
            return None
        public = _public(scope.names.get("__all__", NOTHING))
        if name not in public if public else name.startswith("_"):
            return None
        return scope.lookup(name)

    def scope(self, module: str) -> Scope | None:
        """The names of a module, where it is one of the scanned code's."""
        if module not in self._scopes:
            # Modules that import each other.
            self._scopes[module] = None
            source = self._source(module)
            if source is not None and len(self._scopes) < _MOST:
                self._scopes[module] = self._read(source)
        return self._scopes[module]

    def _source(self, module: str) -> Source | None:
        known = self._sources.get(module)
        if known is not None or module.partition(".")[0] not in self._setting.own:
            return known
        return on_disk(module, self._tops)

    def _read(self, source: Source) -> Scope | None:
        from .reader import Reader

        try:
            text, tree = parse(source)
            return Reader(source, text, self._setting, self).names_of(tree)
        except (SkipError, RecursionError):
            return None


def on_disk(module: str, tops: Sequence[Path]) -> Source | None:
    """The file of a module beneath one of some folders."""
    for top in tops:
        base = top.joinpath(*module.split("."))
        for path, is_package in (
            (base / "__init__.py", True),
            (base.with_suffix(".py"), False),
        ):
            if path.is_file():
                return Source(path.as_posix(), module, is_package)
    return None


def _public(values: Values) -> set[str]:
    """The names in `__all__`, where all of them are written out."""
    found: set[str] = set()
    for value in values:
        for item in value.items if isinstance(value, Seq) else ((),):
            texts = [v.value for v in item if isinstance(v, Text)]
            if not texts:
                return set()
            found.update(texts)
    return found
