"""`unittest.mock.patch` and its kin, and wrapt."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .attributes import put
from .evaluate import evaluate, tail
from .values import Modules, Param, Ref, Table, Text, Value, Values
from .views import dotted
from .writes import NONE, Given, given_by, write

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["entries", "is_mock", "mock", "mocked", "modules", "wrapt", "wrapt_call"]


def is_mock(reader: Reader, node: ast.Call) -> bool:
    for value in evaluate(node.func, reader.scope):
        if isinstance(value, Ref):
            return "mock" in value.parts and "patch" in value.parts
    func: ast.expr = node.func
    while isinstance(func, ast.Attribute):
        func = func.value
    return isinstance(func, ast.Name) and func.id in ("mocker", "mock")


def mocked(reader: Reader, node: ast.Call) -> bool:
    if not is_mock(reader, node):
        return False
    mock(reader, node)
    return True


def mock(reader: Reader, node: ast.Call, undone_at: int = 0) -> None:
    args, line = node.args, node.lineno
    name = tail(node.func)
    first = evaluate(args[0], reader.scope) if args else ()
    if name == "object" and len(args) >= 2:
        new = args[2] if len(args) > 2 else None
        put(reader, node, "patch-call", args[0], args[1], new, undone_at)
    elif name == "dict":
        _mocked_table(reader, node, first, undone_at)
    elif name == "multiple":
        for owner in modules(first):
            for keyword in node.keywords:
                if isinstance(owner, Ref) and keyword.arg is not None:
                    names = (*owner.parts, keyword.arg)
                    given = given_by(reader, keyword.value)
                    write(reader, line, "patch-call", names, given, undone_at=undone_at)
    else:
        given = given_by(reader, args[1] if len(args) > 1 else None)
        for value in first:
            if isinstance(value, Text):
                names = dotted(value.value)
                write(reader, line, "patch-call", names, given, undone_at=undone_at)


def _mocked_table(
    reader: Reader, node: ast.Call, first: Values, undone_at: int
) -> None:
    tables = evaluate(node.args[1], reader.scope) if len(node.args) > 1 else ()
    for owner in first:
        if isinstance(owner, Modules) or owner == Text("sys.modules"):
            for names, given in entries(reader, tables, node):
                write(
                    reader,
                    node.lineno,
                    "sys-modules",
                    names,
                    given,
                    undone_at=undone_at,
                )
        else:
            for ref in modules((owner,)):
                if isinstance(ref, Ref) and reader.setting.is_upstream(ref.parts):
                    write(
                        reader,
                        node.lineno,
                        "table",
                        ref.parts,
                        NONE,
                        undone_at=undone_at,
                    )


def entries(
    reader: Reader, tables: Values, node: ast.Call
) -> Iterator[tuple[tuple[str, ...], Given]]:
    for table in tables:
        for keys, values in table.items if isinstance(table, Table) else ():
            for key in keys:
                if isinstance(key, Text) and dotted(key.value):
                    yield dotted(key.value), Given(values)
                elif isinstance(key, Param):
                    yield (), Given((key,))
    for keyword in node.keywords:
        if keyword.arg is not None:
            yield (keyword.arg,), given_by(reader, keyword.value)


def wrapt_call(reader: Reader, node: ast.Call) -> bool:
    index = 2 if len(node.args) > 2 else len(node.args)
    value = node.args[index] if index < len(node.args) else None
    for keyword in node.keywords:
        if keyword.arg in ("wrapper", "factory"):
            value = keyword.value
    wrapt(reader, node, given_by(reader, value))
    return True


def wrapt(reader: Reader, node: ast.Call, given: Given) -> None:
    reader.done.add(id(node))
    args = {k.arg: k.value for k in node.keywords if k.arg}
    module = node.args[0] if node.args else args.get("target", args.get("module"))
    name = node.args[1] if len(node.args) > 1 else args.get("name")
    for owner in modules(evaluate(module, reader.scope)):
        for text in evaluate(name, reader.scope):
            if isinstance(owner, Ref) and isinstance(text, Text):
                names = (*owner.parts, *dotted(text.value))
                # Its parameters are wrapt's, not the target's.
                bare = Given((), given.node, given.text)
                write(reader, node.lineno, "wrapt", names, bare, how="wraps_function")
            elif isinstance(owner, Param) and isinstance(text, Text | Param):
                part = text.value if isinstance(text, Text) else text
                write(reader, node.lineno, "wrapt", (), given, owner.at(part))


def modules(values: Values) -> Values:
    """Texts of dotted names as what they name."""
    found: list[Value] = []
    for value in values:
        if isinstance(value, Text):
            parts = dotted(value.value)
            found += [Ref(parts)] if parts else []
        else:
            found.append(value)
    return tuple(found)
