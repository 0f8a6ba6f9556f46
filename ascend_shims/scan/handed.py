"""Calls of functions of the scanned code: they may patch what they are handed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .evaluate import evaluate
from .raw import Call
from .values import (
    NOTHING,
    Local,
    OwnClass,
    Param,
    Ref,
    Returned,
    Seq,
    SourceOf,
    Table,
    Text,
    Value,
    Values,
    merged,
)
from .views import dotted

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["decorates", "own_function", "portable"]

_MOST = 24
"""Arguments, and items of them."""


def own_function(reader: Reader, node: ast.Call) -> None:
    """Note a call that hands over something that can be patched."""
    callees = _callees(reader, node.func)
    if callees:
        _note(reader, node, callees)
    elif isinstance(node.func, ast.Call):
        # `patched(Engine)(step)`.
        outer = _callees(reader, node.func.func)
        if outer:
            inner = _portable(reader, node.args[0]) if node.args else NOTHING
            _note(reader, node.func, outer, inner)
    elif reader.imports_by_name and isinstance(node.func, ast.Attribute):
        _of_parameter(reader, node, node.func)


def decorates(reader: Reader, decorator: ast.expr, what: Values) -> None:
    """A decorator gets the function or class below it."""
    if isinstance(decorator, ast.Call):
        callees = _callees(reader, decorator.func)
        if callees:
            _note(reader, decorator, callees, portable(reader, what))
        return
    callees = _callees(reader, decorator)
    if callees:
        bare = ast.copy_location(ast.Call(decorator, [], []), decorator)
        _note(reader, bare, callees, (), (portable(reader, what),))


def _callees(reader: Reader, func: ast.expr) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    here = tuple(reader.source.module.split("."))
    for value in evaluate(func, reader.scope):
        if isinstance(value, Local):
            callers = reader.callers.setdefault(value.qualname, {})
            callers[getattr(func, "lineno", 0)] = reader.gates
            found.append((*here, *value.qualname.split(".")))
        elif isinstance(value, OwnClass):
            found.append((*value.module, *value.qualname.split("."), "__init__"))
        elif isinstance(value, Ref) and value.parts[0] in reader.setting.own:
            found.append(value.parts)
    if not found and isinstance(func, ast.Attribute):
        for owner in evaluate(func.value, reader.scope):
            if isinstance(owner, OwnClass) and owner.bases:
                mine = (*owner.module, *owner.qualname.split("."))
                found.append((*mine, func.attr))
    return found


def _note(
    reader: Reader,
    node: ast.Call,
    callees: list[tuple[str, ...]],
    inner: Values = NOTHING,
    given: tuple[Values, ...] | None = None,
) -> None:
    here = len(reader.source.module.split("."))
    if given is None:
        given = tuple(_argument(reader, one) for one in node.args[:_MOST])
    keywords = tuple(
        (k.arg, _portable(reader, k.value)) for k in node.keywords if k.arg
    )
    if reader.reads_source:
        _note_text(reader, node, [".".join(c[here:]) for c in callees])
    everything = (*given, *(values for _, values in keywords), inner)
    if not any(_is_telling(value) for values in everything for value in values):
        return
    comment = reader.comment(node.lineno)
    for callee in callees:
        reader.facts.calls.append(
            Call(
                callee,
                node.lineno,
                given,
                keywords,
                reader.place,
                reader.gates,
                comment,
                inner,
            )
        )


def _note_text(reader: Reader, node: ast.Call, functions: list[str]) -> None:
    for argument in node.args:
        for value in evaluate(argument, reader.scope):
            if isinstance(value, SourceOf):
                reader.facts.read_by += [(value.line, name) for name in functions]


def _of_parameter(reader: Reader, node: ast.Call, func: ast.Attribute) -> None:
    """`patch.apply(import_module(patch.target))`, where `patch` is a parameter."""
    for owner in evaluate(func.value, reader.scope):
        if not isinstance(owner, Param) or not owner.name or owner.name == "*":
            continue
        given = tuple(_portable(reader, one) for one in node.args[:_MOST])
        if not any(_is_of(value, owner) for values in given for value in values):
            continue
        reader.facts.calls.append(
            Call(
                (func.attr,),
                node.lineno,
                given,
                (),
                reader.place,
                reader.gates,
                of=owner,
            )
        )


def _is_of(value: Value, owner: Param) -> bool:
    if isinstance(value, Param):
        size = len(owner.path)
        inside = value.path[:size] == owner.path and len(value.path) > size
        return value.is_module and value.name == owner.name and inside
    return False


def _argument(reader: Reader, node: ast.expr) -> Values:
    return () if isinstance(node, ast.Starred) else _portable(reader, node)


def _portable(reader: Reader, node: ast.expr) -> Values:
    kept = (
        ast.Name,
        ast.Attribute,
        ast.Constant,
        ast.Call,
        ast.List,
        ast.Tuple,
        ast.Dict,
        ast.Subscript,
    )
    if not isinstance(node, kept):
        return NOTHING
    return portable(reader, evaluate(node, reader.scope))


def portable(reader: Reader, values: Values, deep: int = 0) -> Values:
    """Values without syntax in them: functions and classes as dotted names."""
    found: list[Value] = []
    here = tuple(reader.source.module.split("."))
    for value in reader.results.of(values) if _worth(reader, values) else values:
        if isinstance(value, Local):
            found.append(Ref((*here, *value.qualname.split("."))))
        elif isinstance(value, OwnClass):
            found.append(Ref((*value.module, *value.qualname.split("."))))
        elif isinstance(value, Ref | Param | Text):
            found.append(value)
        elif isinstance(value, Seq) and deep < 3:
            items = (portable(reader, one, deep + 1) for one in value.items[:_MOST])
            found.append(Seq(tuple(items)))
        elif isinstance(value, Table) and deep < 3:
            pairs = (
                (portable(reader, k, deep + 1), portable(reader, v, deep + 1))
                for k, v in value.items[:_MOST]
            )
            found.append(Table(tuple(pairs)))
    return merged(tuple(found))


def _worth(reader: Reader, values: Values) -> bool:
    """Whether functions are to be asked: of those of this file, which are at hand."""
    return any(
        isinstance(v, Returned) and isinstance(v.function, Local) for v in values
    ) and bool(reader.setting.own)


def _is_telling(value: Value) -> bool:
    """Whether something may be a target, or its name."""
    if isinstance(value, Ref):
        return True
    if isinstance(value, Text):
        return bool(dotted(value.value))
    if isinstance(value, Param):
        return True
    if isinstance(value, Seq):
        return any(_is_telling(v) for item in value.items for v in item)
    if isinstance(value, Table):
        return any(_is_telling(v) for pair in value.items for one in pair for v in one)
    return False
