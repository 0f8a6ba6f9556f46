"""Import statements: what they bind, and what they show to be a module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .values import Ref, merged

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["bind"]


def bind(reader: Reader, node: ast.Import | ast.ImportFrom) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            _plain(reader, alias)
    else:
        _from(reader, node)


def _plain(reader: Reader, alias: ast.alias) -> None:
    parts = tuple(alias.name.split("."))
    reader.facts.modules.update(_prefixes(parts))
    name = alias.asname or parts[0]
    reader.scope.bind(name, (Ref(parts if alias.asname else parts[:1]),))
    _want(reader, parts)


def _from(reader: Reader, node: ast.ImportFrom) -> None:
    home = _absolute(reader, node)
    if not home:
        return
    reader.facts.modules.update(_prefixes(home))
    _want(reader, home)
    for alias in node.names:
        if alias.name == "*":
            if reader.stars is not None:
                reader.stars.add(home)
                reader.facts.stars.append(home)
            continue
        parts = (*home, alias.name)
        name = alias.asname or alias.name
        # An import in a `try` and another in its `except`: either may have happened.
        before = reader.scope.names.get(name, ()) if reader.gates else ()
        fallback = any(gate.kind == "try" for gate in reader.gates)
        kept = tuple(v for v in before if isinstance(v, Ref)) if fallback else ()
        reader.scope.bind(name, merged((Ref(parts),), kept))
        _want(reader, parts)
        if reader.setting.is_upstream(home):
            _note(reader, parts, node.lineno)


def _note(reader: Reader, parts: tuple[str, ...], line: int) -> None:
    from .privates import private_import

    if not reader.place.function:
        reader.facts.imports.append((parts, line))
    if parts[-1].startswith("_") and not parts[-1].startswith("__"):
        private_import(reader, parts, line)


def _want(reader: Reader, parts: tuple[str, ...]) -> None:
    """Note that a module of the scanned code is imported here."""
    if parts[0] in reader.setting.own:
        reader.facts.wanted.append((".".join(parts), reader.gates))


def _absolute(reader: Reader, node: ast.ImportFrom) -> tuple[str, ...]:
    written = tuple((node.module or "").split(".")) if node.module else ()
    if not node.level:
        return written
    here = reader.source.module.split(".")
    drop = node.level - 1 if reader.source.is_package else node.level
    base = here[: len(here) - drop] if drop else here
    return (*base, *written)


def _prefixes(parts: tuple[str, ...]) -> set[str]:
    return {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
