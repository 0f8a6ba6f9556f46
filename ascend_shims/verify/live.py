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

from ..engine.slot import ABSENT, is_class, namespace
from ..engine.wrappers import mark_of, peel
from .inventory.raw import layout
from .result import Difference
from .source import Defined, definitions, is_function, rebinds

__all__ = ["Examined", "Upstream", "examine", "ours"]

_DEPTH = 6
"""So many layers deep is a decorated function looked for."""


@dataclass(frozen=True, slots=True)
class Examined:
    """One name that a file defines."""

    path: str
    code: CodeType
    difference: Difference | None


@dataclass(frozen=True, slots=True)
class Upstream:
    """What tells upstream's own from ours."""

    skip: tuple[str, ...]
    """Packages of ours."""
    folders: tuple[str, ...]
    """Where upstream's files are."""
    targets: frozenset[str]
    """Where gaps patch: what the file defines may not be gone there."""

    def is_own(self, function: FunctionType) -> bool:
        return function.__code__.co_filename.startswith(self.folders)


def examine(
    module: ModuleType, body: CodeType, upstream: Upstream
) -> Iterator[Examined]:
    """Every definition in the file of `module`, against what is loaded."""
    name = str(namespace(module)["__name__"])
    yield from _in_bodies(f"{name}:", name, module, [body], upstream)


def _in_bodies(
    prefix: str,
    module: str,
    owner: Any,
    bodies: list[CodeType],
    upstream: Upstream,
) -> Iterator[Examined]:
    """`owner` was made by one of `bodies`: a file may define a class in an `if`."""
    held = namespace(owner)
    for name, defined in definitions(bodies).items():
        path, raw = prefix + name, held.get(name, ABSENT)
        functions = [code for code in defined.codes if is_function(code)]
        if functions:
            difference = _function(path, raw, defined, upstream)
            if difference is not None and any(rebinds(body, name) for body in bodies):
                # The file does so itself: a cache that is switched on later, say.
                defined.is_plain = False
                difference = _function(path, raw, defined, upstream)
            yield Examined(path, functions[-1], difference)
        elif is_class(raw) and namespace(raw).get("__module__") == module:
            yield from _in_bodies(f"{path}.", module, raw, defined.codes, upstream)


def _function(
    path: str, raw: Any, defined: Defined, upstream: Upstream
) -> Difference | None:
    if raw is ABSENT:
        # Upstream deletes some of what it defines.
        if path in upstream.targets and defined.is_plain:
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
    if all(map(upstream.is_own, on_the_way)) and (on_the_way or not defined.is_plain):
        # Upstream patches itself, and torch; and what a decorator made may be of C.
        return None
    # A decorator may give anything; these three give what they were given.
    is_known = defined.is_plain or (not leads and type(raw) in _BUILT_IN)
    if not is_known or path.endswith(_BY_CLASSES):
        return None
    what = "wrapped by " if leads else ""
    return Difference(path, "other-object", f"is {what}{_said(function)}")


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
        return [*one.values()][:50]
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
