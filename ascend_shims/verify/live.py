"""The definitions that are loaded, compared with those in the files on disk.

    for finding in examine(module, code): ...

For each name that the file defines, what the live namespace has under it. A plain `def`
has to be a function of the very code. What is decorated may be anything, as long as
nothing of ours is on the way to the code.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from ..engine.slot import ABSENT, is_class, is_module, namespace
from ..engine.wrappers import mark_of, peel
from .bytecode import Body, Defined, is_function, rebinds
from .inventory.raw import layout, mro
from .origin import Home, Upstream, Used, is_definition
from .result import Difference

__all__ = ["Examined", "examine", "ours"]

_DEPTH = 6
"""So many layers deep is a decorated function looked for."""


@dataclass(frozen=True, slots=True)
class Examined:
    """One name that a file defines, or one that holds what no file accounts for."""

    path: str
    code: CodeType | None
    """Of the function that the file defines."""
    difference: Difference | None
    wrapper: Any = None
    """The wrapper of ours that it leads to."""


def examine(
    module: ModuleType, code: CodeType, upstream: Upstream, used: Used
) -> Iterator[Examined]:
    """Every definition in the file of `module`, against what is loaded."""
    home = Home(module, code, upstream, used)
    yield from _Scope(home, f"{home.name}:", module, home.body, [code]).examined()


class _Scope:
    """A module or class, and what its body in the file binds."""

    def __init__(
        self, home: Home, prefix: str, owner: Any, body: Body, bodies: list[CodeType]
    ) -> None:
        """`bodies`: the one of which `owner` was made is among them, as a file may
        define a class in an `if`."""
        self._home, self._prefix, self._owner = home, prefix, owner
        self._body, self._bodies = body, bodies
        self._held = namespace(owner)
        self._class = owner if is_class(owner) else None

    def examined(self) -> Iterator[Examined]:
        for name, defined in self._body.defined.items():
            raw = self._held.get(name, ABSENT)
            functions = [code for code in defined.codes if is_function(code)]
            if functions:
                yield self._function(name, raw, defined, functions[-1])
            else:
                yield from self._a_class(name, raw, defined)
        for name, raw in list(self._held.items()):
            if type(name) is str and name not in self._body.defined:
                what = self._undefined(name, raw)
                if what:
                    kind = "other-object" if name in self._body.times else "new"
                    yield self._differs(name, kind, what)

    def _differs(self, name: str, kind: str, what: str) -> Examined:
        path = self._prefix + name
        return Examined(path, None, Difference(path, kind, what))

    def _is_gone(self, name: str, defined: Defined) -> bool:
        # Upstream deletes some of what it defines.
        path = self._prefix + name
        is_target = path in self._home.upstream.targets and defined.is_plain
        is_sure = name in self._body.sure and not self._is_made
        return (is_target or is_sure) and not self._is_rebound(name)

    @property
    def _is_made(self) -> bool:
        """Whether others than its body have a say in what a class holds."""
        cls = self._class
        return cls is not None and (
            type(cls) is not type
            or any("__init_subclass__" in namespace(one) for one in mro(cls)[1:-1])
        )

    def _is_rebound(self, name: str) -> bool:
        return any(rebinds(body, name) for body in self._bodies)

    # What the file does not define

    def _undefined(self, name: str, raw: Any) -> str:
        """What is wrong with a name that an import, a value or nothing binds."""
        home = self._home
        sources = home.sources(name) if self._class is None else []
        if any(raw is one for one in sources):
            return ""
        is_imported = bool(sources) and all(map(is_definition, sources))
        if not is_definition(raw):
            wrong = is_imported and not is_module(raw) and not self._is_rebound(name)
        elif self._class is None and home.is_starred(name, raw):
            return ""
        else:
            wrong = self._is_foreign(raw) or (is_imported and not home.is_own(raw))
        return f"is {_said(_inside(raw))}" if wrong else ""

    def _is_foreign(self, raw: Any) -> bool:
        return self._home.is_foreign(_inside(raw), self._class)

    # Classes

    def _a_class(self, name: str, raw: Any, defined: Defined) -> Iterator[Examined]:
        home = self._home
        if raw is ABSENT:
            if self._is_gone(name, defined):
                yield self._differs(name, "gone", "is gone; the file defines it")
        elif is_class(raw) and namespace(raw).get("__module__") == home.name:
            for base in mro(raw)[1:]:
                if self._is_foreign(base):
                    yield self._differs(f"{name}<mro>", "new", f"has {_said(base)}")
            body = Body(defined.codes)
            prefix = f"{self._prefix}{name}."
            yield from _Scope(home, prefix, raw, body, defined.codes).examined()
        elif not self._is_rebound(name) and self._is_strange(name, raw, defined):
            yield self._differs(name, "other-object", f"is {_said(raw)}")

    def _is_strange(self, name: str, raw: Any, defined: Defined) -> bool:
        """Whether nothing of upstream can have put this in a class's place."""
        if self._is_foreign(raw):
            return True
        by_others = self._body.times[name] > len(defined.codes)
        return not (by_others or is_definition(raw) or self._home.is_own(raw))

    # Functions

    def _function(
        self, name: str, raw: Any, defined: Defined, code: CodeType
    ) -> Examined:
        path = self._prefix + name
        found = self._against(name, raw, defined)
        if found is not None and self._is_rebound(name):
            # The file does so itself: a cache that is switched on later, say.
            defined.is_plain = False
            found = self._against(name, raw, defined)
        wrapper = None
        if found is not None:
            layers = (raw, *_within(raw)) if raw is not ABSENT else ()
            wrapper = next((one for one in layers if mark_of(one) is not None), None)
        return Examined(path, code, found, wrapper)

    def _against(self, name: str, raw: Any, defined: Defined) -> Difference | None:
        path, upstream = self._prefix + name, self._home.upstream
        if raw is ABSENT:
            if self._is_gone(name, defined):
                return Difference(path, "gone", "is gone; the file defines it")
            return None
        function = _inside(raw)
        if type(function) is FunctionType and function.__code__ in defined.codes:
            return None
        on_the_way = [*_within(raw)]
        for one in (raw, *on_the_way):
            said = ours(one, upstream.skip)
            if said:
                return Difference(path, "other-object", f"leads to {said}")
        leads = any(one.__code__ in defined.codes for one in on_the_way)
        if not leads:
            for one in on_the_way:
                if f"{one.__module__}:{one.__qualname__}" == path:
                    what = f"has the code of {_said(one)}, not that of its file"
                    return Difference(path, "other-code", what)
        strange = self._stranger(raw, on_the_way)
        if strange is not None:
            what = "wrapped by " if leads else ""
            return Difference(path, "other-object", f"is {what}{_said(strange)}")
        if all(map(upstream.is_own, on_the_way)) and (
            on_the_way or not defined.is_plain
        ):
            # Upstream patches itself; and what a decorator made may be of C.
            return None
        # A decorator may give anything; these three give what they were given.
        is_known = defined.is_plain or (not leads and type(raw) in _BUILT_IN)
        if not is_known or path.endswith(_BY_CLASSES):
            return None
        what = "wrapped by " if leads else ""
        return Difference(path, "other-object", f"is {what}{_said(function)}")

    def _stranger(self, raw: Any, on_the_way: list[FunctionType]) -> Any:
        """What no decorator of upstream can have brought."""
        inside = _inside(raw)
        if type(inside) is FunctionType and inside.__closure__ is None:
            on_the_way = []  # it stands before nothing: what `@overload` leaves, say
        for one in (inside, *on_the_way):
            if is_definition(one) and self._is_foreign(one):
                return one
        return None


_BUILT_IN = (staticmethod, classmethod, property)
_BY_CLASSES = (".__new__", ".__init_subclass__")
"""What decorators and metaclasses of others put into a class: a deprecation, say."""


_DESCRIPTORS = (
    staticmethod,
    classmethod,
    property,
    functools.cached_property,
    functools.partialmethod,
)


def _inside(raw: Any) -> Any:
    """What a descriptor holds; anything else is not asked for its class."""
    return peel(raw) if issubclass(type(raw), _DESCRIPTORS) else raw


def _is_proxy(value: Any) -> bool:
    wrapt = sys.modules.get("wrapt")
    return wrapt is not None and issubclass(type(value), wrapt.FunctionWrapper)


def ours(raw: Any, skip: tuple[str, ...]) -> str:
    """What a value is of ours, in words; nothing if it is not."""
    value = _inside(raw)
    if type(value) is FunctionType or _is_proxy(value):
        mark = mark_of(value)
        if mark is not None:
            return f"our wrapper for {mark.gap}"
    if is_class(value):
        module = namespace(value).get("__module__")
    elif type(value) is FunctionType:
        # The globals tell where a function was made; its `__module__` may be copied.
        module = value.__globals__.get("__name__")
    else:
        return ""
    if type(module) is str and _is_in(module, skip):
        return f"{value.__qualname__} of {module}"
    return ""


def _is_in(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in packages)


def _within(raw: Any) -> Iterator[FunctionType]:
    """The functions that a decorated value leads to."""
    queue, seen = [(raw, 0)], {id(raw)}
    for one, depth in queue:
        if type(one) is FunctionType:
            yield one
        if depth == _DEPTH:
            continue
        for part in _inner(one):
            if id(part) not in seen:
                seen.add(id(part))
                queue.append((part, depth + 1))


def _inner(one: Any) -> list[Any]:
    kind = type(one)
    if kind is FunctionType:
        return [*(one.__closure__ or ()), *one.__dict__.values()]
    if kind is CellType:
        try:
            return [one.cell_contents]
        except ValueError:
            return []
    if kind in (staticmethod, classmethod, MethodType):
        return [one.__func__]
    if kind is property:
        return [one.fget, one.fset, one.fdel]
    if kind is functools.partial:
        return [one.func, *one.args]
    if kind in (list, tuple):
        return [*one][:50]
    if kind is dict:
        # Not a module's: what an object only looks names up in is no part of it.
        return [] if "__builtins__" in one else [*one.values()][:50]
    if is_class(one) or issubclass(kind, ModuleType):
        return []
    return layout(kind).read(one)[1]


def _said(value: Any) -> str:
    if type(value) is FunctionType:
        code = value.__code__
        file = "/".join(code.co_filename.rsplit("/", 2)[-2:])
        return f"{value.__qualname__} of {file}:{code.co_firstlineno}"
    if is_class(value):
        return f"the class {value.__qualname__}"
    return f"a {type(value).__qualname__}"
