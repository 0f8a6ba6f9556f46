"""Classes: their bases across modules, and where each member comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from ascend_shims.upstream.facts.nodes import once_a_node, statements_in
from ascend_shims.upstream.facts.resolve import Definition, expression, in_module
from ascend_shims.upstream.facts.scope import Binding, Scope, function_types, scope_of
from ascend_shims.upstream.index import tail
from ascend_shims.upstream.tree import Module, Tree

__all__ = ["Class", "Member", "MemberKind", "class_at", "class_of"]

MemberKind = Literal[
    "function", "async", "static", "classmethod", "property", "class", "value", "set"
]
"""`value`: assigned or declared in the class body. `set`: by a method, on `self`."""


@dataclass(frozen=True, eq=False)
class Member:
    name: str
    kind: MemberKind
    node: ast.AST
    owner: Class
    binding: Binding | None = None
    setters: tuple[str, ...] = ()
    """Of an attribute `set` on `self`: the methods that do."""

    @property
    def function(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        return self.node if isinstance(self.node, function_types) else None


@dataclass(eq=False, repr=False)
class Class:
    tree: Tree
    module: Module
    qualname: str
    node: ast.ClassDef
    scope: Scope = field(init=False)

    def __post_init__(self) -> None:
        self.scope = scope_of(self.node.body)

    @property
    def key(self) -> tuple[str, str]:
        return (self.module.name, self.qualname)

    def forget(self) -> None:
        """Let go of the other classes, and of itself, which is first in its order."""
        for name in ("bases", "mro", "outside"):
            vars(self).pop(name, None)

    @cached_property
    def bases(self) -> tuple[Class | str, ...]:
        """Base classes; those outside the source by name."""
        found: list[Class | str] = []
        for base in self.node.bases:
            target = expression(self.tree, self.module, base)
            known = class_of(self.tree, target) if target else None
            if known is not None and known.key != self.key:
                found.append(known)
            else:
                found.append(target.name if target and target.name else _name(base))
        return tuple(found)

    @cached_property
    def mro(self) -> tuple[Class, ...]:
        """This class and those of its bases that the source shows, in order."""
        return tuple(c for c in self._linear(()) if isinstance(c, Class))

    @cached_property
    def outside(self) -> frozenset[str]:
        """Names of bases that lie outside the source, at any depth."""
        return frozenset(c for c in self._linear(()) if isinstance(c, str))

    @property
    def is_closed(self) -> bool:
        """Whether every member can be known: no base lies outside the source."""
        return not self.outside - {"object", "ABC", "Generic", "Protocol", "Enum"}

    def _linear(self, seen: tuple[tuple[str, str], ...]) -> list[Class | str]:
        """The bases' order, the last mention of each kept, as Python's is nearly."""
        if self.key in seen:
            return []
        below: list[Class | str] = []
        for base in self.bases:
            if isinstance(base, str):
                below.append(base)
            else:
                below += base._linear((*seen, self.key))
        kept: list[Class | str] = []
        names: set[object] = set()
        for one in reversed(below):
            key = one if isinstance(one, str) else one.key
            if key not in names:
                names.add(key)
                kept.insert(0, one)
        return [self, *kept]

    @cached_property
    def set_on_self(self) -> dict[str, list[tuple[str, ast.stmt]]]:
        """Attributes that methods assign on `self`: method and statement."""
        return _set_on_self(self.node)

    def methods(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions that this class body defines."""
        return _methods(self.scope)

    def own(self, name: str) -> Member | None:
        """A member that this class itself defines."""
        binding = self.scope.best(name)
        if binding is not None and binding.kind != "declared":
            return Member(name, _kind(binding), binding.node, self, binding)
        setters = self.set_on_self.get(name)
        if setters:
            methods = tuple(dict.fromkeys(method for method, _ in setters))
            return Member(name, "set", setters[0][1], self, None, methods)
        if binding is not None:
            return Member(name, "value", binding.node, self, binding)
        return None

    def member(self, name: str) -> Member | None:
        """A member of this class or of the nearest base that has it."""
        for one in self.mro:
            found = one.own(name)
            if found is not None:
                return found
        return None

    def names(self) -> set[str]:
        """Names of all members, those of its bases and set on `self` too."""
        found: set[str] = set()
        for one in self.mro:
            found |= one.scope.names.keys() | one.set_on_self.keys()
        return found

    def inherits(self, other: tuple[str, str]) -> bool:
        return any(one.key == other for one in self.mro)


def _methods(scope: Scope) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for name in scope.names:
        binding = scope.best(name)
        if binding is not None and isinstance(binding.node, function_types):
            yield binding.node


@once_a_node
def _set_on_self(cls: ast.ClassDef) -> dict[str, list[tuple[str, ast.stmt]]]:
    found: dict[str, list[tuple[str, ast.stmt]]] = {}
    for method in _methods(scope_of(cls.body)):
        first = _first(method)
        if first is None:
            continue
        for node in statements_in(method):
            for target in _stored(node):
                if isinstance(target.value, ast.Name) and target.value.id == first:
                    found.setdefault(target.attr, []).append((method.name, node))
    return found


def _name(node: ast.expr) -> str:
    return tail(node.value if isinstance(node, ast.Subscript) else node)


def _first(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    if any(tail(d) == "staticmethod" for d in node.decorator_list):
        return None
    plain = [*node.args.posonlyargs, *node.args.args]
    return plain[0].arg if plain else None


def _stored(node: ast.AST) -> Iterator[ast.Attribute]:
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = list(node.targets)
    elif isinstance(node, ast.AnnAssign | ast.For):
        targets = [node.target]
    elif isinstance(node, ast.With):
        targets = [i.optional_vars for i in node.items if i.optional_vars is not None]
    while targets:
        target = targets.pop()
        if isinstance(target, ast.Attribute):
            yield target
        elif isinstance(target, ast.Tuple | ast.List):
            targets += target.elts


def _kind(binding: Binding) -> MemberKind:
    node = binding.node
    if isinstance(node, ast.ClassDef):
        return "class"
    if not isinstance(node, function_types):
        return "value"
    for decorator in node.decorator_list:
        name = _name(decorator.func if isinstance(decorator, ast.Call) else decorator)
        if name == "staticmethod":
            return "static"
        if name == "classmethod":
            return "classmethod"
        if name in ("property", "cached_property", "setter", "abstractproperty"):
            return "property"
    return "async" if isinstance(node, ast.AsyncFunctionDef) else "function"


def class_of(tree: Tree, definition: Definition) -> Class | None:
    """The class that a definition is, or `None`."""
    if definition.kind != "class" or definition.binding is None:
        return None
    return class_at(tree, definition.module, definition.name)


def class_at(tree: Tree, module: str, qualname: str) -> Class | None:
    """The class of that name defined (or re-exported) there."""
    first, *rest = qualname.split(".")
    found = in_module(tree, module, first)
    if found is None or found.kind != "class":
        return None
    parsed = tree.module(found.module)
    if parsed is None or not isinstance(found.node, ast.ClassDef):
        return None
    one = _cached(tree, parsed, found.name, found.node)
    for name in rest:
        member = one.member(name)
        if member is None or not isinstance(member.node, ast.ClassDef):
            return None
        one = _cached(
            tree, member.owner.module, f"{member.owner.qualname}.{name}", member.node
        )
    return one


def _cached(tree: Tree, module: Module, qualname: str, node: ast.ClassDef) -> Class:
    # Kept on the module, so that it goes when the module's syntax tree goes.
    known = module.classes.get(qualname)
    if isinstance(known, Class) and known.node is node:
        return known
    made = Class(tree, module, qualname, node)
    module.classes[qualname] = made
    return made
