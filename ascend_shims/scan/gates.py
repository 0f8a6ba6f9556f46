"""Conditions, as text and as version ranges where they are about versions."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from .asked import Asked, Eval, asked
from .evaluate import tail
from .found import Gate
from .unions import negated, union
from .values import Local, Test

__all__ = ["Reading", "read"]

_DEEP = 8
"""Functions that call functions are not followed further."""


class Reading(NamedTuple):
    """What a condition is read with."""

    evaluate: Eval
    spelled: Callable[[ast.AST], str]


def read(test: ast.expr, by: Reading, *, holds: bool = True) -> tuple[Gate, ...]:
    """The conditions that are met where `test` holds, or where it does not.

    Of several versions, one of which is meant, the range is the one around them. Where
    others are between them, the condition stays beside it as text.
    """
    return _read(test, by, holds, by.spelled, 0)


def _read(
    test: ast.expr,
    by: Reading,
    holds: bool,
    spelled: Callable[[ast.AST], str],
    deep: int,
) -> tuple[Gate, ...]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _read(test.operand, by, not holds, spelled, deep)
    if isinstance(test, ast.NamedExpr):
        return _read(test.value, by, holds, spelled, deep)
    text = _said(test, spelled(test), holds)
    if isinstance(test, ast.BoolOp):
        parts = [_read(value, by, holds, spelled, deep) for value in test.values]
        return _joined(parts, isinstance(test.op, ast.And) is holds, text)
    if isinstance(test, ast.Compare) and len(test.ops) > 1:
        ends = [test.left, *test.comparators]
        pairs = [
            ast.Compare(ends[i], [op], [ends[i + 1]]) for i, op in enumerate(test.ops)
        ]
        parts = [_read(one, by, holds, lambda _: text, deep) for one in pairs]
        # Each says only the whole, so that one that is no range says it once.
        parts = [_named(part, text) for part in parts]
        return tuple(dict.fromkeys(_joined(parts, holds, text)))
    if isinstance(test, ast.Constant):
        return () if bool(test.value) is holds else (Gate(text, "never"),)
    kept = _kept(test, by.evaluate, holds)
    if kept is not None:
        return kept
    if isinstance(test, ast.Call):
        inside = _defined(test, by, holds, text, deep)
        if inside is not None:
            return inside
    found = asked(test, by.evaluate)
    if found is not None:
        return _ranged(found, holds, text)
    if isinstance(test, ast.Call) and tail(test.func) == "hasattr":
        return (Gate(text, "exists"),)
    return (Gate(text, "other"),)


def _said(test: ast.expr, text: str, holds: bool) -> str:
    if holds:
        return text
    simple = isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Constant)
    return f"not {text}" if simple else f"not ({text})"


def _named(gates: tuple[Gate, ...], text: str) -> tuple[Gate, ...]:
    return tuple(replace(gate, text=text) for gate in gates)


def _ranged(found: Asked, holds: bool, text: str) -> tuple[Gate, ...]:
    def gate(range_: str) -> tuple[Gate, ...]:
        return (Gate(text, "version", found.package, range_),)

    if holds:
        return _joined([gate(one) for one in found.any_of], False, text)
    parts = [
        _joined([gate(one) for one in negated(each)], False, text)
        for each in found.any_of
    ]
    return tuple(dict.fromkeys(_joined(parts, True, text)))


def _joined(
    parts: Sequence[tuple[Gate, ...]], is_all: bool, text: str
) -> tuple[Gate, ...]:
    """Where all of them are met, or one of them is."""
    if is_all:
        return tuple(gate for part in parts for gate in part)
    alive = [part for part in parts if all(gate.kind != "never" for gate in part)]
    if not alive:
        return (Gate(text, "never"),)
    if not all(alive):
        # One of them always is.
        return ()
    if len(alive) == 1:
        return alive[0]
    found, same = [], True
    packages = dict.fromkeys(g.package for part in alive for g in part if g.range)
    for package in packages:
        ranges = [
            ",".join(g.range for g in part if g.range and g.package == package)
            for part in alive
        ]
        if not all(ranges):
            same = False
            continue
        range_, is_same = union(ranges)
        same = same and is_same
        if range_:
            found.append(Gate(text, "version", package, range_))
    versions = {gate.package for part in alive for gate in part if gate.range}
    only = all(gate.kind == "version" for part in alive for gate in part)
    if same and only and len(versions) == 1:
        return tuple(found)
    return (*found, Gate(text, "other"))


def _kept(test: ast.expr, evaluate: Eval, holds: bool) -> tuple[Gate, ...] | None:
    """Of a condition that was given a name before."""
    if not isinstance(test, ast.Name | ast.Attribute):
        return None
    tests = [value for value in evaluate(test) if isinstance(value, Test)]
    if len(tests) != 1:
        return None
    return tests[0].true if holds else tests[0].false


# Functions of the same file ----------------------------------------------------------


def _defined(
    test: ast.Call, by: Reading, holds: bool, text: str, deep: int
) -> tuple[Gate, ...] | None:
    """What a function says that does nothing but return a condition."""
    values = by.evaluate(test.func)
    if deep >= _DEEP or len(values) != 1 or not isinstance(values[0], Local):
        return None
    body = _returned(values[0].node)
    given = _arguments(values[0].node, test)
    if body is None or given is None:
        return None
    filled = _Filling(given).visit(copy.deepcopy(body))
    gates = _read(filled, by, holds, lambda _: text, deep + 1)
    if not any(gate.kind == "version" for gate in gates):
        return None
    return tuple(dict.fromkeys(_named(gates, text)))


def _returned(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
) -> ast.expr | None:
    if isinstance(node, ast.Lambda):
        return node.body
    if isinstance(node, ast.AsyncFunctionDef):
        return None
    body = [one for one in node.body if not _is_text(one)]
    if len(body) == 1 and isinstance(body[0], ast.Return):
        return body[0].value
    return None


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _arguments(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, call: ast.Call
) -> dict[str, ast.expr] | None:
    """What each parameter is in a call; `None` where that cannot be told."""
    args = node.args
    names = [one.arg for one in (*args.posonlyargs, *args.args)]
    if args.kwarg or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    given: dict[str, ast.expr] = {}
    if args.defaults:
        given = dict(zip(names[-len(args.defaults) :], args.defaults, strict=True))
    for only, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        names.append(only.arg)
        if default is not None:
            given[only.arg] = default
    positional = names[: len(names) - len(args.kwonlyargs)]
    given |= dict(zip(positional, call.args, strict=False))
    rest = call.args[len(positional) :]
    if args.vararg is not None:
        given[args.vararg.arg] = ast.Tuple(rest, ast.Load())
    elif rest:
        return None
    for keyword in call.keywords:
        if keyword.arg not in names:
            return None
        given[keyword.arg] = keyword.value
    return given if all(name in given for name in names) else None


class _Filling(ast.NodeTransformer):
    def __init__(self, given: dict[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._given.get(node.id, node)
