"""Whether anybody still looks a name up through one module's binding of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from ascend_shims.upstream.facts.resolve import expression
from ascend_shims.upstream.facts.scope import Binding
from ascend_shims.upstream.tree import Module, Tree

__all__ = ["attribute_is_loaded", "is_looked_up", "users"]

_DEPTH = 4


def is_looked_up(
    tree: Tree,
    module: str,
    name: str,
    within: Iterable[str] | None = None,
    depth: int = 0,
) -> bool:
    """Whether code loads `name` from `module`'s namespace.

    In the module itself, through `from module import name` elsewhere (followed
    through re-exports), or as an attribute of the module.
    """
    parsed = tree.module(module)
    if parsed is not None and users(parsed, name):
        return True
    if depth >= _DEPTH:
        return False
    if not depth and _is_named(tree, module, name, within):
        return True
    for other in tree.parsed(tree.mentions(name, within=within)):
        if other.name == module:
            continue
        for bound, nested in _imported(tree, other, module, name):
            if nested or is_looked_up(tree, other.name, bound, within, depth + 1):
                return True
        for node, _ in other.index.attributes.get(name, ()):
            base = expression(tree, other, node.value)
            if base is not None and base.kind == "module" and base.module == module:
                return True
    return False


def _is_named(tree: Tree, module: str, name: str, within: Iterable[str] | None) -> bool:
    """Whether a string names it in full, for somebody to import it by."""
    dots = re.escape(module.encode()) + rb"[.:]" + re.escape(name.encode())
    quoted = re.compile(rb"[\"']" + dots + rb"[\"']")
    return any(
        quoted.search(tree.text(other)) for other in tree.mentions(name, within=within)
    )


def users(parsed: Module, name: str) -> list[str]:
    """Functions and classes that load a name of their module, the innermost of each;
    an empty one stands for the module level. The name's own definition is none."""
    return [
        place.qualname
        for place in parsed.index.names.get(name, ())
        if place.qualname != name
        and not place.qualname.startswith(f"{name}.")
        and not _shadowed(parsed, name, place.functions)
    ]


def _shadowed(parsed: Module, name: str, functions: tuple[ast.AST, ...]) -> bool:
    return any(
        binding.name == name and where.functions[0] in functions
        for binding, where in parsed.index.imports
    )


def _imported(
    tree: Tree, other: Module, module: str, name: str
) -> list[tuple[str, bool]]:
    """Names under which `other` imports `module.name`; whether inside a function."""

    def is_it(binding: Binding) -> bool:
        if binding.kind != "from" or binding.original != name:
            return False
        source = other.absolute(binding.module, binding.level)
        return source == module or _passes_on(tree, source, module, name)

    here = [b for several in other.scope.names.values() for b in several]
    found = [(binding.name, False) for binding in here if is_it(binding)]
    if name not in other.scope.names and _passes_on(tree, other.name, module, name):
        found.append((name, False))
    inside = (binding for binding, _ in other.index.imports)
    return found + [(binding.name, True) for binding in inside if is_it(binding)]


def _passes_on(
    tree: Tree, package: str, module: str, name: str, depth: int = 0
) -> bool:
    """Whether `package` has the name by `from module import *`, as packages do that
    gather what their modules define."""
    if name.startswith("_") or depth >= _DEPTH or package == module:
        return False
    parsed = tree.module(package)
    if parsed is None or name in parsed.scope.names:
        return False
    sources = [parsed.absolute(star.module, star.level) for star in parsed.scope.stars]
    return module in sources or any(
        _passes_on(tree, source, module, name, depth + 1) for source in sources
    )


def attribute_is_loaded(tree: Tree, name: str) -> bool:
    """Whether any code at all reads an attribute of that name."""
    return any(
        name in module.index.attributes for module in tree.parsed(tree.mentions(name))
    )
