"""Parameters of functions: what they stand for, and what a call hands over."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .evaluate import evaluate, tail
from .scopes import Scope
from .values import NOTHING, Instance, Param, Ref, Returned, Values
from .views import is_class

if TYPE_CHECKING:
    from .reader import Reader

__all__ = ["bind_parameters", "hand_over"]

_ANY = ("Any", "object", "type", "Type", "ModuleType", "module", "Callable")
"""Annotations that classes and modules have, too."""


def bind_parameters(reader: Reader, args: ast.arguments, function: str) -> list[str]:
    """Bind the parameters of a function; gives their names, in order."""
    of, names = f"{reader.source.module}:{function}", reader.scope.names
    plain = [*args.posonlyargs, *args.args]
    for one in (*plain, *args.kwonlyargs):
        given = Param(f"{one.arg}@{of}")
        names[one.arg] = (given, *_annotation(reader, one.annotation))
        if _is_object(one.annotation):
            reader.facts.objects.add(given.name)
    found = [one.arg for one in plain]
    if args.vararg is not None:
        found.append(f"*{args.vararg.arg}")
        names[args.vararg.arg] = (Param(f"{found[-1]}@{of}"),)
    found += [one.arg for one in args.kwonlyargs]
    if args.kwarg is not None:
        found.append(f"**{args.kwarg.arg}")
        names[args.kwarg.arg] = (Param(f"{found[-1]}@{of}"),)
    return found


def _annotation(reader: Reader, node: ast.expr | None) -> Values:
    """A parameter that is an object of a class of upstream."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError):
            return NOTHING
    if not isinstance(node, ast.Name | ast.Attribute):
        return NOTHING
    return tuple(
        Instance(value)
        for value in evaluate(node, reader.scope)
        if isinstance(value, Ref)
        and reader.setting.is_upstream(value.parts)
        and is_class(value.parts[-1])
    )


def _is_object(annotation: ast.expr | None) -> bool:
    """Whether an annotation says that it is no class and no module."""
    kinds = (ast.Name, ast.Attribute, ast.Constant)
    return isinstance(annotation, kinds) and tail(annotation) not in _ANY


def hand_over(
    scope: Scope,
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
    asked: Returned,
) -> None:
    """Bind the parameters of a function to what one call gives it."""
    args = node.args
    names = [one.arg for one in (*args.posonlyargs, *args.args)]
    for name in (*names, *(one.arg for one in args.kwonlyargs)):
        scope.names[name] = NOTHING
    decorators = getattr(node, "decorator_list", [])
    static = any(tail(one) == "staticmethod" for one in decorators)
    if asked.me is not None and not static:
        scope.names.update(dict.fromkeys(names[:1], (asked.me,)))
        names = names[1:]
    scope.names.update(zip(names, asked.arguments, strict=False))
    scope.names.update({k: v for k, v in asked.keywords if k in scope.names})
