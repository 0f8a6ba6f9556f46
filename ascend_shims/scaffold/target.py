"""What stands upstream where a new gap is to patch, read from its source text."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .errors import ScaffoldError

if TYPE_CHECKING:
    from ..upstream.tree import Tree

__all__ = ["Target", "read_target"]

Call = Literal["plain", "async", "generator", "async generator"]


@dataclass(frozen=True, slots=True)
class Target:
    """One place upstream, and how it is called."""

    name: str
    """`package.module:Qual.name`; of a class that was asked for, its constructor."""
    call: Call = "plain"
    first: str | None = None
    """`self` or `cls`, of a method that has one."""
    signature: str | None = None
    """As upstream writes it; None where no source was read."""
    release: str | None = None
    """What was read, `vllm 0.32.0`."""
    version: str | None = None

    @property
    def module(self) -> str:
        return self.name.partition(":")[0]

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def qualname(self) -> str:
        return self.name.partition(":")[2]


def read_target(name: str) -> Target:
    """The place in the installed source; as it is named where none is installed.

    Nothing is imported. Raises `ScaffoldError` where the source has no such place, or
    where a wrapper cannot stand before it.
    """
    from ..environment.modules import find_module
    from ..upstream.facts.symbol import find
    from ..upstream.sources import Sources, SourceUnavailable
    from ..upstream.tree import Tree

    package = name.partition(":")[0].partition(".")[0]
    if package in sys.stdlib_module_names:
        raise ScaffoldError(
            f"{package} is part of Python, and gaps patch packages that have releases; "
            "name a place in one of these"
        )
    if find_module(package) is None:
        return Target(name)
    try:
        source = Sources(offline=True).open(f"installed:{package}")
    except SourceUnavailable:
        return Target(name)
    tree = Tree(source)
    symbol = find(tree, name)
    if symbol is None:
        raise ScaffoldError(f"{source.label} has no {name}{_hint(tree, name)}")
    if symbol.kind == "class":
        constructor = f"{name}.__init__"
        symbol = find(tree, constructor)
        if symbol is None or symbol.function is None:
            raise ScaffoldError(
                f"{name} is a class without an __init__ of its own; name the method "
                f"that is to be another one, {name}.METHOD"
            )
        name = constructor
    function = symbol.function
    if function is None:
        raise ScaffoldError(
            f"{name} is no function, and a wrapper stands before functions; name the "
            "function or method that uses it"
        )
    is_bound = symbol.member is not None and symbol.kind != "static"
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return Target(
        name,
        _call_of(function),
        names[0] if is_bound and names else None,
        _written(function),
        source.label,
        source.version,
    )


def _call_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Call:
    yields = any(
        isinstance(node, (ast.Yield, ast.YieldFrom)) for node in _own(function)
    )
    if isinstance(function, ast.AsyncFunctionDef):
        return "async generator" if yields else "async"
    return "generator" if yields else "plain"


def _own(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
    """What its body holds, functions within it apart."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        found.append(node)
        if not isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
        ):
            waiting += ast.iter_child_nodes(node)
    return found


def _written(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"{function.name}({ast.unparse(function.args)}){returns}"


def _hint(tree: Tree, name: str) -> str:
    from ..upstream.near import nearest_symbol

    module = name.partition(":")[0]
    missing = "" if tree.is_package(module) else f": it has no module {module}"
    near = nearest_symbol(tree, name)
    return f"{missing}; did you mean {near}?" if near else missing
