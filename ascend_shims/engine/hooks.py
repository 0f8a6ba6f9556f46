"""Being told when a module has finished executing.

A finder at the front of `sys.meta_path` sees the import of a watched module,
lets the other finders find it, and has the loader call back once the module's
own body is done. Before that body runs, the loader that the module shows is the
one it would have had without us. The watch is for the module's name: it
outlives a reload and a second import, and it can be withdrawn, upon which
`sys.meta_path` is as before.

`wrapt` has post-import hooks too; they cannot be withdrawn, fire once, and are
gone when one of them raises.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .slot import is_initialising, namespace

__all__ = ["Hooks"]

Callback = Callable[[str], None]


class _Loader(importlib.abc.Loader):
    """Stands in for a loader until the module's body starts."""

    def __init__(self, loader: Any, done: Callback) -> None:
        self._loader = loader
        self._done = done

    def __getattr__(self, name: str) -> Any:
        # Whoever looks at the spec before the import (runpy, pkgutil,
        # importlib.resources) sees what the real loader offers.
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        spec = namespace(module)["__spec__"]
        spec.loader = self._loader
        if namespace(module).get("__loader__") is self:
            module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._done(spec.name)


class _FinishingSpec(ModuleSpec):
    """The class of a spec whose module was half-way when we began to watch.

    Its loader can no longer be replaced. The import system clears
    `_initializing` when the body is done, so the spec tells us, once, and is an
    ordinary spec again.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name != "_initializing" or value:
            return
        tell = self.__dict__.pop("_tell")
        object.__setattr__(self, "__class__", ModuleSpec)
        tell(self.name)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._busy = threading.local()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if not self._hooks.watches(fullname) or getattr(self._busy, "on", False):
            return None
        self._busy.on = True
        try:
            spec = self._found(fullname, path, target)
        finally:
            self._busy.on = False
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return spec
        spec.loader = _Loader(spec.loader, self._hooks.finished)
        return spec

    def _found(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return spec
        return None


class Hooks:
    """The modules that are watched, and what to call when one has finished."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        self._watched: frozenset[str] = frozenset()
        self._finder = _Finder(self)

    def watches(self, module: str) -> bool:
        return module in self._watched

    def watch(self, modules: frozenset[str]) -> None:
        """Watch exactly these modules. None: withdraw from `sys.meta_path`."""
        self._watched = modules
        installed = self._finder in sys.meta_path
        if modules and not installed:
            sys.meta_path.insert(0, self._finder)
        elif not modules and installed:
            sys.meta_path.remove(self._finder)
        for name in modules:
            self._follow(name)

    def _follow(self, name: str) -> None:
        """Have a module that is half-way through its import tell when it is done."""
        module = sys.modules.get(name)
        if not isinstance(module, ModuleType) or not is_initialising(module):
            return
        spec = namespace(module)["__spec__"]
        if type(spec) is not ModuleSpec:
            return
        spec.__dict__["_tell"] = self.finished
        spec.__class__ = _FinishingSpec

    def finished(self, name: str) -> None:
        """A watched module's body is done (or was given up)."""
        if self.watches(name) and name in sys.modules:
            self._callback(name)
