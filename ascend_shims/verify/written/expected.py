"""What a module's source binds, read from its text alone."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Binding", "Scope", "codes_of", "scope_of"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NEWLOCALS = 0x2
"""The flag of code that is a function's, and not a class body's."""

_DYNAMIC = frozenset({"globals", "vars", "locals", "exec", "setattr"})


@dataclass(frozen=True)
class Binding:
    """One statement that binds a name."""

    kind: str
    """`def`, `class`, `import`, `from`, `value`."""
    node: Any
    sure: bool
    """It runs whenever the scope runs: no condition is around it."""
    module: str = ""
    """Of imports: where it comes from, absolute."""
    original: str = ""
    """Of `from`: the name there."""


@dataclass
class Scope:
    """The body of a module or of a class."""

    names: dict[str, list[Binding]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    stars: list[str] = field(default_factory=list)
    """Modules of which it takes everything."""
    lazy: set[str] = field(default_factory=set)
    """Names that functions bind, with `global`."""
    is_dynamic: bool = False
    """It may bind names that its text does not show."""
    packages: set[str] = field(default_factory=set)
    """Top-level packages that it imports, anywhere."""


def scope_of(body: Iterable[ast.stmt], module: str, is_package: bool) -> Scope:
    """What the statements bind, those in functions apart."""
    home = module if is_package else module.rpartition(".")[0]
    found = Scope()
    body = list(body)
    _Reader(found, home).read(body, True)
    for node in (each for one in body for each in ast.walk(one)):
        if isinstance(node, ast.Global):
            found.lazy.update(node.names)
        elif isinstance(node, ast.Import):
            found.packages.update(one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.packages.add(_absolute(node, home).partition(".")[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.is_dynamic = found.is_dynamic or node.func.id in _DYNAMIC
    return found


def _absolute(node: ast.ImportFrom, home: str) -> str:
    if not node.level:
        return node.module or ""
    parts = home.split(".")
    base = ".".join(parts[: len(parts) - node.level + 1])
    return f"{base}.{node.module}" if node.module else base


class _Reader:
    def __init__(self, scope: Scope, home: str) -> None:
        self._scope = scope
        self._home = home

    def read(self, body: Iterable[ast.stmt], sure: bool) -> None:
        for node in body:
            self._statement(node, sure)
            # An assignment expression may hide in any of them.
            for each in _expressions(node):
                if isinstance(each, ast.NamedExpr):
                    self._target(each.target, each.value, False)

    def _add(self, name: str, binding: Binding) -> None:
        self._scope.names.setdefault(name, []).append(binding)

    def _statement(self, node: ast.stmt, sure: bool) -> None:
        if isinstance(node, _FUNCTIONS):
            self._add(node.name, Binding("def", node, sure))
        elif isinstance(node, ast.ClassDef):
            self._add(node.name, Binding("class", node, sure))
        elif isinstance(node, ast.Import):
            for one in node.names:
                name = one.asname or one.name.partition(".")[0]
                module = one.name if one.asname else name
                self._add(name, Binding("import", node, sure, module))
        elif isinstance(node, ast.ImportFrom):
            self._from(node, sure)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._target(target, node.value, sure)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._target(node.target, node.value, sure)
        elif isinstance(node, ast.AugAssign):
            self._target(node.target, None, sure)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._scope.deleted.add(target.id)
        else:
            self._compound(node)

    def _from(self, node: ast.ImportFrom, sure: bool) -> None:
        module = _absolute(node, self._home)
        for one in node.names:
            if one.name == "*":
                self._scope.stars.append(module)
                continue
            name = one.asname or one.name
            self._add(name, Binding("from", node, sure, module, one.name))

    def _target(self, target: ast.expr, value: ast.expr | None, sure: bool) -> None:
        if isinstance(target, ast.Name):
            self._add(target.id, Binding("value", value, sure))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for one in target.elts:
                self._target(one, None, sure)
        elif isinstance(target, ast.Starred):
            self._target(target.value, None, sure)

    def _compound(self, node: ast.stmt) -> None:
        """Of `if`, `try`, `for`, `with` and the like: what is in them may not run."""
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self._target(node.target, None, False)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self._target(item.optional_vars, None, False)
        for name in ("body", "orelse", "finalbody"):
            self.read(getattr(node, name, ()), False)
        for handler in getattr(node, "handlers", ()):
            if handler.name:
                # Unbound again at the handler's end.
                self._scope.deleted.add(handler.name)
            self.read(handler.body, False)
        for case in getattr(node, "cases", ()):
            for each in ast.walk(case.pattern):
                bound = getattr(each, "name", None) or getattr(each, "rest", None)
                if isinstance(bound, str):
                    self._add(bound, Binding("value", None, False))
            self.read(case.body, False)


def _expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """What a statement evaluates itself, without the statements inside it."""
    left: list[ast.AST] = [
        one for one in ast.iter_child_nodes(node) if not isinstance(one, ast.stmt)
    ]
    while left:
        one = left.pop()
        yield one
        if not isinstance(one, (ast.stmt, ast.Lambda)):
            left += [
                each
                for each in ast.iter_child_nodes(one)
                if not isinstance(each, ast.stmt)
            ]


def codes_of(module: types.CodeType) -> dict[str, list[types.CodeType]]:
    """The code of every function and class body, by qualified name."""
    found: dict[str, list[types.CodeType]] = {}
    left = [("", module)]
    while left:
        prefix, code = left.pop()
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                name = prefix + constant.co_name
                found.setdefault(name, []).append(constant)
                if constant.co_name.startswith("<generic parameters of "):
                    # Python's own, around a class or function with parameters.
                    left.append((prefix, constant))
                else:
                    is_class = not constant.co_flags & _NEWLOCALS
                    left.append((name + ("." if is_class else ".<locals>."), constant))
    return found
