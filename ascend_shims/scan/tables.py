"""Lists and mappings that are changed: upstream's tables, `sys.modules`, namespaces."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from .evaluate import evaluate, tail
from .found import Form
from .mocks import entries
from .tabular import is_table
from .values import Modules, Param, Ref, Returned, Seq, Space, Table, Value, Values
from .writes import NONE, given_by, store, write

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["mutated", "set_item"]

_ARGUMENTS = {
    "append": (1, 1),
    "extend": (1, 1),
    "insert": (2, 2),
    "remove": (1, 1),
    "add": (1, 1),
    "discard": (1, 1),
    "pop": (0, 2),
    "popitem": (0, 0),
    "clear": (0, 0),
    "setdefault": (1, 2),
}
"""How many there are of those of lists, sets and mappings."""
_KEPT = 64
"""Items of a list of the code's own."""


def mutated(reader: Reader, node: ast.Call, func: ast.Attribute) -> None:
    fewest, most = _ARGUMENTS.get(func.attr, (0, 1 << 30))
    if not fewest <= len(node.args) <= most:
        return
    for owner in evaluate(func.value, reader.scope):
        if isinstance(owner, Ref) and is_table(reader, owner.parts):
            write(reader, node.lineno, "table", owner.parts, NONE)
        elif isinstance(owner, Modules | Space):
            _entries(reader, node, func.attr, owner)
        elif isinstance(owner, Seq) and func.attr == "append":
            _appended(reader, node, func.value, owner)


def _entries(reader: Reader, node: ast.Call, how: str, owner: Modules | Space) -> None:
    tables = evaluate(node.args[0], reader.scope) if node.args else ()
    if how in ("setdefault", "pop"):
        tables = tuple(Table((((v,), ()),)) for v in tables)
    form: Form = "sys-modules" if isinstance(owner, Modules) else "namespace"
    before = () if isinstance(owner, Modules) else owner.of.parts
    for names, given in entries(reader, tables, node):
        if names:
            write(reader, node.lineno, form, (*before, *names), given)
        else:
            key = next(v for v in given.values if isinstance(v, Param))
            kept = replace(key, is_module=True)
            if before:
                kept = Param("", (*before, key), is_module=True)
            write(reader, node.lineno, form, (), NONE, kept)


def _appended(reader: Reader, node: ast.Call, what: ast.expr, to: Seq) -> None:
    """A list of the code's own grows by something that can be patched."""
    given = evaluate(node.args[0], reader.scope)
    if isinstance(what, ast.Name) and _tells(given) and len(to.items) < _KEPT:
        reader.scope.bind(what.id, (Seq((*to.items, given)),))


def _tells(values: Values) -> bool:
    return any(_one_tells(value) for value in values)


def _one_tells(value: Value) -> bool:
    if isinstance(value, Seq):
        return any(_tells(item) for item in value.items)
    return isinstance(value, Ref | Param | Returned)


def set_item(reader: Reader, node: ast.Call) -> bool:
    """`operator.setitem(vars(m), "f", new)`, `m.__dict__.__setitem__("f", new)`."""
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr == "setitem" and tail(node.func.value) != "operator":
        return False
    args = node.args if node.func.attr == "setitem" else [node.func.value, *node.args]
    if len(args) != 3:
        return False
    target = ast.copy_location(ast.Subscript(args[0], args[1], ast.Store()), node)
    store(reader, target, given_by(reader, args[2]), node.lineno)
    return False
