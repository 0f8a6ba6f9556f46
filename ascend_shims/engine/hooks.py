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

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from .slot import is_initialising, is_module, namespace

__all__ = ["Hooks"]

Callback = Callable[[str], None]


class _Loader:
    """Stands in for a loader until the module's body starts.

    Like the finder it is of no class of `importlib.abc`, which loads 2 MB of what
    nobody here needs.
    """

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
        tell = _unfollow(self)
        if tell is not None:
            tell(self.name)


def _unfollow(spec: ModuleSpec) -> Callback | None:
    """Make the spec an ordinary one again. Returns who is to be told, once."""
    object.__setattr__(spec, "__class__", ModuleSpec)
    tell: Callback | None = spec.__dict__.pop("_tell", None)
    return tell


class _Finder:
    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks
        self._busy = threading.local()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        # A finder that asks all others, as we do, comes back here.
        busy: set[str] = self._busy.__dict__.setdefault("names", set())
        if not self._hooks.watches(fullname) or fullname in busy:
            return None
        busy.add(fullname)
        try:
            spec = self._found(fullname, path, target)
        finally:
            busy.discard(fullname)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return spec
        loader: Any = _Loader(spec.loader, self._hooks.finished)
        spec.loader = loader
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
        self._found: list[Any] = []
        """`sys.meta_path` as it was before ours."""

    def watches(self, module: str) -> bool:
        return module in self._watched

    def watch(self, modules: frozenset[str]) -> None:
        """Watch exactly these modules. None: withdraw from `sys.meta_path`."""
        self._watched = modules
        installed = any(one is self._finder for one in sys.meta_path)
        if modules and not installed:
            self._install()
        elif not modules and installed:
            self._withdraw()
        for name in modules:
            self._follow(name)

    # Another thread's import may be going through the list at this moment. If an
    # entry left it, that import would miss the next one and find no module. So the
    # list is replaced, and the list that was there comes back.

    def _install(self) -> None:
        self._found = sys.meta_path
        sys.meta_path = [self._finder, *self._found]

    def _withdraw(self) -> None:
        others = [one for one in sys.meta_path if one is not self._finder]
        if list(map(id, others)) == list(map(id, self._found)):
            sys.meta_path = self._found
        else:
            # Somebody else has changed the list since.
            sys.meta_path = others

    def _follow(self, name: str) -> None:
        """Have a module that is half-way through its import tell when it is done."""
        module = sys.modules.get(name)
        if not is_module(module) or not is_initialising(module):
            return
        spec = namespace(module)["__spec__"]
        if type(spec) is not ModuleSpec:
            return
        spec.__dict__["_tell"] = self.finished
        spec.__class__ = _FinishingSpec
        if not is_initialising(module):
            # It finished in this very moment: whoever asks next finds it done.
            _unfollow(spec)

    def finished(self, name: str) -> None:
        """A watched module's body is done (or was given up)."""
        if self.watches(name) and name in sys.modules:
            self._callback(name)
