"""Classes of the scanned code: what they derive from and what they override."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ..upstream.facts.signature import signature_of
from .evaluate import evaluate, tail
from .raw import Asked, ClassInfo
from .values import Local, OwnClass, Ref, Seq, Table, Text, Values, merged
from .views import dotted
from .writes import Given, given_by, write

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["finished", "lay_over", "made_by_type", "read_class"]

_LAID = re.compile(r"patch|override|monkey", re.I)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def read_class(reader: Reader, node: ast.ClassDef, owner: OwnClass) -> None:
    """Note a class that derives from something."""
    module = tuple(reader.source.module.split("."))
    bases: list[tuple[str, ...]] = []
    for base in node.bases:
        values = evaluate(_bare(base), reader.scope)
        owner.bases = merged(owner.bases, values)
        bases += _named(values, module)
    if not bases:
        return
    methods = tuple(
        (one.name, one.lineno, signature_of(one))
        for one in node.body
        if isinstance(one, _FUNCTIONS)
    )
    names = (*module, *owner.qualname.split("."))
    kept = tuple(dict.fromkeys(bases))
    info = ClassInfo(
        names,
        node.lineno,
        kept,
        methods,
        frozenset(),
        (),
        reader.gates,
        tuple(_set_in(node)),
    )
    reader.classes.append((info, owner))


def _set_in(node: ast.ClassDef) -> Iterator[tuple[str, int]]:
    """Names that are set in the body of a class, and where."""
    for one in node.body:
        targets: list[ast.expr] = []
        if isinstance(one, ast.Assign):
            targets = one.targets
        elif isinstance(one, ast.AnnAssign) and one.value is not None:
            targets = [one.target]
        for target in targets:
            if isinstance(target, ast.Name) and not target.id.startswith("__"):
                yield target.id, one.lineno


def made_by_type(reader: Reader, node: ast.Call) -> bool:
    """`type("Ours", (Theirs,), {"step": step})`."""
    if len(node.args) != 3 or not isinstance(node.func, ast.Name):
        return False
    module = tuple(reader.source.module.split("."))
    name, bases, body = (evaluate(one, reader.scope) for one in node.args)
    parents = [v for s in bases if isinstance(s, Seq) for i in s.items for v in i]
    named = tuple(dict.fromkeys(_named(tuple(parents), module)))
    for text in name if named else ():
        if not isinstance(text, Text) or not text.value.isidentifier():
            continue
        members = [
            (key.value, values)
            for table in body
            if isinstance(table, Table)
            for keys, values in table.items
            for key in keys
            if isinstance(key, Text)
        ]
        methods = tuple(
            (key, node.lineno, signature_of(value.node))
            for key, values in members
            for value in values[:1]
            if isinstance(value, Local) and not isinstance(value.node, ast.Lambda)
        )
        others = {key for key, _ in members} - {key for key, *_ in methods}
        qualname = f"{reader.place.qualname}.{text.value}".lstrip(".")
        owner = OwnClass(qualname, dict(members))
        info = ClassInfo(
            (*module, *qualname.split(".")),
            node.lineno,
            named,
            methods,
            frozenset(),
            (),
            reader.gates,
            tuple((key, node.lineno) for key in sorted(others)),
        )
        reader.classes.append((info, owner))
    return False


def finished(info: ClassInfo, owner: OwnClass) -> ClassInfo:
    """The class, once its methods were read."""
    asks = tuple(
        Asked(name, line, is_call)
        for name, (line, is_call) in owner.asks.items()
        if name not in owner.names
    )
    texts = tuple(
        (name, values)
        for name, values in owner.names.items()
        if values and all(isinstance(v, Text) and dotted(v.value) for v in values)
    )
    defines = frozenset(owner.names)
    return replace(info, defines=defines, asks=asks, texts=texts)


def lay_over(reader: Reader, node: ast.ClassDef) -> None:
    """`class Ours(Patch[Theirs])`: each member is laid over the one of theirs."""
    for base in node.bases:
        if not isinstance(base, ast.Subscript) or not _LAID.search(tail(base.value)):
            continue
        for target in evaluate(base.slice, reader.scope):
            if isinstance(target, Ref) and reader.setting.is_foreign(target.parts):
                for one in node.body:
                    _lay(reader, target.parts, one)


def _lay(reader: Reader, target: tuple[str, ...], one: ast.stmt) -> None:
    if isinstance(one, _FUNCTIONS):
        given = Given((Local(one, one.name),), None, one.name)
        write(reader, one.lineno, "patch-class", (*target, one.name), given)
    elif isinstance(one, ast.Assign | ast.AnnAssign) and one.value is not None:
        for name in one.targets if isinstance(one, ast.Assign) else [one.target]:
            if isinstance(name, ast.Name):
                given = given_by(reader, one.value)
                names = (*target, name.id)
                write(reader, one.lineno, "patch-class", names, given)


def _bare(node: ast.expr) -> ast.expr:
    """A generic base without its parameters."""
    return node.value if isinstance(node, ast.Subscript) else node


def _named(values: Values, module: tuple[str, ...]) -> list[tuple[str, ...]]:
    found = []
    for value in values:
        if isinstance(value, Ref):
            found.append(value.parts)
        elif isinstance(value, OwnClass):
            found.append((*module, *value.qualname.split(".")))
        elif isinstance(value, Local):
            continue
    return found
