"""Loops over what is written out, one round after the other."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from .evaluate import evaluate
from .scopes import Scope
from .values import Param, Ref, Seq, Table, Values, merged
from .views import view
from .writes import Given, store

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["comprehended", "one_round", "rounds"]

_UNROLLED = 512
"""Rounds of loops over what is written out, in one file."""


def rounds(reader: Reader, node: ast.expr) -> list[Values] | None:
    """What the loop's name stands for in each round; `None` where that is not known."""
    found: list[Values] = []
    known = False
    values = evaluate(node, reader.scope)
    if any(not isinstance(value, Seq | Table) for value in values):
        values = reader.results.everywhere(values)
    for value in _viewed(reader, node) or values:
        if isinstance(value, Table):
            value = Seq(tuple(key for key, _ in value.items))
        if isinstance(value, Seq):
            known = True
            found += value.items
    reader.rounds += len(found)
    if not known or reader.rounds > _UNROLLED:
        return None
    return found


def _viewed(reader: Reader, node: ast.expr) -> Values:
    """`TABLE.items()`, where the table is in another module."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ()
    owners = evaluate(node.func.value, reader.scope)
    if node.args or not any(isinstance(owner, Ref) for owner in owners):
        return ()
    name = node.func.attr
    tables = reader.results.everywhere(owners)
    return merged(*(view(one, name) for one in tables if isinstance(one, Table)))


def one_round(reader: Reader, node: ast.expr) -> Values:
    """What is known of the loop's name without knowing its rounds."""
    values = evaluate(node, reader.scope)
    return tuple(
        replace(value, cut="each")
        for value in values
        if isinstance(value, Param) and not value.cut and value.name not in ("", "*")
    )


def comprehended(
    reader: Reader, node: ast.ListComp | ast.SetComp | ast.GeneratorExp
) -> bool:
    """A comprehension whose rounds are known; whether it is one."""
    if len(node.generators) != 1 or not isinstance(node.elt, ast.Call):
        return False
    loop = node.generators[0]
    items = rounds(reader, loop.iter)
    if items is None:
        return False
    reader.expressions(loop.iter)
    outer = reader.scope
    for item in items:
        reader.scope = Scope(outer)
        store(reader, loop.target, Given(item), node.lineno)
        for part in (*loop.ifs, node.elt):
            reader.expressions(part)
    reader.scope = outer
    return True
