"""Whose code stands under a name: upstream's, that of what it uses, or a stranger's.

Upstream patches itself, and decorates with what it imports; neither is a difference.
What comes from anywhere else has been put there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..engine.slot import ABSENT, is_module, namespace
from .bytecode import Body
from .inventory.raw import mro
from .written.raw import is_callable, is_code, made_by, top

__all__ = ["Home", "Upstream", "Used", "is_definition"]

_STANDARD = {*sys.stdlib_module_names, "", "builtins", "pybind11_builtins"} - {
    "unittest"
}
"""What needs no import. Not `unittest`: its mocks stand where somebody put them."""

_NOTHING: frozenset[str] = frozenset()

Used = Mapping[str, set[str]]
"""The top-level packages that each module of upstream may import."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """What tells upstream's own from ours."""

    skip: tuple[str, ...]
    """Packages of ours."""
    folders: tuple[str, ...]
    """Where upstream's files are."""
    targets: frozenset[str]
    """Where gaps patch: what the file defines may not be gone there."""
    roots: tuple[str, ...]

    def is_own(self, function: FunctionType) -> bool:
        return function.__code__.co_filename.startswith(self.folders)


def is_definition(value: Any) -> bool:
    """Whether a value is something that is called: all else changes as programs run."""
    return is_code(value) or is_callable(value)


class Home:
    """A module, and the packages whose code it may hold."""

    def __init__(
        self, module: ModuleType, code: CodeType, upstream: Upstream, used: Used
    ) -> None:
        held = namespace(module)
        self.name = str(held["__name__"])
        package = self.name if "__path__" in held else self.name.rpartition(".")[0]
        self.body = Body([code], package)
        self.code = code
        self.upstream = upstream
        self._known = _STANDARD | set(upstream.roots) | used[self.name]
        # What a decorator made is of a package that the decorator's module uses.
        for name in self.body.imported:
            self._known |= used.get(name, _NOTHING)

    def is_foreign(self, value: Any, owner: Any = None) -> bool:
        """Whether code comes from a package that nothing here knows of.

        `owner`: the class that holds it; its bases and metaclass may have a say.
        """
        if type(value) is FunctionType and self.upstream.is_own(value):
            return False
        maker = top(made_by(value))
        if maker in self._known:
            return False
        return owner is None or maker not in {
            top(made_by(one)) for one in (*mro(owner), type(owner))
        }

    def is_own(self, value: Any) -> bool:
        """Whether code is upstream's."""
        return top(made_by(value)) in self.upstream.roots

    def sources(self, name: str) -> list[Any]:
        """What the imports that bind a name give now; nothing if others bind it."""
        return list(self._sources(name))

    def _sources(self, name: str) -> Iterator[Any]:
        for module, original in self.body.sources.get(name, ()):
            there = sys.modules.get(module)
            if is_module(there):
                found = namespace(there).get(original, ABSENT)
                if found is not ABSENT:
                    yield found
            inner = sys.modules.get(f"{module}.{original}")
            if inner is not None:
                yield inner

    def is_starred(self, name: str, value: Any) -> bool:
        """Whether one of the modules of which it takes everything has this."""
        modules = map(sys.modules.get, self.body.stars)
        return any(is_module(m) and namespace(m).get(name) is value for m in modules)
