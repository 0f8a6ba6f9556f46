"""Classes of the scanned code: what they derive from and what they override."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from ..upstream.facts.signature import signature_of
from .evaluate import evaluate, tail
from .raw import Asked, ClassInfo
from .values import Local, OwnClass, Ref, Values
from .writes import Given, given_by, write

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["finished", "lay_over", "read_class"]

_LAID = re.compile(r"patch|override|monkey", re.I)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def read_class(reader: Reader, node: ast.ClassDef, owner: OwnClass) -> None:
    """Note a class that derives from something."""
    module = tuple(reader.source.module.split("."))
    bases: list[tuple[str, ...]] = []
    for base in node.bases:
        bases += _named(evaluate(_bare(base), reader.scope), module)
    if not bases:
        return
    methods = tuple(
        (one.name, one.lineno, signature_of(one))
        for one in node.body
        if isinstance(one, _FUNCTIONS)
    )
    names = (*module, *owner.qualname.split("."))
    kept = tuple(dict.fromkeys(bases))
    info = ClassInfo(names, node.lineno, kept, methods, frozenset(), (), reader.gates)
    reader.classes.append((info, owner))


def finished(info: ClassInfo, owner: OwnClass) -> ClassInfo:
    """The class, once its methods were read."""
    asks = tuple(
        Asked(name, line, is_call)
        for name, (line, is_call) in owner.asks.items()
        if name not in owner.names
    )
    return replace(info, defines=frozenset(owner.names), asks=asks)


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
