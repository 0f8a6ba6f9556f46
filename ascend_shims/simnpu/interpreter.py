"""Triton's interpreter, quicker: its own code, asked less often.

At each launch, and again in each device function that a kernel calls, the interpreter
searches all of `triton.language` for what to replace. It computes checks of integer
overflow whose outcome its own options drop, and makes a table of all types to look
one of them up. In a process that was started for the rig it does each of these once.
What kernels compute stays the same to the bit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

__all__ = ["quicken"]

_NEEDED = (
    "_LangPatchScope",
    "_MISSING",
    "_get_np_dtype",
    "_patch_lang",
    "interpreter_builder",
    "tl",
)
"""Names of the interpreter that this relies on."""


def quicken() -> bool:
    """Quicken this process's interpreter, once; True if it is.

    False without Triton, and for a Triton whose interpreter is built another way.
    """
    try:
        from triton.runtime import interpreter
    except ImportError:
        return False
    if isinstance(getattr(interpreter, "_patch_lang", None), _Language):
        return True
    if not all(hasattr(interpreter, name) for name in _NEEDED):
        return False
    interpreter._patch_lang = _Language(interpreter)
    interpreter._get_np_dtype = _by_name(interpreter._get_np_dtype)
    builder = interpreter.interpreter_builder
    if not builder.options.debug:
        # Without `debug` the assertion at the end of each check is left out.
        builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
    return True


class _Language:
    """`_patch_lang` of the interpreter, which replaces parts of `triton.language`.

    Upstream's own replacements, found once for both of its modules, are in force from
    the start of a launch to its end. A device function on the way finds them there.
    """

    def __init__(self, interpreter: Any) -> None:
        self._search = interpreter._patch_lang
        self._missing = interpreter._MISSING
        modules = {"tl": interpreter.tl, "core": interpreter.tl.core}
        self._seen_by_a_kernel = SimpleNamespace(__globals__=modules)
        self._replacements: list[tuple[Any, str, Any, Any]] = []
        """Owner, name, what was there, what comes there."""
        self._pristine: list[tuple[Any, dict[str, Any]]] = []
        self._is_replaced = False

    def __call__(self, _kernel: object) -> Any:
        """Replace; the launch calls `restore` of what this returns."""
        if self._is_replaced:
            return _NOTHING
        if not self._pristine or any(vars(o) != was for o, was in self._pristine):
            self._find()
        for owner, name, _, new in self._replacements:
            setattr(owner, name, new)
        self._is_replaced = True
        return self

    def restore(self) -> None:
        for owner, name, old, _ in self._replacements:
            if old is self._missing:
                delattr(owner, name)
            else:
                setattr(owner, name, old)
        self._is_replaced = False

    def _find(self) -> None:
        scope = self._search(self._seen_by_a_kernel)
        first: dict[tuple[Any, str], Any] = {}
        for owner, name, old in scope._changes:
            first.setdefault((owner, name), old)
        self._replacements = [
            (owner, name, old, vars(owner)[name])
            for (owner, name), old in first.items()
        ]
        scope.restore()
        owners = dict.fromkeys(owner for owner, _ in first)
        self._pristine = [(owner, dict(vars(owner))) for owner in owners]


class _Nothing:
    """The scope of a device function: there is nothing to restore."""

    def restore(self) -> None:
        pass


_NOTHING = _Nothing()


def _by_name(find: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`find` asked once for each type; types of one name are the same to it."""
    known: dict[str, Any] = {}

    def found(dtype: Any) -> Any:
        name = dtype.name
        if name not in known:
            known[name] = find(dtype)
        return known[name]

    return found
