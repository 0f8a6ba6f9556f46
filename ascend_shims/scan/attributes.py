"""`setattr` and `delattr`, by whatever name they are called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .evaluate import evaluate, tail
from .found import Form
from .values import UNTOLD, Param, Ref, Text, Value
from .views import dotted
from .writes import Given, given_by, write

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["PUT_BACK", "delete_attribute", "put", "set_attribute", "set_of_object"]

PUT_BACK = -1
"""Where a context manager or a fixture undoes a patch."""


def set_attribute(reader: Reader, node: ast.Call) -> bool:
    args = written_out(node.args)
    if isinstance(node.func, ast.Attribute) and tail(node.func.value) != "builtins":
        return _fixture(reader, node, node.func)
    if len(args) == 3:
        put(reader, node, "setattr", args[0], args[1], args[2])
    return True


def written_out(args: list[ast.expr]) -> list[ast.expr]:
    """Arguments, those behind a star too."""
    found: list[ast.expr] = []
    for one in args:
        inside = one.value if isinstance(one, ast.Starred) else None
        found += inside.elts if isinstance(inside, ast.Tuple | ast.List) else [one]
    return found


def _fixture(reader: Reader, node: ast.Call, func: ast.Attribute) -> bool:
    """pytest's `monkeypatch.setattr`, which puts back what it changes."""
    if isinstance(func.value, ast.Name | ast.Attribute) and node.args:
        args = node.args
        targets = evaluate(args[0], reader.scope)
        whole = [v for v in targets if isinstance(v, Text) and "." in v.value]
        given = given_by(reader, args[-1])
        for value in whole:
            names = dotted(value.value)
            write(reader, node.lineno, "setattr", names, given, undone_at=PUT_BACK)
        if not whole and len(args) >= 2:
            value_node = args[2] if len(args) > 2 else None
            put(reader, node, "setattr", args[0], args[1], value_node, PUT_BACK)
        return True
    return False


def set_of_object(reader: Reader, node: ast.Call) -> bool:
    if len(node.args) == 3:
        owner, name, value = node.args
        put(reader, node, "setattr", owner, name, value)
    return True


def delete_attribute(reader: Reader, node: ast.Call) -> bool:
    if len(node.args) >= 2:
        undone = PUT_BACK if isinstance(node.func, ast.Attribute) else 0
        put(reader, node, "delete", node.args[0], node.args[1], None, undone)
    return True


def put(
    reader: Reader,
    node: ast.Call,
    form: Form,
    owner_node: ast.expr,
    name_node: ast.expr,
    value_node: ast.expr | None,
    undone_at: int = 0,
) -> None:
    results = reader.results
    owners = results.everywhere(evaluate(owner_node, reader.scope))
    names = results.everywhere(evaluate(name_node, reader.scope))
    names = tuple(n for n in names if isinstance(n, Text | Param))
    if not owners and not names:
        reader.note_restoring(node.lineno)
    given = given_by(reader, value_node)
    line = node.lineno
    for owner in owners:
        for name in names:
            _named(reader, line, form, owner, name, given, undone_at)
        if not names and isinstance(owner, Param):
            write(reader, line, form, (), given, owner.at(UNTOLD))
        if names or not isinstance(owner, Ref):
            continue
        if reader.setting.is_foreign(owner.parts):
            what = ".".join(owner.parts)
            why = f"an attribute of `{what}` whose name is not written out"
            write(reader, line, form, (), given, unresolved=why)


def _named(
    reader: Reader,
    line: int,
    form: Form,
    owner: Value,
    name: Value,
    given: Given,
    undone_at: int,
) -> None:
    if isinstance(owner, Ref) and isinstance(name, Text):
        names = (*owner.parts, *dotted(name.value))
        if len(names) > len(owner.parts):
            write(reader, line, form, names, given, undone_at=undone_at)
    elif isinstance(owner, Param) and isinstance(name, Text):
        write(reader, line, form, (), given, owner.at(name.value))
    elif isinstance(owner, Param) and isinstance(name, Param):
        write(reader, line, form, (), given, owner.at(name))
    elif isinstance(owner, Ref) and isinstance(name, Param):
        template = Param("", (*owner.parts, name), is_module=True)
        write(reader, line, form, (), given, template)
