"""Who calls a symbol, and how: through every name it goes by.

A `Site` that is `certain` reaches the symbol as far as the source shows. The others
call something of the same name on a receiver whose class the source does not show.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

from ascend_shims.upstream.corpus import reads_attribute
from ascend_shims.upstream.facts.classes import Class, class_at
from ascend_shims.upstream.facts.resolve import Definition, expression, local_names
from ascend_shims.upstream.facts.signature import Shape, dropping, launched, shape_of
from ascend_shims.upstream.facts.symbol import Symbol
from ascend_shims.upstream.index import Call, Place, tail
from ascend_shims.upstream.snippets import may_hold
from ascend_shims.upstream.tree import Module, Tree
from ascend_shims.upstream.types import class_named, instance_of, receiver_self

__all__ = ["Site", "call_sites", "is_reached"]


_QUOTES = (b'"', b"'")

_MOST = 24
"""Modules that are read for a member's look-ups."""


@dataclass(frozen=True)
class Site:
    module: str
    path: str
    line: int
    within: str
    """Qualified name of the function around; empty at module level."""
    callee: str
    shape: Shape
    """As the symbol sees it: `self` is not counted."""
    certain: bool
    is_super: bool = False

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def key(self) -> tuple[str, str, str, Shape]:
        """The same call in another release, whatever its line."""
        return (self.module, self.within, self.callee, self.shape)


def call_sites(
    tree: Tree,
    symbol: Symbol,
    within: Iterable[str] | None = None,
    wanted: Callable[[Shape], bool] | None = None,
) -> list[Site]:
    """Calls of the symbol in the whole release, or in the modules `within`.

    With `wanted`, files whose calls all have other shapes may be left out.
    """
    names = None if within is None else list(within)
    finder = _Finder(tree, symbol, names, wanted)
    return list(dict.fromkeys(finder.sites()))


def is_reached(
    tree: Tree,
    symbol: Symbol,
    within: Iterable[str] | None = None,
    *,
    certainly: bool = False,
) -> bool:
    """Whether any code reads a member of that name on a receiver that may be of its
    class: a call, a look-up or its name as a string. `super()` does not count, since
    it never reaches a subclass.

    `certainly`: only a receiver whose class the source shows counts.
    """
    name, cls = symbol.qualname.split(".")[-1], symbol.cls
    if cls is None:
        return True
    word = name.encode()
    quoted = [a + word + b for a in _QUOTES for b in _QUOTES]
    mentioned = tree.mentions(name, within=within)
    if not certainly and any(
        one in text for text in map(tree.text, mentioned) for one in quoted
    ):
        return True
    names = _nearest(tree, cls, name, mentioned)
    if len(names) > _MOST:
        # Too many to read them all for one answer; such a name is in use.
        return not certainly
    finder = _Finder(tree, symbol, None, None)
    return any(
        finder.reaches(module, node, place, certainly)
        for module in tree.parsed(names)
        for node, place in module.index.attributes.get(name, ())
    )


def _nearest(tree: Tree, cls: Class, name: str, mentioned: list[str]) -> list[str]:
    """Modules that read an attribute of that name, those near the class first."""
    word = name.encode()
    own = [one.module.name for one in cls.mro]
    found = [m for m in mentioned if reads_attribute(tree.text(m), word)]
    return sorted(found, key=lambda m: (m not in own, -_shared(m, own[0])))


def _shared(one: str, other: str) -> int:
    """How many packages two modules have in common."""
    pairs = zip(one.split("."), other.split("."), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


class _Finder:
    def __init__(
        self,
        tree: Tree,
        symbol: Symbol,
        within: list[str] | None,
        wanted: Callable[[Shape], bool] | None,
    ) -> None:
        self._wanted = wanted
        self._tree = tree
        self._symbol = symbol
        self._within = within

    def sites(self) -> Iterator[Site]:
        symbol = self._symbol
        name = symbol.qualname.split(".")[-1]
        if symbol.cls is not None:
            if symbol.kind == "class" or name in ("__init__", "__new__"):
                yield from self._constructions(symbol.cls)
            else:
                yield from self._method_calls(symbol.cls, name)
        elif symbol.definition is not None:
            yield from self._function_calls(symbol.definition)

    def _modules(self, word: str) -> Iterator[Module]:
        tree = self._tree
        names = tree.mentions(word, within=self._within)
        if self._wanted is not None:
            wanted = self._wanted
            names = [n for n in names if may_hold(tree.text(n), word, wanted)]
        return tree.parsed(names)

    # Functions -----------------------------------------------------------------

    def _function_calls(self, definition: Definition) -> Iterator[Site]:
        words = {definition.name, self._symbol.name.split(":")[1]}
        words |= {name for _, name in definition.hops}
        for word in sorted(words):
            for module in self._modules(word):
                yield from self._in_module(module, definition, word)

    def _in_module(
        self, module: Module, definition: Definition, word: str
    ) -> Iterator[Site]:
        names = local_names(self._tree, module, definition)
        for name in sorted(names):
            for call in module.index.calls.get(name, ()):
                if isinstance(call.callee, ast.Name):
                    yield self._site(module, call, True)
            yield from self._held(module, name)
            yield from self._partials(module, name)
        for call in module.index.calls.get(word, ()):
            if isinstance(call.callee, ast.Attribute) and self._leads(
                module, call.callee, definition
            ):
                yield self._site(module, call, True)

    def _leads(
        self, module: Module, callee: ast.Attribute, definition: Definition
    ) -> bool:
        if ast.unparse(callee.value).startswith("torch.ops."):
            return True
        found = expression(self._tree, module, callee)
        return found is not None and found.key == definition.key

    def _held(self, module: Module, name: str) -> Iterator[Site]:
        """Calls through a variable or attribute that holds the function."""
        for target, place in module.held(name):
            for call in module.index.calls.get(tail(target), ()):
                if type(call.callee) is not type(target):
                    continue
                same = (
                    call.place.owner == place.owner
                    if isinstance(target, ast.Attribute)
                    else place.functions == call.place.functions[: len(place.functions)]
                )
                if same and tail(target) != name:
                    yield self._site(module, call, True)

    def _partials(self, module: Module, name: str) -> Iterator[Site]:
        for call in module.index.calls.get("partial", ()):
            args = call.node.args
            if args and isinstance(args[0], ast.Name) and args[0].id == name:
                shape = dropping(shape_of(call.node), 1)
                # What a partial does not pass, its caller may.
                shape = replace(shape, star=True, double_star=True)
                yield self._site(module, call, True, shape)

    # Classes -------------------------------------------------------------------

    def _constructions(self, cls: Class) -> Iterator[Site]:
        name = cls.qualname.split(".")[-1]
        wanted = cls.key
        for module in self._modules(name):
            for call in self._class_calls(module):
                made = class_named(self._tree, module, call.callee, call.place)
                if made is not None and made.key == wanted:
                    yield self._site(module, call, True)
            names = {n for n in module.scope.names if n.endswith(name)} | {name}
            for one in sorted(names):
                yield from self._held(module, one)
                yield from self._partials(module, one)
        for base in cls.mro:
            for call in base.module.index.calls.get("cls", ()):
                if receiver_self(call.callee, call.place) == base.qualname:
                    yield self._site(base.module, call, True)

    def _class_calls(self, module: Module) -> Iterator[Call]:
        name = self._symbol.cls.qualname.split(".")[-1] if self._symbol.cls else ""
        aliases = {
            binding.name
            for bindings in module.scope.names.values()
            for binding in bindings
            if binding.original == name
        }
        aliases |= {b.name for b, _ in module.index.imports if b.original == name}
        for one in sorted(aliases | {name}):
            yield from module.index.calls.get(one, ())

    # Methods -------------------------------------------------------------------

    def _method_calls(self, cls: Class, name: str) -> Iterator[Site]:
        for module in self._modules(name):
            for call in module.index.calls.get(name, ()):
                if isinstance(call.callee, ast.Attribute):
                    site = self._method_call(module, call, cls, call.callee.value)
                    if site is not None:
                        yield site
            yield from self._method_partials(module, cls, name)

    def _method_partials(self, module: Module, cls: Class, name: str) -> Iterator[Site]:
        for call in module.index.calls.get("partial", ()):
            first = call.node.args[0] if call.node.args else None
            if isinstance(first, ast.Attribute) and first.attr == name:
                site = self._method_call(module, call, cls, first.value)
                if site is not None:
                    shape = dropping(site.shape, 1)
                    yield replace(
                        site, shape=replace(shape, star=True, double_star=True)
                    )

    def reaches(
        self, module: Module, node: ast.Attribute, place: Place, certainly: bool
    ) -> bool:
        """Whether a look-up of a member may find what stands in its place."""
        assert self._symbol.cls is not None
        call = Call(ast.Call(node, [], [], lineno=node.lineno), node, place)
        site = self._method_call(module, call, self._symbol.cls, node.value)
        return site is not None and not site.is_super and site.certain >= certainly

    def _method_call(
        self, module: Module, call: Call, cls: Class, receiver: ast.expr
    ) -> Site | None:
        if isinstance(receiver, ast.Call) and tail(receiver.func) == "super":
            owner = self._class_around(module, call.place)
            if owner is None or owner.key == cls.key or not owner.inherits(cls.key):
                return None
            return replace(self._site(module, call, True), is_super=True)
        own = receiver_self(receiver, call.place)
        if own is not None:
            owner = self._class_around(module, call.place)
            return None if owner is None else self._on(module, call, owner)
        named = class_named(self._tree, module, receiver, call.place)
        if named is not None:
            if not (_reaches(named, cls) or named.inherits(cls.key)):
                return None
            shape = shape_of(call.node)
            if self._symbol.kind in ("function", "async"):
                shape = dropping(shape, 1)
            return self._site(module, call, True, shape)
        kind = instance_of(self._tree, module, receiver, call.place)
        if isinstance(kind, str):
            return None
        return self._on(module, call, kind)

    def _on(self, module: Module, call: Call, kind: Class | None) -> Site | None:
        """The call, made on an instance of that class."""
        cls = self._symbol.cls
        assert cls is not None
        if kind is None:
            return self._site(module, call, False)
        if _reaches(kind, cls) or kind.inherits(cls.key):
            return self._site(module, call, True)
        if kind.is_closed and kind.member(tail(call.callee)) is None:
            # It has no such member: the object is of another class than is said, as
            # where a mixin calls what its user has to define.
            return self._site(module, call, False)
        return None

    def _class_around(self, module: Module, place: Place) -> Class | None:
        return class_at(self._tree, module.name, place.owner)

    def _site(
        self, module: Module, call: Call, certain: bool, shape: Shape | None = None
    ) -> Site:
        shape = shape or shape_of(call.node)
        if call.is_launch:
            shape = launched(shape)
        return Site(
            module.name,
            module.path,
            call.node.lineno,
            call.place.qualname,
            ast.unparse(call.callee),
            shape,
            certain,
        )


def _reaches(base: Class, cls: Class) -> bool:
    """Whether a call on `self` in `base` may land on an override in `cls`."""
    return cls.inherits(base.key)
