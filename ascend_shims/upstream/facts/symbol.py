"""The facts of one symbol of one release."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from ascend_shims.upstream.facts.annotations import normal
from ascend_shims.upstream.facts.body import (
    Returns,
    body_hash,
    quiet_hash,
    returns_of,
)
from ascend_shims.upstream.facts.classes import Class, Member, class_at
from ascend_shims.upstream.facts.fields import has_fields, init_of_fields
from ascend_shims.upstream.facts.record import Record, SymbolKind
from ascend_shims.upstream.facts.resolve import Definition, expression, in_module
from ascend_shims.upstream.facts.scope import function_types
from ascend_shims.upstream.facts.signature import ANYTHING, Signature, signature_of
from ascend_shims.upstream.parsed import digest_of
from ascend_shims.upstream.tree import Module, Tree

__all__ = ["Symbol", "SymbolKind", "find", "split"]

_BOUND = ("function", "async", "classmethod", "property")


@dataclass(eq=False, repr=False)
class Symbol:
    """Something upstream, found in one release."""

    tree: Tree
    name: str
    """As asked for, `module:Qual.name`."""
    kind: SymbolKind
    module: str
    """Where it is defined, which may be another module than was asked for."""
    qualname: str
    parsed: Module | None
    node: ast.AST | None
    cls: Class | None = None
    """The class itself, or for a member the class it was looked up on."""
    member: Member | None = None
    definition: Definition | None = None
    """Of a module-level symbol."""

    @property
    def place(self) -> str:
        return f"{self.module}:{self.qualname}" if self.qualname else self.module

    @property
    def path(self) -> str:
        return self.parsed.path if self.parsed else ""

    @property
    def line(self) -> int:
        return getattr(self.node, "lineno", 0)

    @property
    def typing_only(self) -> bool:
        return self.definition is not None and self.definition.typing_only

    @property
    def function(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        return self.node if isinstance(self.node, function_types) else None

    @property
    def is_callable(self) -> bool:
        return self.function is not None or self.kind == "class"

    @property
    def is_async(self) -> bool:
        return isinstance(self.node, ast.AsyncFunctionDef)

    @cached_property
    def signature(self) -> Signature:
        """Parameters as a caller sees them: `self`, `cls` bound."""
        if self.kind == "class" and self.cls is not None:
            return constructor(self.cls)
        function = self.function
        if function is None:
            return ANYTHING
        written = signature_of(function)
        if self.member is not None and self.kind in _BOUND:
            return written.without_first()
        return written

    @property
    def record(self) -> Record | None:
        """What a lock says of it, where there is no text of the release."""
        return self.tree.records.get(self.name)

    @cached_property
    def body(self) -> str:
        if self.record is not None:
            return self.record.body
        return "" if self.node is None else body_hash(self.node)

    @cached_property
    def quiet_body(self) -> str:
        if self.record is not None:
            return self.record.quiet
        return "" if self.node is None else quiet_hash(self.node)

    @cached_property
    def written(self) -> str:
        """Names the definition as it is written."""
        if self.record is not None:
            return self.record.text
        return digest_of(self.source)[:16]

    @cached_property
    def returns(self) -> Returns:
        if self.record is not None:
            return self.record.returns or Returns()
        function = self.function
        return Returns() if function is None else returns_of(function)

    @property
    def return_annotation(self) -> str | None:
        function = self.function
        return None if function is None else normal(function.returns)

    @property
    def decorators(self) -> tuple[str, ...]:
        if self.record is not None:
            return self.record.decorators
        found = getattr(self.node, "decorator_list", [])
        return tuple(ast.unparse(decorator) for decorator in found)

    @property
    def base_names(self) -> tuple[str, ...]:
        """Of a class, what it derives from, as written."""
        if self.record is not None:
            return self.record.written_bases
        return tuple(ast.unparse(base) for base in getattr(self.node, "bases", []))

    @cached_property
    def source(self) -> bytes:
        """The text of the definition, as written."""
        if self.parsed is None or self.node is None:
            return b""
        first = min(
            [self.line, *(d.lineno for d in getattr(self.node, "decorator_list", []))]
        )
        last = getattr(self.node, "end_lineno", self.line)
        return b"\n".join(self.parsed.lines[first - 1 : last])


def constructor(cls: Class) -> Signature:
    """What calling the class takes."""
    for one in cls.mro:
        binding = one.scope.best("__init__") or one.scope.best("__new__")
        if binding is not None and isinstance(binding.node, function_types):
            return signature_of(binding.node).without_first()
        if has_fields(one):
            return init_of_fields(cls)
    return ANYTHING if not cls.is_closed else Signature(())


def split(symbol: str) -> tuple[str, list[str]]:
    """`module:Qual.name` -> module, parts of the qualified name."""
    module, _, qualname = symbol.partition(":")
    return module, qualname.split(".")


def find(tree: Tree, symbol: str) -> Symbol | None:
    """The symbol, through re-exports and bases, or `None` where there is none."""
    module, parts = split(symbol)
    found = in_module(tree, module, parts[0])
    if found is None:
        return None
    if len(parts) == 1:
        return _top(tree, symbol, found)
    if found.kind == "module":
        return find(tree, f"{found.module}:{'.'.join(parts[1:])}")
    if found.kind == "external":
        return Symbol(
            tree, symbol, "external", found.module, ".".join(parts), None, None
        )
    cls = class_at(tree, module, ".".join(parts[:-1]))
    if cls is None:
        return _on_value(tree, found, parts)
    member = cls.member(parts[-1])
    if member is None:
        return None
    return Symbol(
        tree,
        symbol,
        member.kind,
        member.owner.module.name,
        f"{member.owner.qualname}.{parts[-1]}",
        member.owner.module,
        member.node,
        cls,
        member,
    )


def _top(tree: Tree, symbol: str, found: Definition) -> Symbol:
    parsed = tree.module(found.module)
    kind: SymbolKind = found.kind
    if isinstance(found.node, ast.AsyncFunctionDef) and kind == "function":
        kind = "async"
    cls = class_at(tree, found.module, found.name) if kind == "class" else None
    return Symbol(
        tree,
        symbol,
        kind,
        found.module,
        found.name,
        parsed,
        found.node,
        cls,
        None,
        found,
    )


def _on_value(tree: Tree, found: Definition, parts: list[str]) -> Symbol | None:
    """A member of an instance kept in a module: of the class that it is made of."""
    value = found.binding.value if found.binding else None
    parsed = tree.module(found.module)
    if parsed is None or not isinstance(value, ast.Call):
        return None
    made = expression(tree, parsed, value.func)
    if made is None or made.kind != "class":
        return None
    return find(tree, f"{made.module}:{made.name}.{'.'.join(parts[1:])}")
