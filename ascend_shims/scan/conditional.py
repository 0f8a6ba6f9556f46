"""Conditions within an expression, and what is put back later on."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from .evaluate import evaluate, tail
from .found import Gate
from .mocks import is_mock
from .values import Seq, Test, Text, Values, VersionOf

if TYPE_CHECKING:
    from .reader import Reader

__all__ = [
    "chosen",
    "conditional",
    "deferred",
    "note_patcher",
    "note_stopped",
    "settled",
    "with_stopped",
]

_ALL = ""
"""`patch.stopall()`, among the names of patchers."""

_CHANGING = ("setattr", "delattr")


def settled(reader: Reader, node: ast.expr) -> Values:
    """What is asked for in a condition, constants of other modules too."""
    values = evaluate(node, reader.scope)
    found = reader.results.everywhere(values)
    told = found and all(isinstance(v, Text | VersionOf | Test | Seq) for v in found)
    return found if told else values


def conditional(reader: Reader, node: ast.BoolOp | ast.IfExp) -> bool:
    """Read `a and b()`, `a or b()` and `b() if a else c()`, each under its conditions.

    False where nothing in them is called under one.
    """
    if isinstance(node, ast.IfExp):
        if not (_calls(node.body) or _calls(node.orelse)):
            return False
        reader.expressions(node.test)
        for branch, holds in ((node.body, True), (node.orelse, False)):
            with reader.under(*reader.conditions(node.test, holds=holds)):
                reader.expressions(branch)
        return True
    if not any(map(_calls, node.values[1:])):
        return False
    holds = isinstance(node.op, ast.And)
    before = reader.gates
    for value in node.values:
        reader.expressions(value)
        reader.gates = (*reader.gates, *reader.conditions(value, holds=holds))
    reader.gates = before
    return True


def _calls(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Call) for one in ast.walk(node))


def chosen(
    reader: Reader, target: ast.expr, value: ast.expr
) -> tuple[ast.expr, tuple[Gate, ...]]:
    """Of `m.f = new if a else m.f`: what is put there, and under which conditions."""
    if isinstance(value, ast.IfExp) and not isinstance(target, ast.Name):
        same = ast.unparse(target)
        if ast.unparse(value.orelse) == same:
            return value.body, reader.conditions(value.test, holds=True)
        if ast.unparse(value.body) == same:
            return value.orelse, reader.conditions(value.test, holds=False)
    return value, ()


# What is put back later --------------------------------------------------------------


def deferred(reader: Reader, node: ast.Call) -> bool:
    """`stack.callback(setattr, m, "f", m.f)`: run when what is around is left."""
    if not node.args or tail(node.args[0]) not in _CHANGING:
        return False
    _, *args = node.args
    if len(args) == 3:
        # What is there now is put back then, under whatever name it is kept.
        kept = ast.copy_location(ast.Name("<kept>", ast.Load()), args[2])
        reader.scope.bind(kept.id, evaluate(args[2], reader.scope))
        args = [*args[:2], kept]
    place = reader.place
    reader.place = replace(place, leaving=True, cleaning=True)
    later = ast.Call(ast.Name(tail(node.args[0]), ast.Load()), args, [])
    reader.expressions(ast.copy_location(later, node))
    reader.place = place
    return True


def note_patcher(reader: Reader, targets: list[ast.expr], value: ast.expr) -> None:
    """`patcher = mock.patch(…)`, which is started and stopped by that name."""
    if isinstance(value, ast.Call) and is_mock(reader, value):
        for target in targets:
            reader.patchers[ast.unparse(target)] = value.lineno


def note_stopped(reader: Reader, node: ast.Attribute) -> None:
    """`patcher.stop`, called or handed to whoever cleans up."""
    if node.attr == "stop":
        reader.stopped[ast.unparse(node.value)] = node.lineno
    elif node.attr == "stopall":
        reader.stopped[_ALL] = node.lineno


def with_stopped(reader: Reader) -> None:
    """Say of each patch whose patcher is stopped that it is undone there."""
    lines = {
        line: reader.stopped.get(name) or reader.stopped.get(_ALL, 0)
        for name, line in reader.patchers.items()
    }
    reader.facts.raws = [
        replace(raw, undone_at=lines[raw.line])
        if raw.form == "patch-call" and not raw.undone_at and lines.get(raw.line)
        else raw
        for raw in reader.facts.raws
    ]
