"""The text of a registry: of a file that is not too large, nor somebody else's."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..own_files import is_zipped, text_of
from .problems import RegistryError, position, refuse
from .writers import open_own

__all__ = ["MAX_BYTES", "read"]

MAX_BYTES = 1024 * 1024


def read(path: Path, *, own: bool = False) -> str:
    """The text of a registry file. Raises `RegistryError`.

    `own`: only where nobody but this user, or root, can have written it.
    """
    if is_zipped(path):
        return text_of(path)
    try:
        kind, content = _head(path, own)
    except RegistryError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        refuse(str(path), f"cannot be read: {reason}", "give a readable file")
    if kind:
        refuse(str(path), f"is {kind}", "give the path of a registry file")
    if len(content) > MAX_BYTES:
        refuse(
            str(path),
            f"is larger than {MAX_BYTES // 1024} KiB",
            "give the path of a registry file",
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", errors="replace")
        refuse(str(path), "is not UTF-8", "save it as UTF-8", position(before))


def _head(path: Path, own: bool) -> tuple[str | None, bytes]:
    """What a path is if it is no file, and as much of it as is accepted.

    Asked of what was opened, and without waiting: a pipe or a device may block or
    never end.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    file = open_own(path) if own else os.open(path, flags)
    try:
        mode = os.fstat(file).st_mode
        if stat.S_ISREG(mode):
            with os.fdopen(file, "rb", closefd=False) as stream:
                return None, stream.read(MAX_BYTES + 1)
    finally:
        os.close(file)
    return "a directory" if stat.S_ISDIR(mode) else "not a regular file", b""
