"""What a block of statements binds, and under which condition."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Binding", "Condition", "Scope", "function_types", "scope_of"]

function_types = (ast.FunctionDef, ast.AsyncFunctionDef)

Condition = Literal["always", "branch", "fallback", "typing"]
"""`branch`: inside an `if`, a loop or the body of a `try`. `fallback`: in an
`except` handler or an `else`. `typing`: seen by type checkers only."""


@dataclass(frozen=True, eq=False)
class Binding:
    """One statement that binds one name."""

    name: str
    kind: Literal["function", "class", "module", "from", "value", "declared"]
    condition: Condition
    node: ast.AST
    """The definition, the import statement, or the assignment."""
    value: ast.expr | None = None
    """Right-hand side of an assignment to just this name."""
    annotation: ast.expr | None = None
    module: str = ""
    """Of an import: the module as written, without its leading dots."""
    level: int = 0
    original: str = ""
    """Of `from m import original as name`."""

    @property
    def is_overload(self) -> bool:
        return isinstance(self.node, function_types) and any(
            _last(decorator) == "overload" for decorator in self.node.decorator_list
        )


@dataclass(eq=False, repr=False)
class Scope:
    """Bindings by name, in the order of the text."""

    names: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[Binding] = field(default_factory=list)

    def add(self, binding: Binding) -> None:
        if binding.name == "*":
            self.stars.append(binding)
        else:
            self.names.setdefault(binding.name, []).append(binding)

    def best(self, name: str) -> Binding | None:
        """The binding that counts where there are several.

        A real definition before an import, an import before a constant (`f = None`
        ahead of a guarded import), the main path before its fallback, an
        implementation before its overloads; of equals the last unconditional one,
        else the first.
        """
        found = self.names.get(name)
        if not found:
            return None
        return max(
            enumerate(found),
            key=lambda pair: (*_rank(pair[1]), _order(pair[0], pair[1])),
        )[1]

    def overloads(self, name: str) -> list[Binding]:
        return [b for b in self.names.get(name, ()) if b.is_overload]


def _rank(binding: Binding) -> tuple[int, int, int]:
    return (
        binding.condition != "typing",
        {"declared": 0, "value": 1}.get(binding.kind, 2) - binding.is_overload,
        {"always": 3, "branch": 2, "fallback": 1, "typing": 0}[binding.condition],
    )


def _order(index: int, binding: Binding) -> int:
    return index if binding.condition == "always" else -index


def scope_of(statements: Iterable[ast.stmt]) -> Scope:
    """The names that these statements bind, nested blocks included."""
    scope = Scope()
    for binding in _bindings(statements, "always"):
        scope.add(binding)
    return scope


def _bindings(statements: Iterable[ast.stmt], under: Condition) -> Iterator[Binding]:
    for node in statements:
        if isinstance(node, function_types):
            yield Binding(node.name, "function", under, node)
        elif isinstance(node, ast.ClassDef):
            yield Binding(node.name, "class", under, node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports_of(node, under)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _targets(target, node, node.value, under)
        elif isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Name):
                kind: Literal["value", "declared"]
                kind = "declared" if node.value is None else "value"
                yield Binding(
                    node.target.id, kind, under, node, node.value, node.annotation
                )
        elif isinstance(node, ast.If):
            yield from _branches(node, under)
        elif isinstance(node, ast.Try):
            inner = _inner(under, "branch")
            yield from _bindings([*node.body, *node.orelse], inner)
            for handler in node.handlers:
                yield from _bindings(handler.body, _inner(under, "fallback"))
            yield from _bindings(node.finalbody, under)
        elif isinstance(node, ast.With | ast.AsyncWith):
            yield from _bindings(node.body, under)
        elif isinstance(node, ast.For | ast.While):
            if isinstance(node, ast.For):
                yield from _targets(node.target, node, None, _inner(under, "branch"))
            yield from _bindings([*node.body, *node.orelse], _inner(under, "branch"))


def _branches(node: ast.If, under: Condition) -> Iterator[Binding]:
    if _last(node.test) == "TYPE_CHECKING":
        yield from _bindings(node.body, "typing")
        yield from _bindings(node.orelse, under)
        return
    yield from _bindings(node.body, _inner(under, "branch"))
    yield from _bindings(node.orelse, _inner(under, "fallback"))


def _inner(outer: Condition, inner: Condition) -> Condition:
    return outer if outer in ("typing", "fallback") else inner


def _targets(
    target: ast.expr, node: ast.AST, value: ast.expr | None, under: Condition
) -> Iterator[Binding]:
    if isinstance(target, ast.Name):
        yield Binding(target.id, "value", under, node, value)
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _targets(element, node, None, under)


def imports_of(
    node: ast.Import | ast.ImportFrom, under: Condition
) -> Iterator[Binding]:
    """The bindings of one import statement."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield Binding(
                alias.asname or alias.name,
                "from",
                under,
                node,
                module=node.module or "",
                level=node.level,
                original=alias.name,
            )
        else:
            # `import a.b` binds `a`; `import a.b as c` binds `a.b`.
            top = alias.name.split(".")[0]
            yield Binding(
                alias.asname or top,
                "module",
                under,
                node,
                module=alias.name if alias.asname else top,
            )


def _last(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _last(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
