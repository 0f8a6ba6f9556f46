"""One pass over a file: its calls, look-ups and assignments, each with its place."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ascend_shims.upstream.facts.scope import Binding, imports_of

__all__ = ["Call", "Index", "Place", "index_of", "tail"]


@dataclass(frozen=True, eq=False)
class Place:
    """Where in a file something stands."""

    qualname: str
    """Of the innermost function or class; empty at module level."""
    owner: str
    """Qualified name of the innermost class around; empty outside classes."""
    functions: tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, ...]
    """Innermost last."""


Stack: TypeAlias = list[tuple[ast.AST, Place]]


@dataclass(frozen=True, eq=False)
class Call:
    node: ast.Call
    callee: ast.expr
    """What is called; of a launch `kernel[grid](...)` the kernel."""
    place: Place
    is_launch: bool = False


@dataclass(eq=False)
class Index:
    calls: dict[str, list[Call]] = field(default_factory=dict)
    """By the last identifier of what is called."""
    names: dict[str, list[Place]] = field(default_factory=dict)
    """Loads of plain names."""
    attributes: dict[str, list[tuple[ast.Attribute, Place]]] = field(
        default_factory=dict
    )
    """Loads of attributes, by attribute."""
    assigned: dict[str, list[tuple[ast.expr, ast.expr, Place]]] = field(
        default_factory=dict
    )
    """Assignments, by the last identifier of the target: target, value, place."""
    declared: dict[str, list[tuple[ast.expr, ast.expr, Place]]] = field(
        default_factory=dict
    )
    """Annotations of assigned targets, in the same way."""
    imports: list[tuple[Binding, Place]] = field(default_factory=list)
    """Import statements inside functions."""


def tail(node: ast.expr | None) -> str:
    """The last identifier of a dotted expression, else nothing."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def index_of(tree: ast.Module) -> Index:
    index = Index()
    # An explicit stack: deeply nested expressions must not exhaust Python's.
    top = Place("", "", ())
    stack: list[tuple[ast.AST, Place]] = [(tree, top)]
    while stack:
        node, place = stack.pop()
        kind = type(node)
        if kind is ast.Name:
            if type(node.ctx) is ast.Load:  # type: ignore[attr-defined]
                index.names.setdefault(node.id, []).append(place)  # type: ignore[attr-defined]
            continue
        if kind is ast.Constant:
            continue
        visit = _VISITS.get(kind)
        if visit is not None:
            place = visit(index, node, place, stack)
        if kind is ast.FunctionDef or kind is ast.AsyncFunctionDef:
            stack += [(child, place) for child in reversed(node.body)]  # type: ignore[attr-defined]
            continue
        for name in reversed(_FIELDS.get(kind) or kind._fields):
            value = getattr(node, name, None)
            if type(value) is list:
                stack += [(v, place) for v in reversed(value) if isinstance(v, ast.AST)]
            elif isinstance(value, ast.AST):
                stack.append((value, place))
    return index


def _function(
    _index: Index,
    node: ast.FunctionDef | ast.AsyncFunctionDef,
    place: Place,
    stack: Stack,
) -> Place:
    # Decorators, defaults and annotations are evaluated outside.
    stack.extend((child, place) for child in node.decorator_list)
    stack.append((node.args, place))
    if node.returns is not None:
        stack.append((node.returns, place))
    return Place(
        f"{place.qualname}.{node.name}".lstrip("."),
        place.owner,
        (*place.functions, node),
    )


def _class(_index: Index, node: ast.ClassDef, place: Place, _stack: Stack) -> Place:
    qualname = f"{place.qualname}.{node.name}".lstrip(".")
    return Place(qualname, qualname, ())


def _lambda(_index: Index, node: ast.Lambda, place: Place, _stack: Stack) -> Place:
    return Place(place.qualname, place.owner, (*place.functions, node))


def _call(index: Index, node: ast.Call, place: Place, _stack: Stack) -> Place:
    callee, launch = node.func, False
    if isinstance(callee, ast.Subscript) and tail(callee.value):
        callee, launch = callee.value, True
    name = tail(callee)
    if name:
        index.calls.setdefault(name, []).append(Call(node, callee, place, launch))
    return place


def _attribute(index: Index, node: ast.Attribute, place: Place, _stack: Stack) -> Place:
    if isinstance(node.ctx, ast.Load):
        index.attributes.setdefault(node.attr, []).append((node, place))
    return place


def _assignment(index: Index, node: ast.Assign, place: Place, _stack: Stack) -> Place:
    for target in node.targets:
        _assign(index, target, node.value, place)
    return place


def _annotated(index: Index, node: ast.AnnAssign, place: Place, _stack: Stack) -> Place:
    entry = (node.target, node.annotation, place)
    index.declared.setdefault(tail(node.target), []).append(entry)
    if node.value is not None:
        _assign(index, node.target, node.value, place)
    return place


def _walrus(index: Index, node: ast.NamedExpr, place: Place, _stack: Stack) -> Place:
    _assign(index, node.target, node.value, place)
    return place


def _import(
    index: Index, node: ast.Import | ast.ImportFrom, place: Place, _stack: Stack
) -> Place:
    if place.functions:
        index.imports.extend((found, place) for found in imports_of(node, "always"))
    return place


def _assign(index: Index, target: ast.expr, value: ast.expr, place: Place) -> None:
    if isinstance(target, ast.Tuple | ast.List):
        values: list[ast.expr] | None = None
        if isinstance(value, ast.Tuple | ast.List):
            values = value.elts
        if values is None or len(values) != len(target.elts):
            return
        for one, its in zip(target.elts, values, strict=True):
            _assign(index, one, its, place)
        return
    name = tail(target)
    if name:
        index.assigned.setdefault(name, []).append((target, value, place))


_VISITS: dict[type, Callable[[Index, Any, Place, Stack], Place]] = {
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Lambda: _lambda,
    ast.Call: _call,
    ast.Attribute: _attribute,
    ast.Assign: _assignment,
    ast.AnnAssign: _annotated,
    ast.NamedExpr: _walrus,
    ast.Import: _import,
    ast.ImportFrom: _import,
}

_FIELDS: dict[type, tuple[str, ...]] = {
    ast.Attribute: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.BinOp: ("left", "right"),
    ast.Compare: ("left", "comparators"),
    ast.Import: (),
    ast.ImportFrom: (),
}
"""Fields with something inside, of the most frequent nodes."""
