"""One installed plugin: by its source text, and by its classes once they are loaded."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any, Literal

from .plugin_source import Body, source_of
from .providers import Claim, Closing

__all__ = ["Plugin", "heirs_of"]

_INSIDE = ("__wrapped__", "__func__", "fget", "func")
"""Attributes behind which a decorator or descriptor has what it stands before."""

_DEPTH = 32
"""Decorators on one function. A circle of them must not hang us."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A definition in a plugin."""

    symbol: str
    body: Body
    told_by: Literal["source", "class"]


class Plugin:
    """One installed plugin."""

    def __init__(
        self,
        package: str,
        claims: Collection[Claim],
        upstreams: Collection[str],
        executed: Collection[str],
    ) -> None:
        self._package = package
        self._upstreams = upstreams
        self._executed = executed
        self._modules = dict.fromkeys(claim.module for claim in claims)
        self._bases: dict[str, set[str]] = {}
        """Upstream's classes in whose place those of the claims are put, and the
        modules that do so."""
        for owner in {claim.symbol.rpartition(".")[0] for claim in claims}:
            for base in self._beneath(owner):
                self._bases.setdefault(base, set()).add(owner.partition(":")[0])

    @property
    def watched(self) -> set[str]:
        return {*self._modules, *(base.partition(":")[0] for base in self._bases)}

    @property
    def waiting(self) -> set[str]:
        """`Providers.bases`."""
        deriving = {module for modules in self._bases.values() for module in modules}
        return set() if deriving & sys.modules.keys() else {*self._bases}

    @property
    def is_displaced(self) -> bool:
        """Whether somebody else's class is in the place of the plugin's."""
        own = {*self._upstreams, self._package}
        heirs = heirs_of(self.waiting)
        return any(_root(heir.__module__) not in own for heir in heirs)

    def closing(self, claims: Iterable[Claim]) -> dict[Claim, Closing]:
        found: dict[Claim, Closing] = {}
        for claim in claims:
            one = self._find(claim.symbol)
            if one and (claim.reads is None or claim.reads in one.body.loads):
                found[claim] = Closing(one.symbol, one.told_by)
        return found

    def before(self, targets: Iterable[str]) -> dict[str, str]:
        heirs: dict[str, list[str]] = {}
        for module in self._modules:
            source = source_of(module)
            for cls in source.bases if source else ():
                for base in self._beneath(f"{module}:{cls}"):
                    heirs.setdefault(base, []).append(f"{module}:{cls}")
        found: dict[str, str] = {}
        for target in targets:
            base, _, name = target.rpartition(".")
            overrides = (self._find(f"{heir}.{name}") for heir in heirs.get(base, ()))
            for one in overrides:
                if one and not one.body.passes_on:
                    found[target] = one.symbol
        return found

    def _find(self, symbol: str) -> _Found | None:
        """The plugin's own definition of `symbol`, which a base may have."""
        module = self._finished(symbol.partition(":")[0])
        if module is None:
            return self._in_text(symbol, set())
        owner: Any = module
        *path, name = symbol.partition(":")[2].split(".")
        for part in path:
            owner = vars(owner).get(part) if hasattr(owner, "__dict__") else None
        holders = owner.__mro__ if isinstance(owner, type) else [owner]
        holder = next((h for h in holders if name in getattr(h, "__dict__", ())), None)
        if holder is None:
            return None
        if isinstance(holder, type):
            if _root(holder.__module__) in {*self._upstreams, "builtins"}:
                return None
            symbol = f"{holder.__module__}:{holder.__qualname__}.{name}"
        body = _live_body(vars(holder)[name], name)
        if body is None:
            written = self._in_text(symbol, set())
            body = written.body if written else Body()
        return _Found(symbol, body, "class")

    def _in_text(self, symbol: str, seen: set[str]) -> _Found | None:
        """The same by source: there, in a base, or where it was imported from."""
        module, _, qualname = symbol.partition(":")
        source = source_of(module) if _root(module) == self._package else None
        if source is None or symbol in seen:
            return None
        seen.add(symbol)
        if qualname in source.bodies:
            return _Found(symbol, source.bodies[qualname], "source")
        owner, _, name = qualname.rpartition(".")
        elsewhere = [f"{base}.{name}" for base in source.bases.get(owner, ())]
        head, *rest = qualname.split(".")
        if head in source.imported:
            elsewhere.append(".".join([source.symbol(head), *rest]))
        found = (self._in_text(one, seen) for one in elsewhere)
        return next(filter(None, found), None)

    def _beneath(self, cls: str) -> Iterator[str]:
        """The upstream classes that a class of the plugin derives from, by source."""
        waiting, seen = [cls], set[str]()
        while waiting:
            module, _, qualname = waiting.pop().partition(":")
            source = source_of(module) if _root(module) == self._package else None
            for base in source.bases.get(qualname, ()) if source else ():
                if base not in seen:
                    seen.add(base)
                    waiting.append(base)
                    if _root(base) in self._upstreams:
                        yield base

    def _finished(self, name: str) -> ModuleType | None:
        """A module that has been imported to its end."""
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        half_way = getattr(spec, "_initializing", False) and name not in self._executed
        return None if half_way else module


def heirs_of(classes: Iterable[str]) -> Iterator[type]:
    """The subclasses that those of `classes` have which are loaded."""
    for symbol in classes:
        module, _, qualname = symbol.partition(":")
        found = vars(sys.modules.get(module, object)).get(qualname)
        if isinstance(found, type):
            yield from _heirs(found)


def _root(dotted: str) -> str:
    return dotted.partition(":")[0].partition(".")[0]


def _heirs(cls: type) -> Iterator[type]:
    found: list[type] = type.__subclasses__(cls)
    for heir in found:
        yield heir
        yield from _heirs(heir)


def _live_body(value: Any, name: str) -> Body | None:
    """What the code of a member loads; None where its own code cannot be seen."""
    for _ in range(_DEPTH):
        inner = next((v for a in _INSIDE if (v := getattr(value, a, None))), None)
        if inner is None:
            break
        value = inner
    code = getattr(value, "__code__", None)
    # What a decorator has put there is called otherwise, and tells nothing.
    if not isinstance(code, CodeType) or code.co_name != name:
        return None
    loads = frozenset(_loads(code))
    return Body(loads, name in loads)


def _loads(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    yield from code.co_freevars
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loads(constant)
