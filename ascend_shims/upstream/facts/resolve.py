"""Where a name is really defined: through imports, re-exports and aliases.

Every step is bounded: a loop of re-exports ends as "not found".
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from ascend_shims.upstream.facts.scope import Binding, Scope
from ascend_shims.upstream.tree import Module, Tree

__all__ = ["Definition", "expression", "in_module", "local_names"]

_HOPS = 24
"""More re-exports in a row than any honest package has."""


@dataclass(frozen=True, eq=False)
class Definition:
    """Something that a module-level name leads to."""

    kind: Literal["function", "class", "value", "module", "external"]
    module: str
    """Dotted name of the defining module; of an external one as far as known."""
    name: str
    """Name inside `module`; empty for a module itself."""
    binding: Binding | None = None
    hops: tuple[tuple[str, str], ...] = ()
    """`(module, name)` of every re-export or alias passed on the way."""
    typing_only: bool = False
    """Some step on the way is seen by type checkers only."""

    @property
    def key(self) -> tuple[str, str]:
        return (self.module, self.name)

    @property
    def place(self) -> str:
        return f"{self.module}:{self.name}" if self.name else self.module

    @property
    def node(self) -> ast.AST | None:
        return self.binding.node if self.binding else None


def in_module(tree: Tree, module: str, name: str) -> Definition | None:
    """What `module.name` is, or `None` where there is no such name."""
    key = ("in_module", module, name)
    if key not in tree.memo:
        tree.memo[key] = _follow(tree, module, name, ())
    found = tree.memo[key]
    assert found is None or isinstance(found, Definition)
    return found


def _follow(
    tree: Tree, module: str, name: str, hops: tuple[tuple[str, str], ...]
) -> Definition | None:
    if (module, name) in hops or len(hops) > _HOPS:
        return None
    parsed = tree.module(module)
    if parsed is None:
        return _submodule(tree, module, name, hops)
    binding = parsed.scope.best(name)
    here = (*hops, (module, name))
    if binding is None:
        return (
            _through_star(tree, parsed, name, here)
            or _through_table(tree, parsed, name, here)
            or _submodule(tree, module, name, hops)
        )
    typing_only = binding.condition == "typing" and not _is_lazy(parsed)
    found = _step(tree, parsed, binding, hops, here)
    if found is not None and typing_only:
        return Definition(
            found.kind, found.module, found.name, found.binding, found.hops, True
        )
    return found


def _step(
    tree: Tree,
    parsed: Module,
    binding: Binding,
    hops: tuple[tuple[str, str], ...],
    here: tuple[tuple[str, str], ...],
) -> Definition | None:
    module, name = parsed.name, binding.name
    if binding.kind in ("function", "class"):
        kind: Literal["function", "class"]
        kind = "function" if binding.kind == "function" else "class"
        return Definition(kind, module, name, binding, hops)
    if binding.kind == "module":
        if tree.is_package(binding.module):
            return Definition("module", binding.module, "", binding, here)
        return Definition("external", binding.module, "", binding, here)
    if binding.kind == "from":
        source = parsed.absolute(binding.module, binding.level)
        if not tree.is_package(source):
            return Definition("external", source, binding.original, binding, here)
        found = _follow(tree, source, binding.original, here)
        if found is None and source in tree and tree.module(source) is None:
            # The file is there but unreadable: the name may well be in it.
            return Definition("external", source, binding.original, binding, here)
        return found
    value = binding.value
    if isinstance(value, ast.Name | ast.Attribute):
        target = _dotted(tree, parsed, value, here)
        if target is not None and target.kind in ("function", "class", "module"):
            return target
    return Definition("value", module, name, binding, hops)


def _through_star(
    tree: Tree, parsed: Module, name: str, here: tuple[tuple[str, str], ...]
) -> Definition | None:
    if name.startswith("_"):
        return None
    for star in parsed.scope.stars:
        source = parsed.absolute(star.module, star.level)
        if tree.is_package(source):
            found = _follow(tree, source, name, here)
            if found is not None:
                return found
    return None


def _is_lazy(parsed: Module) -> bool:
    return "__getattr__" in parsed.scope.names


def _through_table(
    tree: Tree, parsed: Module, name: str, here: tuple[tuple[str, str], ...]
) -> Definition | None:
    """A module `__getattr__` that looks names up in a table of `module:name`."""
    if not _is_lazy(parsed):
        return None
    for bindings in parsed.scope.names.values():
        for binding in bindings:
            if not isinstance(binding.value, ast.Dict):
                continue
            for key, value in zip(
                binding.value.keys, binding.value.values, strict=True
            ):
                if isinstance(key, ast.Constant) and key.value == name:
                    return _table_entry(tree, parsed, name, value, here)
    return None


def _table_entry(
    tree: Tree,
    parsed: Module,
    name: str,
    value: ast.expr,
    here: tuple[tuple[str, str], ...],
) -> Definition | None:
    if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
        return None
    module, _, attribute = value.value.partition(":")
    level = len(module) - len(module.lstrip("."))
    source = parsed.absolute(module.lstrip("."), level)
    return _follow(tree, source, attribute or name, here)


def _submodule(
    tree: Tree, module: str, name: str, hops: tuple[tuple[str, str], ...]
) -> Definition | None:
    full = f"{module}.{name}"
    return Definition("module", full, "", None, hops) if tree.is_package(full) else None


def _dotted(
    tree: Tree, parsed: Module, node: ast.expr, hops: tuple[tuple[str, str], ...]
) -> Definition | None:
    if isinstance(node, ast.Subscript):
        return _dotted(tree, parsed, node.value, hops)
    if isinstance(node, ast.Name):
        if node.id not in parsed.scope.names and not parsed.scope.stars:
            return None
        return _follow(tree, parsed.name, node.id, hops)
    if not isinstance(node, ast.Attribute):
        return None
    base = _dotted(tree, parsed, node.value, hops)
    if base is None:
        return None
    if base.kind == "module":
        return _follow(tree, base.module, node.attr, base.hops)
    if base.kind == "external":
        name = f"{base.name}.{node.attr}" if base.name else node.attr
        return Definition("external", base.module, name, base.binding, base.hops)
    return None


def expression(tree: Tree, module: Module, node: ast.expr) -> Definition | None:
    """What a dotted expression at module level of `module` leads to."""
    return _dotted(tree, module, node, ())


def local_names(tree: Tree, module: Module, definition: Definition) -> set[str]:
    """Names under which `definition` is bound in `module`, functions included."""
    found = set()
    wanted = {definition.name, *(name for _, name in definition.hops)}
    scope: Scope = module.scope
    for name, bindings in scope.names.items():
        related = any(
            name in wanted or b.original in wanted or b.kind == "value"
            for b in bindings
        )
        if not related:
            continue
        if bindings[-1].kind == "value" and not isinstance(
            bindings[-1].value, ast.Name | ast.Attribute
        ):
            continue
        target = in_module(tree, module.name, name)
        if target is not None and target.key == definition.key:
            found.add(name)
    for binding, _ in module.index.imports:
        if binding.kind == "from" and binding.original in wanted:
            source = module.absolute(binding.module, binding.level)
            target = in_module(tree, source, binding.original)
            if target is not None and target.key == definition.key:
                found.add(binding.name)
    if scope.stars and in_module(tree, module.name, definition.name) is not None:
        target = in_module(tree, module.name, definition.name)
        if target is not None and target.key == definition.key:
            found.add(definition.name)
    return found
