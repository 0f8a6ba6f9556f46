"""Who has a say in what a class holds, besides its body."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable
from typing import Any

from .raw import is_function, made_by, mro, namespace, top, unwrapped

__all__ = ["has_other_defaults", "is_altered", "is_made"]

_ADDING = frozenset(sys.stdlib_module_names) - {"unittest"}
"""The standard library's metaclasses, bases and decorators give a class more than its
body has. What the body defines they leave as it is."""

Evaluate = Callable[[Any], Any]


def is_made(cls: Any, nodes: Iterable[ast.ClassDef]) -> bool:
    """Whether a class may hold what its body does not show."""
    if type(cls) is not type or any(node.decorator_list for node in nodes):
        return True
    if issubclass(cls, tuple) and "_fields" in namespace(cls):
        return True
    return any("__init_subclass__" in namespace(one) for one in mro(cls)[1:-1])


def is_altered(cls: Any, nodes: Iterable[ast.ClassDef], evaluate: Evaluate) -> bool:
    """Whether somebody may have put other things there than its body defines."""
    if type(cls) is not type and top(made_by(type(cls))) not in _ADDING:
        return True
    for node in nodes:
        for decorator in node.decorator_list:
            named = decorator.func if isinstance(decorator, ast.Call) else decorator
            value = evaluate(named)
            if value is None or top(made_by(value)) not in _ADDING:
                return True
    return any(
        "__init_subclass__" in namespace(one) and top(made_by(one)) not in _ADDING
        for one in mro(cls)[1:-1]
    )


def has_other_defaults(value: Any, nodes: Iterable[Any]) -> bool:
    """Whether a function has others than its definition, as far as that spells them."""
    function = unwrapped(value)
    if not is_function(function):
        return False
    line = function.__code__.co_firstlineno
    node = next((one for one in nodes if _first_line(one) == line), None)
    if node is None:
        return False
    args = node.args
    positional = function.__defaults__ or ()
    if type(positional) is not tuple or len(positional) != len(args.defaults):
        return True
    pairs = list(zip(args.defaults, positional, strict=False))
    held = function.__kwdefaults__ or {}
    written = {
        one.arg: default
        for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=False)
        if default is not None
    }
    if set(held) != set(written):
        return True
    pairs += [(written[name], held[name]) for name in written]
    return any(_differs(default, one) for default, one in pairs)


def _first_line(node: Any) -> int:
    lines: list[int] = [node.lineno, *(one.lineno for one in node.decorator_list)]
    return min(lines)


_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...))


def _differs(node: ast.expr, value: Any) -> bool:
    """Of what is written out; a list may be filled as the program runs."""
    if isinstance(node, ast.Constant):
        return type(value) is not type(node.value) or _text(value) != _text(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if not isinstance(node.operand, ast.Constant):
            return False
        wanted = -node.operand.value  # type: ignore[operator]
        return type(value) is not type(wanted) or _text(value) != _text(wanted)
    if isinstance(node, ast.Tuple):
        if type(value) is not tuple or len(value) != len(node.elts):
            return True
        return any(map(_differs, node.elts, value))
    return False


def _text(value: Any) -> str:
    """-0.0 is unlike 0.0; nothing but plain values is asked what it is."""
    return repr(value) if type(value) in _PLAIN else ""
