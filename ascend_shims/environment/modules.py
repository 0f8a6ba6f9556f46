"""Whether a module could be imported, and what its source binds.

Neither imports the module nor its parents.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path

__all__ = ["binds", "find_module"]


def find_module(name: str) -> ModuleSpec | None:
    """The spec that importing `name` would use, or None where there is none."""
    path: Sequence[str] | None = None
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        spec = _find(".".join(parts[:depth]), path)
        if spec is None:
            return None
        # A loaded package may have changed where its modules are looked for.
        loaded = sys.modules.get(spec.name)
        path = getattr(loaded, "__path__", spec.submodule_search_locations)
        if path is None and depth < len(parts):
            return None
    return spec


def _find(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec):
        return loaded
    for finder in list(sys.meta_path):
        if not hasattr(finder, "find_spec"):
            continue
        spec = finder.find_spec(name, path)
        if spec is not None:
            return spec
    return None


def binds(spec: ModuleSpec, name: str) -> bool | None:
    """Whether the module's source binds `name` at its top level.

    None where that cannot be told: there is no source, or it says `import *`.
    """
    if not spec.origin or not spec.origin.endswith(".py"):
        return None
    try:
        known = Path(spec.origin).stat()
        bound = _names(spec.origin, known.st_mtime_ns, known.st_size)
    except (OSError, SyntaxError, ValueError):
        return None
    return None if "*" in bound and name not in bound else name in bound


@lru_cache(maxsize=256)
def _names(path: str, _changed: int, _size: int) -> frozenset[str]:
    """What a file binds: asked at every plan, and a large one takes a while to read.

    Raises `OSError`, `SyntaxError` or `ValueError`.
    """
    return frozenset(_bound(ast.parse(Path(path).read_bytes()).body))


def _bound(body: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield statement.name
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            for item in statement.names:
                yield item.asname or item.name.partition(".")[0]
        else:
            yield from _assigned(statement)
            for inner in ("body", "orelse", "finalbody"):
                yield from _bound(getattr(statement, inner, ()))
            for part in ("handlers", "cases"):
                for inside in getattr(statement, part, ()):
                    yield from _bound(inside.body)


def _assigned(statement: ast.stmt) -> Iterator[str]:
    targets = getattr(statement, "targets", [getattr(statement, "target", None)])
    targets += [item.optional_vars for item in getattr(statement, "items", ())]
    for one in filter(None, targets):
        for node in ast.walk(one):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
