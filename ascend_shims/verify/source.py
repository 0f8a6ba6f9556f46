"""What a module's file on disk defines, to be compared with what is loaded.

The files in which gaps patch are compiled from their text. Of the others the code is
taken that Python itself would load: from `__pycache__`, where that belongs to the text
as it is now, so that two thousand modules take seconds.
"""

from __future__ import annotations

import importlib.util
import marshal
import opcode
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

from ..errors import ShimsError

__all__ = [
    "Defined",
    "UnreadableSourceError",
    "definitions",
    "is_function",
    "rebinds",
    "read_source",
]


class UnreadableSourceError(ShimsError):
    """The file of a loaded module cannot be read, or holds no Python."""


@dataclass
class Defined:
    """What one name of a module or class body is bound to by a definition."""

    codes: list[CodeType] = field(default_factory=list)
    """Of the functions or class bodies of that name, in the order of the text."""
    is_plain: bool = True
    """Whether nothing but plain `def` statements without decorators binds the name."""


def read_source(path: Path, *, compiled: bool) -> CodeType:
    """The code of a module's file. Raises `UnreadableSourceError`."""
    try:
        code = None if compiled else _cached(path)
        return code or compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError) as error:
        raise UnreadableSourceError(f"{path}: {error}") from error


def _cached(path: Path) -> CodeType | None:
    """The code in `__pycache__`, if it was made from the text as it is now."""
    try:
        data = Path(importlib.util.cache_from_source(str(path))).read_bytes()
        status = path.stat()
    except (OSError, NotImplementedError):
        return None
    if data[:4] != importlib.util.MAGIC_NUMBER or int.from_bytes(data[4:8], "little"):
        return None
    made = int.from_bytes(data[8:12], "little"), int.from_bytes(data[12:16], "little")
    if made != (int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF):
        return None
    code = marshal.loads(data[16:])
    return code if isinstance(code, CodeType) else None


_OPTIMISED = 0x1  # CO_OPTIMIZED: functions have it, class bodies do not.


def is_function(code: CodeType) -> bool:
    return bool(code.co_flags & _OPTIMISED)


_MADE = tuple(
    opcode.opmap[name]
    for name in ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE")
    if name in opcode.opmap
)
_SKIPPED = tuple(
    opcode.opmap[name] for name in ("CACHE", "EXTENDED_ARG") if name in opcode.opmap
)
_EXTENDED = opcode.opmap["EXTENDED_ARG"]
_BINDS = (opcode.opmap["STORE_NAME"], opcode.opmap["STORE_GLOBAL"])
_DELETES = opcode.opmap["DELETE_NAME"]


def definitions(bodies: list[CodeType]) -> dict[str, Defined]:
    """What the bodies of a module or class define, by name."""
    found: dict[str, Defined] = {}
    for constant in (constant for body in bodies for constant in body.co_consts):
        if isinstance(constant, CodeType) and constant.co_name.isidentifier():
            found.setdefault(constant.co_name, Defined()).codes.append(constant)
    for name, is_made in (pair for body in bodies for pair in _bindings(body)):
        if name in found and not is_made:
            found[name].is_plain = False
    return found


def rebinds(body: CodeType, name: str) -> bool:
    """Whether a function of a module says `global name` and binds it."""
    for constant in body.co_consts:
        if not isinstance(constant, CodeType):
            continue
        if name in constant.co_names and any(
            bound == name and is_function(constant) for bound, _ in _bindings(constant)
        ):
            return True
        if rebinds(constant, name):
            return True
    return False


def _bindings(body: CodeType) -> Iterator[tuple[str, bool]]:
    """Each binding of a name, and whether it is to a function just made."""
    extended, last, code = 0, -1, body.co_code
    for place in range(0, len(code), 2):
        operation, argument = code[place], code[place + 1]
        if operation == _EXTENDED:
            extended = (extended | argument) << 8
            continue
        if operation in _SKIPPED:
            continue
        if operation in _BINDS:
            yield body.co_names[extended | argument], last in _MADE
        elif operation == _DELETES:
            yield body.co_names[extended | argument], False
        extended, last = 0, operation
