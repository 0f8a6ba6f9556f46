"""Bodies: what they mean, apart from how they are written."""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import Counter
from dataclasses import dataclass

from ascend_shims.upstream.facts.scope import function_types

__all__ = [
    "Returns",
    "arithmetic",
    "body_hash",
    "ingredients",
    "quiet_hash",
    "returns_of",
    "statements",
    "tokens",
]

_LOGGERS = frozenset({"logger", "logging", "log", "warnings"})


def statements(node: ast.AST, *, quiet: bool = False) -> list[str]:
    """The statements of a function or class body, each as its normal text.

    Without docstrings, annotations and decorators; positions and comments are not
    in the tree to begin with. `quiet` also drops assertions and log calls and gives
    local variables numbers instead of names.
    """
    body = copy.deepcopy(getattr(node, "body", []))
    wrapper = ast.Module(body=body, type_ignores=[])
    _Normal(quiet).visit(wrapper)
    if quiet and isinstance(node, function_types):
        _Renumber(_locals(node)).visit(wrapper)
    return [ast.dump(statement) for statement in wrapper.body]


def body_hash(node: ast.AST) -> str:
    """Equal for bodies that differ in docstrings, comments, layout, annotations."""
    return _hash(statements(node))


def quiet_hash(node: ast.AST) -> str:
    """Also equal where only assertions, logging or local names differ."""
    return _hash(statements(node, quiet=True))


def _hash(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


class _Normal(ast.NodeTransformer):
    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def visit(self, node: ast.AST) -> ast.AST:
        node = super().visit(node)
        if isinstance(node, ast.AST):
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    setattr(node, name, self._block(block, node, name))
        return node

    def _block(self, block: list[ast.stmt], node: ast.AST, name: str) -> list[ast.stmt]:
        kept = []
        for statement in block:
            if isinstance(statement, ast.Expr) and isinstance(
                statement.value, ast.Constant
            ):
                continue
            if isinstance(statement, ast.Pass):
                continue
            if self._quiet and _is_talk(statement):
                continue
            kept.append(statement)
        imports = [s for s in kept if isinstance(s, ast.Import | ast.ImportFrom)]
        if len(imports) > 1:
            rest = [s for s in kept if not isinstance(s, ast.Import | ast.ImportFrom)]
            kept = sorted(imports, key=ast.dump) + rest
        # A block must keep a statement to stay comparable with one that has none.
        if not kept and name == "body" and not isinstance(node, ast.Module):
            kept = [ast.Pass()]
        return kept

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        self.generic_visit(node)
        if node.value is None:
            if isinstance(node.target, ast.Name):
                return ast.Expr(ast.Constant(None))
            return None
        return ast.Assign(targets=[node.target], value=node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        node.type_comment = None
        return node

    def visit_alias(self, node: ast.alias) -> ast.AST:
        if node.asname == node.name:
            node.asname = None
        return node

    def visit_Import(self, node: ast.Import) -> ast.AST:
        self.generic_visit(node)
        node.names.sort(key=lambda alias: (alias.name, alias.asname or ""))
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        self.generic_visit(node)
        node.names.sort(key=lambda alias: (alias.name, alias.asname or ""))
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        node.kind = None
        return node


def _is_talk(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assert):
        return True
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    callee: ast.expr = statement.value.func
    while isinstance(callee, ast.Attribute):
        callee = callee.value
    return isinstance(callee, ast.Name) and callee.id in _LOGGERS


def _locals(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    args = node.args
    taken = {a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs]}
    outer: set[str] = set()
    stored: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            stored.add(inner.id)
        elif isinstance(inner, ast.Global | ast.Nonlocal):
            outer.update(inner.names)
    return stored - taken - outer


class _Renumber(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names
        self._numbers: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self._names:
            node.id = self._numbers.setdefault(node.id, f"${len(self._numbers)}")
        return node


@dataclass(frozen=True)
class Returns:
    """What a function gives back, as far as its `return` statements show."""

    arities: frozenset[int] = frozenset()
    """Lengths of the tuples it spells out."""
    gives_value: bool = False
    """Some `return` carries a value other than `None`."""
    yields: bool = False


def returns_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Returns:
    arities: set[int] = set()
    gives_value = yields = False
    stack: list[ast.AST] = list(node.body)
    while stack:
        inner = stack.pop()
        if isinstance(inner, (*function_types, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(inner, ast.Yield | ast.YieldFrom):
            yields = True
        if isinstance(inner, ast.Return) and inner.value is not None:
            for value in _alternatives(inner.value):
                if isinstance(value, ast.Constant) and value.value is None:
                    continue
                gives_value = True
                if isinstance(value, ast.Tuple) and not any(
                    isinstance(element, ast.Starred) for element in value.elts
                ):
                    arities.add(len(value.elts))
        stack.extend(ast.iter_child_nodes(inner))
    return Returns(frozenset(arities), gives_value, yields)


def _alternatives(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.IfExp):
        return [*_alternatives(value.body), *_alternatives(value.orelse)]
    return [value]


def tokens(node: ast.AST) -> Counter[str]:
    """The words a definition is made of, for telling how alike two of them are."""
    found: Counter[str] = Counter()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            found[inner.id] += 1
        elif isinstance(inner, ast.Attribute):
            found[inner.attr] += 1
        elif isinstance(inner, ast.arg):
            found[f"({inner.arg}"] += 1
        elif isinstance(inner, ast.keyword) and inner.arg:
            found[f"{inner.arg}="] += 1
        elif isinstance(inner, (*function_types, ast.ClassDef)) and inner is not node:
            found[f"def {inner.name}"] += 3
        elif isinstance(inner, ast.Constant) and inner.value is not None:
            text = str(inner.value)
            found[text if len(text) < 80 else text[:80]] += 1
        elif isinstance(inner, ast.operator | ast.cmpop | ast.unaryop):
            found[type(inner).__name__] += 1
    return found


def ingredients(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
) -> frozenset[str]:
    """What a body works with: outside names, attributes, keywords it passes."""
    own = _locals(node) | {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    found = {f"({a.arg}" for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    stack: list[ast.AST] = [s for s in node.body if not _is_talk(s)]
    while stack:
        inner = stack.pop()
        if isinstance(inner, ast.Name) and inner.id not in own:
            found.add(inner.id)
        elif isinstance(inner, ast.Attribute):
            found.add(f".{inner.attr}")
        elif isinstance(inner, ast.keyword) and inner.arg:
            found.add(f"{inner.arg}=")
        children = ast.iter_child_nodes(inner)
        stack += [c for c in children if not isinstance(c, ast.stmt) or not _is_talk(c)]
    return frozenset(found)


def arithmetic(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Counter[str]:
    """Operators, comparisons, numbers and branches of a body, counted."""
    found: Counter[str] = Counter()
    stack: list[ast.AST] = [s for s in node.body if not _is_talk(s)]
    while stack:
        inner = stack.pop()
        if isinstance(
            inner, ast.operator | ast.cmpop | ast.unaryop | ast.boolop | ast.If
        ):
            found[type(inner).__name__] += 1
        elif isinstance(inner, ast.Constant) and isinstance(inner.value, int | float):
            found[repr(inner.value)] += 1
        children = ast.iter_child_nodes(inner)
        stack += [c for c in children if not isinstance(c, ast.stmt) or not _is_talk(c)]
    return found
