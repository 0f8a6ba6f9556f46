"""The namespaces of all modules that are not upstream's, and of their classes.

Functions, classes and what else is called, by identity. Plain values are left out:
what a program counts and caches says nothing about patches.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from operator import is_
from typing import Any

from .names import code_mark, name_of
from .parts import Derived
from .plain import SCALARS, digest
from .raw import is_class, is_module, namespace

__all__ = ["Elsewhere"]

_KINDS = frozenset(
    map(
        id,
        (
            types.FunctionType,
            types.BuiltinFunctionType,
            types.MethodType,
            types.WrapperDescriptorType,
            types.MethodDescriptorType,
            types.ClassMethodDescriptorType,
            staticmethod,
            classmethod,
            property,
            functools.partial,
            functools.partialmethod,
            functools.cached_property,
            type(functools.lru_cache(len)),
        ),
    )
)
_MODULES = sys.modules
_VARYING = ("typing:_check_generic", "typing:_collect_parameters")
"""`typing_extensions` puts its own there when somebody imports it, as libraries of the
toolkit do: compared inside one process only."""
_ABSENT = object()
_MARK = 7
"""Digits: enough to tell, and too few to be looked through for addresses."""


def _is_called(value: Any) -> bool:
    return id(type(value)) in _KINDS or is_class(value)


class _Owner:
    """A module or class with what its namespace held."""

    __slots__ = ("cls", "held", "keys", "path", "values")

    def __init__(self, path: str, owner: Any) -> None:
        self.path, self.held = path, namespace(owner)
        self.cls = owner if is_class(owner) else None
        held = self.held
        self.keys, self.values = [*held], [*held.values()]

    def changes(self) -> Iterator[tuple[str, Any, Any]]:
        """Name, what was there and what is."""
        held = self.held
        if len(held) == len(self.keys) and all(map(is_, held.values(), self.values)):
            return
        before = dict(zip(self.keys, self.values, strict=True))
        for name in {**before, **held}:
            old, new = before.get(name, _ABSENT), held.get(name, _ABSENT)
            if old is not new and (_is_called(old) or _is_called(new)):
                yield f"{self.path}{name}", old, new


class Elsewhere:
    """What they held when this was made."""

    def __init__(self, roots: tuple[str, ...], strangers: tuple[str, ...]) -> None:
        """`roots` are upstream's packages; `strangers` those of the toolkit and its
        patches, which are not there everywhere."""
        self._skip = {*roots, *strangers, __name__.partition(".")[0]}
        self._owners = [*self._all()]

    def _all(self) -> Iterator[_Owner]:
        seen: set[int] = set()
        for name, module in sorted(_MODULES.items()):
            if self._is_skipped(name) or not is_module(module) or id(module) in seen:
                continue
            seen.add(id(module))
            owners = [(f"{name}:", module)]
            for path, owner in owners:
                yield _Owner(path, owner)
                for key, value in [*namespace(owner).items()]:
                    if is_class(value) and id(value) not in seen:
                        seen.add(id(value))
                        if not self._is_skipped(namespace(value).get("__module__")):
                            owners.append((f"{path}{key}.", value))

    def _is_skipped(self, module: Any) -> bool:
        return type(module) is str and module.partition(".")[0] in self._skip

    def changes(self) -> Iterator[tuple[str, Any, Any, bool, bool]]:
        """Path, what was there and what is; whether either was there at all."""
        for owner in self._owners:
            for path, old, new in owner.changes():
                yield path, old, new, old is not _ABSENT, new is not _ABSENT

    def described(self) -> Derived:
        """Names and kinds, in words that are the same in each process."""
        modules: dict[str, Derived] = {}
        classes: dict[str, list[str]] = {}
        for owner in self._owners:
            names = {
                str(key): _text(value)
                for key, value in zip(owner.keys, owner.values, strict=True)
                if _is_called(value) and f"{owner.path}{key}" not in _VARYING
            }
            if owner.cls is None:
                modules[owner.path[:-1]] = _sorted(names)
            else:
                texts = "\n".join(f"{key} {names[key]}" for key in sorted(names))
                classes.setdefault(name_of(owner.cls), []).append(digest(texts)[:_MARK])
        alone = {name: texts[0] for name, texts in classes.items() if len(texts) == 1}
        # Through which module a class is met depends on what there is of them.
        modules["classes"] = _sorted(alone)._replace(kind="elsewhere")
        return Derived("elsewhere", [*modules], [*modules.values()])


def _sorted(names: dict[str, str]) -> Derived:
    return Derived("names", sorted(names), [names[name] for name in sorted(names)])


def _text(value: Any) -> str:
    kind = type(value)
    if kind is types.FunctionType:
        return f"function {name_of(value)} {code_mark(value.__code__)[:_MARK]}"
    if id(kind) in SCALARS or id(kind) in _KINDS:
        return kind.__name__
    return f"class {name_of(value)}"
