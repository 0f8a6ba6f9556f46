"""What the source text of a plugin's modules says, without importing any of them.

Facts of one file: the functions and classes in it, the names that their bodies load,
what classes derive from, and where imported names come from. Definitions beneath an
`if` or a `try` count: which of them holds is told by the class itself, later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from .modules import find_module

__all__ = ["Body", "Source", "source_of"]


@dataclass(frozen=True, slots=True)
class Body:
    """What is known of one name's definition."""

    loads: frozenset[str] = frozenset()
    """Names and attributes that the body loads, its decorators apart."""
    passes_on: bool = False
    """Of a method: it asks another class for the attribute of its own name, as
    `super().name` does."""


@dataclass(frozen=True, slots=True)
class Source:
    """One module's text, as far as it matters here."""

    module: str
    bodies: Mapping[str, Body]
    """By qualified name, classes and class attributes included."""
    bases: Mapping[str, tuple[str, ...]]
    """By class: what it derives from, spelled `package.module:Qual.name`."""
    imported: Mapping[str, str]
    """By name: what it was imported from, spelled with dots."""

    def symbol(self, dotted: str) -> str:
        """`package.module:Qual.name` of what the module calls `dotted`."""
        head, _, rest = dotted.partition(".")
        origin = self.imported.get(head)
        if origin is None:
            return f"{self.module}:{dotted}"
        module, _, name = (f"{origin}.{rest}" if rest else origin).rpartition(".")
        return f"{module}:{name}"


def source_of(module: str) -> Source | None:
    """The facts of a module's file; None where there is no text that parses."""
    spec = find_module(module)
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    is_package = spec.submodule_search_locations is not None
    try:
        changed = Path(spec.origin).stat().st_mtime_ns
        return _read(module, spec.origin, is_package, changed)
    except (OSError, SyntaxError, ValueError):
        return None


@lru_cache(maxsize=64)
def _read(module: str, file: str, is_package: bool, _changed: int) -> Source:
    tree = ast.parse(Path(file).read_bytes())
    package = module if is_package else module.rpartition(".")[0]
    imported = dict(_imported(tree, package))
    bodies: dict[str, Body] = {}
    bases: dict[str, list[str]] = {}
    for qualname, node in _defined(tree.body, ""):
        bodies[qualname] = _both(bodies.get(qualname), _body(node))
        if isinstance(node, ast.ClassDef):
            bases.setdefault(qualname, []).extend(
                filter(None, map(_dotted, node.bases))
            )
    text = Source(module, bodies, {}, imported)
    resolved = {name: tuple(map(text.symbol, found)) for name, found in bases.items()}
    return Source(module, bodies, resolved, imported)


def _defined(
    body: Sequence[ast.stmt], within: str
) -> Iterator[tuple[str, ast.stmt | None]]:
    """Each qualified name that statements bind, and its definition if it has a body."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield within + statement.name, statement
            case ast.ClassDef():
                yield within + statement.name, statement
                yield from _defined(statement.body, f"{within}{statement.name}.")
            case ast.Assign():
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        yield within + target.id, None
            case ast.AnnAssign(target=ast.Name(id=name)) if statement.value:
                yield within + name, None
            case _:
                for part in ("body", "orelse", "finalbody"):
                    yield from _defined(getattr(statement, part, ()), within)
                for handler in getattr(statement, "handlers", ()):
                    yield from _defined(handler.body, within)


def _body(node: ast.stmt | None) -> Body:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return Body()
    arguments = [*node.args.posonlyargs, *node.args.args]
    own = arguments[0].arg if arguments else ""
    loads, passes_on = set(), False
    for inner in (n for statement in node.body for n in ast.walk(statement)):
        match inner:
            case ast.Name(ctx=ast.Load()):
                loads.add(inner.id)
            case ast.Attribute():
                loads.add(inner.attr)
                asked = inner.value
                himself = isinstance(asked, ast.Name) and asked.id == own
                passes_on |= inner.attr == node.name and not himself
            case ast.alias():
                loads.add(inner.name.rpartition(".")[2])
    return Body(frozenset(loads), passes_on)


def _both(one: Body | None, other: Body) -> Body:
    if one is None:
        return other
    return Body(one.loads | other.loads, one.passes_on or other.passes_on)


def _imported(tree: ast.Module, package: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for item in node.names:
                    if item.asname:
                        yield item.asname, item.name
                    else:
                        head = item.name.partition(".")[0]
                        yield head, head
            case ast.ImportFrom():
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                origin = [*(above if node.level else ()), *filter(None, [node.module])]
                for item in node.names:
                    yield item.asname or item.name, ".".join([*origin, item.name])


def _dotted(node: ast.expr) -> str:
    """`a.b.C` of a base class; nothing where it is no plain name."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            owner = _dotted(node.value)
            return f"{owner}.{node.attr}" if owner else ""
        case ast.Subscript():
            return _dotted(node.value)
    return ""
