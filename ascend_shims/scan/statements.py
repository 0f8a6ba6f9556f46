"""Kinds of statements: what each binds, changes, and under which conditions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .calls import entered
from .conditional import chosen, note_patcher
from .evaluate import evaluate, tail
from .found import Gate
from .imports import bind
from .loops import one_round, rounds
from .values import NOTHING, Modules, Ref, Space, Test, Values
from .writes import delete, given_by, store

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["STATEMENTS"]

_CATCHES = ("ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "")
"""What is caught where something upstream may be missing."""


def _assign(reader: Reader, node: ast.Assign) -> None:
    note_patcher(reader, node.targets, node.value)
    reader.expressions(node)
    given = given_by(reader, node.value)
    if not given.values and isinstance(node.targets[0], ast.Name):
        given = replace(given, values=_condition(reader, node.value))
    for target in node.targets:
        value, gates = chosen(reader, target, node.value)
        put = given if value is node.value else given_by(reader, value)
        with reader.under(*gates):
            store(reader, target, put, node.lineno)


def _condition(reader: Reader, value: ast.expr) -> Values:
    """A condition about versions that is given a name."""
    if not isinstance(value, ast.Compare | ast.Call | ast.BoolOp | ast.UnaryOp):
        return NOTHING
    true = reader.conditions(value, holds=True)
    if any(gate.kind == "version" for gate in true):
        return (Test(true, reader.conditions(value, holds=False)),)
    return NOTHING


def _assert(reader: Reader, node: ast.Assert) -> None:
    """What follows is for the versions that are asked for."""
    reader.expressions(node)
    met = reader.conditions(node.test, holds=True)
    reader.gates = (*reader.gates, *(one for one in met if one.kind == "version"))


def _annotated(reader: Reader, node: ast.AnnAssign) -> None:
    reader.expressions(node)
    if node.value is not None:
        store(reader, node.target, given_by(reader, node.value), node.lineno)


def _augmented(reader: Reader, node: ast.AugAssign) -> None:
    reader.expressions(node)
    given = given_by(reader, node.value)
    if isinstance(node.target, ast.Name):
        added = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        given = replace(given, values=evaluate(added, reader.scope))
    elif _counts(node) or _joins(reader, node):
        return
    store(reader, node.target, given, node.lineno)


def _counts(node: ast.AugAssign) -> bool:
    """`counter.captured += 1` is what counters are for."""
    number = isinstance(node.value, ast.Constant) and type(node.value.value) is int
    return number and isinstance(node.op, ast.Add | ast.Sub)


def _joins(reader: Reader, node: ast.AugAssign) -> bool:
    """`sys.modules |= {…}`, which is read like `sys.modules.update({…})`."""
    spaces = evaluate(node.target, reader.scope)
    if not any(isinstance(value, Modules | Space) for value in spaces):
        return False
    func = ast.Attribute(node.target, "update", ast.Load())
    reader.expressions(ast.copy_location(ast.Call(func, [node.value], []), node))
    return True


def _return(reader: Reader, node: ast.Return) -> None:
    reader.expressions(node)
    if reader.silent and node.value is not None:
        reader.given.append(evaluate(node.value, reader.scope))


def _delete(reader: Reader, node: ast.Delete) -> None:
    for target in node.targets:
        delete(reader, target, node.lineno)


def _import(reader: Reader, node: ast.Import | ast.ImportFrom) -> None:
    bind(reader, node)


def _if(reader: Reader, node: ast.If) -> bool:
    reader.expressions(node.test)
    if tail(node.test) == "TYPE_CHECKING":
        reader.silent += 1
        reader.block(node.body)
        reader.silent -= 1
        return reader.block(node.orelse)
    met = reader.conditions(node.test, holds=True)
    unmet = reader.conditions(node.test, holds=False)
    ended, else_ended = reader.branches([(node.body, met), (node.orelse, unmet)])
    # What follows a branch that leaves is under the other one's conditions.
    if ended and not else_ended:
        reader.gates = (*reader.gates, *unmet)
    elif else_ended and not ended:
        reader.gates = (*reader.gates, *met)
    return ended and else_ended


def _try(reader: Reader, node: ast.Try) -> bool:
    caught = list(dict.fromkeys(n for h in node.handlers for n in _names(h.type)))
    place = reader.place
    guarded = [name for name in caught if name in _CATCHES]
    gates: tuple[Gate, ...] = ()
    if guarded:
        gates = (Gate(f"try: … except {guarded[0]}".rstrip(), "try"),)
    (ended,) = reader.branches([([*node.body, *node.orelse], gates)]) or (False,)
    yielded = reader.place.leaving
    handlers = []
    for handler in node.handlers:
        named = ", ".join(_names(handler.type))
        gate = Gate(f"except {named}".rstrip(), "try")
        handlers.append((handler.body, (gate,) if guarded else ()))
    body = dict(reader.scope.names)
    reader.place = replace(reader.place, cleaning=True)
    left = reader.branches(handlers)
    if not all(left) or not left:
        _note_either(reader, body, reader.scope.names)
        reader.scope.join([body, reader.scope.names])
    else:
        reader.scope.names = body
    reader.place = replace(place, cleaning=True, leaving=yielded)
    reader.block(node.finalbody)
    reader.place = replace(place, leaving=yielded)
    return ended and bool(left) and all(left)


def _note_either(
    reader: Reader, body: dict[str, Values], handlers: dict[str, Values]
) -> None:
    """A name that is imported from one place, or else from another."""
    for name, values in handlers.items():
        for one in body.get(name, ()):
            for other in values:
                if isinstance(one, Ref) and isinstance(other, Ref) and one != other:
                    reader.facts.either.append((one.parts, other.parts))


def _names(node: ast.expr | None) -> list[str]:
    if isinstance(node, ast.Tuple):
        return [tail(one) for one in node.elts]
    return [tail(node)]


def _with(reader: Reader, node: ast.With | ast.AsyncWith) -> bool:
    gates: list[Gate] = []
    for item in node.items:
        context = item.context_expr
        entered(reader, context)
        if isinstance(context, ast.Call) and tail(context.func) == "suppress":
            gates.append(Gate(reader.lines.spelled(context), "suppress"))
        if item.optional_vars is not None:
            store(reader, item.optional_vars, given_by(reader, None), node.lineno)
    with reader.under(*gates):
        ended = reader.block(node.body)
    return ended and not gates


def _for(reader: Reader, node: ast.For | ast.AsyncFor) -> None:
    reader.expressions(node.iter)
    items = rounds(reader, node.iter)
    if items is None:
        each = replace(given_by(reader, None), values=one_round(reader, node.iter))
        store(reader, node.target, each, node.lineno)
        reader.branches([(node.body, ()), ([], ())])
    else:
        for item in items:
            given = replace(given_by(reader, None), values=item)
            store(reader, node.target, given, node.lineno)
            gates = reader.gates
            reader.block(node.body)
            reader.gates = gates
    reader.block(node.orelse)


def _while(reader: Reader, node: ast.While) -> None:
    reader.expressions(node.test)
    gates = reader.conditions(node.test, holds=True)
    reader.branches([(node.body, gates), (node.orelse, ())])


def _match(reader: Reader, node: ast.Match) -> None:
    reader.expressions(node.subject)
    subject = reader.lines.spelled(node.subject, 40)
    blocks = []
    for case in node.cases:
        gate = Gate(f"{subject} is {reader.lines.spelled(case.pattern, 40)}", "other")
        blocks.append((case.body, (gate,)))
    reader.branches([*blocks, ([], ())])


def _global(reader: Reader, node: ast.Global | ast.Nonlocal) -> None:
    reader.scope.elsewhere.update(node.names)


def _define(reader: Reader, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    reader.define(node)


def _class(reader: Reader, node: ast.ClassDef) -> None:
    reader.class_(node)


STATEMENTS: dict[type, Callable[[Reader, Any], bool | None]] = {
    ast.Assert: _assert,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.Import: _import,
    ast.ImportFrom: _import,
    ast.If: _if,
    ast.Try: _try,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.Match: _match,
    ast.Global: _global,
    ast.Nonlocal: _global,
    ast.FunctionDef: _define,
    ast.AsyncFunctionDef: _define,
    ast.ClassDef: _class,
    ast.Return: _return,
}
if hasattr(ast, "TryStar"):
    STATEMENTS[ast.TryStar] = _try
