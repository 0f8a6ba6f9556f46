"""What is asked of one syntax node again and again, computed once.

Neighbouring releases share the trees of the files that they share, so the answers
are kept on the node: they live as long as it does, and go with it.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TypeVar

__all__ = ["once_a_node", "parts_of", "statements_in"]

_Node = TypeVar("_Node", bound=ast.AST)
_Answer = TypeVar("_Answer")


def once_a_node(function: Callable[[_Node], _Answer]) -> Callable[[_Node], _Answer]:
    """Keep the answer of a pure function of a syntax node on the node."""
    kept = f"_kept_{function.__name__}"

    @wraps(function)
    def asked(node: _Node) -> _Answer:
        answers = vars(node)
        if kept not in answers:
            answers[kept] = function(node)
        answer: _Answer = answers[kept]
        return answer

    return asked


_PARTS: dict[type, tuple[str, ...]] = {
    ast.Name: (),
    ast.Constant: (),
    ast.Attribute: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.BinOp: ("left", "right"),
    ast.Compare: ("left", "comparators"),
    ast.Call: ("func", "args", "keywords"),
    ast.Import: (),
    ast.ImportFrom: (),
}
"""Fields with something inside, of the most frequent nodes."""

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def parts_of(*nodes: ast.AST, into: bool = True) -> Iterator[ast.AST]:
    """The nodes and all beneath them, in no particular order.

    Operators, contexts and the names in an import are left out, which makes it
    several times as fast as `ast.walk`. `into=False` leaves out functions, classes
    and what is in them.
    """
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if not into and kind in _INNER:
            continue
        yield node
        for name in _PARTS.get(kind, kind._fields):
            value = getattr(node, name, None)
            if type(value) is list:
                waiting += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST):
                waiting.append(value)


_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def statements_in(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements beneath a node, at any depth, outer ones first.

    Expressions are most of a tree, and hold no statements.
    """
    waiting = deque([node])
    while waiting:
        inner = waiting.popleft()
        for name in _BODIES:
            # Of a lambda and of `a if b else c`, these are no lists.
            below = getattr(inner, name, None)
            if isinstance(below, list):
                waiting.extend(below)
                yield from (one for one in below if isinstance(one, ast.stmt))
