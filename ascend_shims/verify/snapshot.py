"""What upstream's namespaces hold: the very objects, their order, their code.

A snapshot covers every function, class, method and descriptor in the loaded
modules of some packages. Values that a program changes as it runs (counters,
caches, configuration) are left out: they say nothing about patches.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from ..engine.slot import namespace
from ..engine.wrappers import peel

__all__ = ["Difference", "Snapshot", "take"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One name that is not as it was."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


@dataclass(frozen=True)
class Snapshot:
    """Definitions by path, in namespace order."""

    modules: tuple[str, ...]
    objects: dict[str, Any]
    """`module:Qual.name` to the raw object. Held, so that identity means something."""
    prints: dict[str, str]
    """The same paths to a fingerprint that does not depend on this process."""

    @property
    def digest(self) -> str:
        """Of all paths, their order and their fingerprints. 16 hexadecimal digits."""
        text = "\n".join(f"{path} {mark}" for path, mark in self.prints.items())
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def differences(self, later: Snapshot) -> list[Difference]:
        """What `later`, taken of the same modules, has otherwise."""
        found = [
            Difference(path, "is gone")
            for path in self.objects
            if path not in later.objects
        ]
        found += [
            Difference(path, "is new")
            for path in later.objects
            if path not in self.objects
        ]
        for path, before in self.objects.items():
            after = later.objects.get(path, before)
            if after is before:
                continue
            same = self.prints[path] == later.prints[path]
            what = "another object of the same code" if same else "another object"
            found.append(Difference(path, what))
        if not found and list(self.objects) != list(later.objects):
            found.append(Difference("order", "names stand in another order"))
        return found


def take(packages: Iterable[str], modules: Iterable[str] | None = None) -> Snapshot:
    """A snapshot of the loaded modules of `packages`.

    `modules` limits it to these, so that a later snapshot can be compared with
    an earlier one although more has been imported since.
    """
    roots = tuple(packages)
    loaded = sorted(
        name
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and any(name == root or name.startswith(f"{root}.") for root in roots)
    )
    names = [name for name in loaded if modules is None or name in set(modules)]
    objects: dict[str, Any] = {}
    for name in names:
        for path, value in _definitions(name, sys.modules[name], name, set()):
            objects[path] = value
    prints = {path: _print(value) for path, value in objects.items()}
    return Snapshot(tuple(names), objects, prints)


def _definitions(
    prefix: str, owner: Any, module: str, seen: set[int]
) -> Iterator[tuple[str, Any]]:
    separator = ":" if isinstance(owner, ModuleType) else "."
    for name, value in list(namespace(owner).items()):
        path = f"{prefix}{separator}{name}"
        if not _is_definition(value):
            continue
        yield path, value
        own = issubclass(type(value), type) and (
            namespace(value).get("__module__") == module
        )
        if own and id(value) not in seen:
            seen.add(id(value))
            yield from _definitions(path, value, module, seen)


def _is_definition(value: Any) -> bool:
    kind = type(value)
    if issubclass(kind, type) or kind in (FunctionType, BuiltinFunctionType):
        return True
    inner = peel(value)
    return inner is not value or type(inner) is FunctionType


def _print(raw: Any) -> str:
    value = peel(raw)
    kind = type(raw).__name__
    if type(value) is FunctionType:
        return f"{kind} {value.__module__}:{value.__qualname__} {_code(value.__code__)}"
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"{kind} {name}"


def _code(code: CodeType) -> str:
    digest = hashlib.sha256(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        digest.update(_constant(constant).encode())
    return digest.hexdigest()[:16]


def _constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, frozenset):
        # Its order depends on the process.
        return f"frozenset {sorted(map(_constant, value))}"
    if isinstance(value, tuple):
        return f"tuple {list(map(_constant, value))}"
    return f"{type(value).__name__} {value!r}"
