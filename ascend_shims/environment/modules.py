"""Whether a module could be imported, and what its source binds.

Neither imports the module nor its parents.
"""

from __future__ import annotations

import opcode
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType

__all__ = ["binds", "find_module"]

_BINDS = (opcode.opmap["STORE_NAME"], opcode.opmap["STORE_GLOBAL"])
_EXTENDED = opcode.opmap["EXTENDED_ARG"]


def find_module(name: str) -> ModuleSpec | None:
    """The spec that importing `name` would use, or None where there is none."""
    path: Sequence[str] | None = None
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        spec = _find(".".join(parts[:depth]), path)
        if spec is None:
            return None
        # A loaded package may have changed where its modules are looked for.
        loaded = sys.modules.get(spec.name)
        path = getattr(loaded, "__path__", spec.submodule_search_locations)
        if path is None and depth < len(parts):
            return None
    return spec


def _find(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if isinstance(loaded, ModuleSpec):
        return loaded
    for finder in list(sys.meta_path):
        if not hasattr(finder, "find_spec"):
            continue
        spec = finder.find_spec(name, path)
        if spec is not None:
            return spec
    return None


def binds(spec: ModuleSpec, name: str) -> bool | None:
    """Whether the module's source binds `name` at its top level.

    None where that cannot be told: there is no source, or it says `import *`.
    """
    if not spec.origin or not spec.origin.endswith(".py"):
        return None
    try:
        known = Path(spec.origin).stat()
        bound = _names(spec.name, spec.origin, known.st_mtime_ns, known.st_size)
    except (ImportError, OSError, SyntaxError, ValueError):
        return None
    return None if "*" in bound and name not in bound else name in bound


@lru_cache(maxsize=256)
def _names(name: str, path: str, _changed: int, _size: int) -> frozenset[str]:
    """What the code of a module binds, and `*` where it binds what another one has.

    The code is at hand from Python's own cache, where parsing a large module takes
    longer than all the rest of a plan. Raises what getting it raises.
    """
    code = SourceFileLoader(name, path).get_code(name)
    assert code is not None
    star = ["*"] if ("*",) in code.co_consts else []
    return frozenset([*star, *_bound(code)])


def _bound(code: CodeType) -> Iterator[str]:
    extended = 0
    for operation, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        if operation in _BINDS:
            yield code.co_names[extended | argument]
        extended = (extended | argument) << 8 if operation == _EXTENDED else 0
