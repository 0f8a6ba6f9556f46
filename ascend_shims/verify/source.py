"""What a module's file on disk defines, to be compared with what is loaded.

The files in which gaps patch are compiled from their text. Of the others the code is
taken that Python itself would load: from `__pycache__`, where that belongs to the text
as it is now, so that two thousand modules take seconds.
"""

from __future__ import annotations

import importlib.util
import marshal
from pathlib import Path
from types import CodeType

from ..errors import ShimsError

__all__ = ["UnreadableSourceError", "read_source"]


class UnreadableSourceError(ShimsError):
    """The file of a loaded module cannot be read, or holds no Python."""


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
