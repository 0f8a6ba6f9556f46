"""Uses of names of upstream that begin with an underscore."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .evaluate import evaluate
from .found import Form
from .raw import Raw
from .values import Ref

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["note_private", "private_import"]


def note_private(reader: Reader, node: ast.Attribute, *, called: bool = False) -> None:
    """A look-up of a private name, once a file."""
    name = node.attr
    if name.startswith("__") or not isinstance(node.ctx, ast.Load):
        return
    if reader.me is not None and _is_me(node.value, reader.me[0]):
        reader.me[1].asks.setdefault(name, (node.lineno, called))
        return
    for owner in evaluate(node.value, reader.scope):
        if not isinstance(owner, Ref):
            continue
        names = (*owner.parts, name)
        if reader.setting.is_upstream(names) and names not in reader.seen_private:
            reader.seen_private.add(names)
            form: Form = "private-call" if called else "private-read"
            _emit(reader, form, names, node.lineno)


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
