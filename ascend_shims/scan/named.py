"""Helpers of the scanned code, which are told by name what to patch."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from .evaluate import evaluate, tail
from .mocks import is_mock, modules
from .values import Local, Ref, Text
from .views import dotted
from .writes import Given, given_by, write

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["by_name", "is_patchy", "name_of"]

_PATCHY = re.compile(
    r"patch|override|swap|hijack|rebind|inject|replace_|set_?attr|stub"
    r"|wrap_(function|object|method)",
    re.I,
)
"""Words in the names of functions that put something in the place of something."""

_FAMILIAR = ("torch", "torch_npu", "transformers", "triton")


@lru_cache(maxsize=4096)
def _is_patchy_name(name: str) -> bool:
    return bool(_PATCHY.search(name))


def is_patchy(reader: Reader, node: ast.Call) -> bool:
    return _is_patchy_name(tail(node.func)) and not is_mock(reader, node)


def by_name(reader: Reader, node: ast.Call, given: Given, called: str) -> None:
    """A call that names its target: a module or class, and perhaps a name in it.

    Args:
        called: the name of what is decorated, or handed on.
    """
    args = [*node.args, *(k.value for k in node.keywords if k.arg)]
    if not args:
        return
    first = evaluate(args[0], reader.scope)
    second = evaluate(args[1], reader.scope) if len(args) > 1 else ()
    inner = [v.value for v in second if isinstance(v, Text) and dotted(v.value)]
    if len(args) > 1 and not inner and not called:
        given = given_by(reader, args[1])
    elif len(args) > 2 and not called:
        given = given_by(reader, args[2])
    for owner in first:
        if isinstance(owner, Text) and not _is_familiar(reader, owner.value):
            continue
        (ref, *_) = (*modules((owner,)), None)
        if not isinstance(ref, Ref) or not reader.setting.is_foreign(ref.parts):
            continue
        names = _joined(ref.parts, isinstance(owner, Text), inner, called, len(args))
        if names:
            write(reader, node.lineno, "helper", names, given)
            reader.facts.spelled.update(
                v.parts for v in evaluate(node.func, reader.scope) if isinstance(v, Ref)
            )


def _joined(
    owner: tuple[str, ...], is_text: bool, inner: list[str], called: str, count: int
) -> tuple[str, ...]:
    if inner:
        return (*owner, *dotted(inner[0]))
    if called and owner[-1] != called:
        return (*owner, called)
    # `patch("package.module.name", new)`, and no bare object that is handed around.
    return owner if is_text and len(owner) > 2 and (called or count > 1) else ()


def _is_familiar(reader: Reader, text: str) -> bool:
    """Whether some text is the dotted name of something that can be imported."""
    parts = dotted(text)
    if len(parts) < 2:
        return False
    known = (*reader.setting.upstreams, *_FAMILIAR)
    return parts[0] in known or parts[0] in reader.facts.modules


def name_of(reader: Reader, node: ast.expr | None) -> str:
    for value in evaluate(node, reader.scope):
        if isinstance(value, Local) and not isinstance(value.node, ast.Lambda):
            return value.node.name
    return tail(node)
