"""Bodies: what they mean, apart from how they are written."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from ascend_shims.upstream.facts.nodes import once_a_node, parts_of
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
    named = _locals(node) if quiet and isinstance(node, function_types) else set()
    body: Any = getattr(node, "body", None)
    # What is no block, a constant for instance, is one statement: itself.
    block: list[Any] = body if isinstance(body, list) else [node]
    return _Dump(quiet, named).block(block)


@once_a_node
def body_hash(node: ast.AST) -> str:
    """Equal for bodies that differ in docstrings, comments, layout, annotations."""
    return _hash(statements(node))


@once_a_node
def quiet_hash(node: ast.AST) -> str:
    """Also equal where only assertions, logging or local names differ."""
    return _hash(statements(node, quiet=True))


def _hash(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


class _Dump:
    """Writes a tree as `ast.dump` does, in its one spelling.

    In one walk: a copy of the tree that is changed and then dumped takes ten times
    as long.
    """

    def __init__(self, quiet: bool, numbered: set[str]) -> None:
        self._quiet = quiet
        self._numbered = numbered
        self._numbers: dict[str, str] = {}

    def block(self, block: list[ast.stmt]) -> list[str]:
        """The statements that mean something, imports first and in one order."""
        imports, texts = [], []
        for statement in block:
            if self._is_dropped(statement):
                continue
            text = self._text(statement)
            texts.append(text)
            if isinstance(statement, ast.Import | ast.ImportFrom):
                imports.append((len(texts) - 1, text))
        if len(imports) < 2:
            return texts
        places = {place for place, _ in imports}
        rest = [text for place, text in enumerate(texts) if place not in places]
        return sorted(text for _, text in imports) + rest

    def _is_dropped(self, statement: ast.stmt) -> bool:
        kind = type(statement)
        if kind is ast.Expr:
            if isinstance(statement.value, ast.Constant):  # type: ignore[attr-defined]
                return True
        elif kind is ast.Pass:
            return True
        elif kind is ast.AnnAssign:
            return statement.value is None  # type: ignore[attr-defined]
        return self._quiet and _is_talk(statement)

    def _text(self, node: object) -> str:
        kind: Any = type(node)
        if kind is list:
            return f"[{', '.join([self._text(one) for one in node])}]"  # type: ignore[attr-defined]
        if not isinstance(node, ast.AST):
            return repr(node)
        special = _SPECIAL.get(kind)
        if special is not None:
            return special(self, node)
        return self._fields(node, _optional(kind))

    def _fields(self, node: ast.AST, fields: Mapping[str, bool]) -> str:
        parts = []
        for name, optional in fields.items():
            value = getattr(node, name, None)
            if value is None and optional:
                continue
            if name in _BLOCKS and type(value) is list:
                # A block must keep a statement to stay comparable with one that
                # has none.
                empty = ["Pass()"] if name == "body" else []
                text = f"[{', '.join(self.block(value) or empty)}]"
            else:
                text = self._text(value)
            parts.append(f"{name}={text}")
        return f"{type(node).__name__}({', '.join(parts)})"

    def _name(self, node: ast.Name) -> str:
        name = node.id
        if name in self._numbered:
            name = self._numbers.setdefault(name, f"${len(self._numbers)}")
        return f"Name(id={name!r}, ctx={type(node.ctx).__name__}())"

    def _constant(self, node: ast.Constant) -> str:
        return f"Constant(value={node.value!r})"

    def _attribute(self, node: ast.Attribute) -> str:
        value, ctx = self._text(node.value), type(node.ctx).__name__
        return f"Attribute(value={value}, attr={node.attr!r}, ctx={ctx}())"

    def _arg(self, node: ast.arg) -> str:
        return f"arg(arg={node.arg!r})"

    def _annotated(self, node: ast.AnnAssign) -> str:
        target, value = self._text(node.target), self._text(node.value)
        return f"Assign(targets=[{target}], value={value})"

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        return self._fields(node, _WITHOUT_RETURNS[type(node)])

    def _import(self, node: ast.Import | ast.ImportFrom) -> str:
        renamed = (n.asname if n.asname != n.name else None for n in node.names)
        names = sorted(
            (n.name, new or "") for n, new in zip(node.names, renamed, strict=True)
        )
        texts = [
            f"alias(name={name!r}, asname={new!r})" if new else f"alias(name={name!r})"
            for name, new in names
        ]
        listed = f"names=[{', '.join(texts)}]"
        if isinstance(node, ast.Import):
            return f"Import({listed})"
        source = "" if node.module is None else f"module={node.module!r}, "
        return f"ImportFrom({source}{listed}, level={node.level})"


_BLOCKS = frozenset({"body", "orelse", "finalbody"})


@cache
def _optional(kind: type[ast.AST]) -> dict[str, bool]:
    """The fields of a node, and whether one that is empty goes unsaid."""
    return {name: getattr(kind, name, ...) is None for name in kind._fields}


_WITHOUT_RETURNS = {
    kind: {name: o for name, o in _optional(kind).items() if name != "returns"}
    for kind in function_types
}

_SPECIAL: dict[type, Callable[[_Dump, Any], str]] = {
    ast.Name: _Dump._name,
    ast.Constant: _Dump._constant,
    ast.Attribute: _Dump._attribute,
    ast.arg: _Dump._arg,
    ast.AnnAssign: _Dump._annotated,
    ast.FunctionDef: _Dump._function,
    ast.AsyncFunctionDef: _Dump._function,
    ast.Import: _Dump._import,
    ast.ImportFrom: _Dump._import,
}


def _is_talk(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assert):
        return True
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    callee: ast.expr = statement.value.func
    while isinstance(callee, ast.Attribute):
        callee = callee.value
    return isinstance(callee, ast.Name) and callee.id in _LOGGERS


@once_a_node
def _locals(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    args = node.args
    taken = {a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs]}
    outer: set[str] = set()
    stored: set[str] = set()
    for inner in parts_of(node):
        if type(inner) is ast.Name:
            if type(inner.ctx) is ast.Store:
                stored.add(inner.id)
        elif isinstance(inner, ast.Global | ast.Nonlocal):
            outer.update(inner.names)
    return stored - taken - outer


@dataclass(frozen=True)
class Returns:
    """What a function gives back, as far as its `return` statements show."""

    arities: frozenset[int] = frozenset()
    """Lengths of the tuples it spells out."""
    only_tuples: bool = False
    """Every value that it gives back is such a tuple."""
    settled: bool = False
    """Nothing that it gives back depends on arguments or on other code."""
    gives_value: bool = False
    """Some `return` carries a value other than `None`."""
    yields: bool = False


@once_a_node
def returns_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Returns:
    arities: set[int] = set()
    gives_value = yields = False
    only_tuples = settled = True
    # Of most functions, one or both of these are not needed.
    own: set[str] | None = None
    made: dict[str, list[ast.expr]] | None = None
    for inner in parts_of(*node.body, into=False):
        kind = type(inner)
        if kind is ast.Yield or kind is ast.YieldFrom:
            yields = True
        if isinstance(inner, ast.Return) and inner.value is not None:
            if made is None and not isinstance(inner.value, ast.Constant):
                made = _made(node)
            for value in _alternatives(inner.value, made or {}):
                if isinstance(value, ast.Constant) and value.value is None:
                    continue
                gives_value = True
                if settled:
                    own = _own(node) if own is None else own
                    settled = not _depends(value, own)
                if isinstance(value, ast.Tuple) and not any(
                    isinstance(element, ast.Starred) for element in value.elts
                ):
                    arities.add(len(value.elts))
                else:
                    only_tuples = False
    return Returns(
        frozenset(arities),
        only_tuples and bool(arities),
        settled and gives_value and not yields,
        gives_value,
        yields,
    )


def _own(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names of a function's variables and parameters."""
    return _locals(node) | {
        a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)
    }


def _depends(value: ast.expr, own: set[str]) -> bool:
    elsewhere = (ast.Call, ast.Await, ast.Attribute, ast.Subscript)
    return any(
        isinstance(node, elsewhere) or (isinstance(node, ast.Name) and node.id in own)
        for node in ast.walk(value)
    )


def _alternatives(value: ast.expr, made: dict[str, list[ast.expr]]) -> list[ast.expr]:
    if isinstance(value, ast.IfExp):
        return [*_alternatives(value.body, made), *_alternatives(value.orelse, made)]
    if isinstance(value, ast.Name):
        found = made.get(value.id, [])
        # Of a variable that is always a tuple spelled out, these are what it may be.
        if found and all(isinstance(one, ast.Tuple) for one in found):
            return found
    return [value]


def _made(node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, list[ast.expr]]:
    """What is assigned to each variable of a function."""
    found: dict[str, list[ast.expr]] = {}
    for inner in parts_of(node):
        if isinstance(inner, ast.Assign):
            for target in inner.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(
                            inner.value if name is target else name
                        )
        elif isinstance(inner, ast.AugAssign | ast.AnnAssign | ast.For | ast.NamedExpr):
            for name in ast.walk(inner.target):
                if isinstance(name, ast.Name):
                    found.setdefault(name.id, []).append(name)
    return found


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
    own = _own(node)
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
