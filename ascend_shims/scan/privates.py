"""Uses of names of upstream that begin with an underscore."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .evaluate import evaluate
from .found import Form
from .raw import Raw
from .values import Instance, Ref

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["note_private", "private_getattr", "private_import"]


def note_private(reader: Reader, node: ast.Attribute, *, called: bool = False) -> None:
    """A look-up of a private name, once a file."""
    name = node.attr
    if name.startswith("__") or not isinstance(node.ctx, ast.Load):
        return
    if reader.me is not None and _is_me(node.value, reader.me[0]):
        reader.me[1].asks.setdefault(name, (node.lineno, called))
        return
    for owner in evaluate(node.value, reader.scope):
        if isinstance(owner, Instance):
            owner = owner.of
        if not isinstance(owner, Ref):
            continue
        names = (*owner.parts, name)
        if reader.setting.is_upstream(names) and names not in reader.seen_private:
            reader.seen_private.add(names)
            form: Form = "private-call" if called else "private-read"
            _emit(reader, form, names, node.lineno)


def private_getattr(reader: Reader, node: ast.Call, *, called: bool = False) -> bool:
    """`getattr(module, "_name")`."""
    if len(node.args) < 2 or not isinstance(node.args[1], ast.Constant):
        return False
    name = node.args[1].value
    if isinstance(name, str) and name.startswith("_") and name.isidentifier():
        read = ast.Attribute(node.args[0], name, ast.Load())
        note_private(reader, ast.copy_location(read, node), called=called)
    return False


def _is_me(node: ast.expr, me: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == me
    # `super()._x` reads the base's.
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "super"
    )


def private_import(reader: Reader, names: tuple[str, ...], line: int) -> None:
    """`from vllm.x import _name`."""
    if names not in reader.seen_private:
        reader.seen_private.add(names)
        _emit(reader, "private-import", names, line)


def _emit(reader: Reader, form: Form, names: tuple[str, ...], line: int) -> None:
    how = {
        "private-read": "reads_attribute",
        "private-call": "calls",
        "private-import": "imports_name",
    }[form]
    reader.emit(
        Raw(line, form, how, names, reader.place, reader.gates)  # type: ignore[arg-type]
    )
