"""Files that are there whole or not at all, and that not everybody may write to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["make_folder", "write_whole"]


def make_folder(path: Path) -> None:
    """Make a folder for this user alone, and those above it that are missing."""
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        # Another process may be making it at this moment.
        folder.mkdir(mode=0o700, exist_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Put `content` in the place of a file, for everybody to read.

    Whoever reads meanwhile gets the old content or the new one, also where this process
    is killed on the way.
    """
    data = content.encode() if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(handle, 0o644)
            # The name must not be on the disk before the content is.
            os.fsync(handle)
        os.replace(name, path)  # noqa: PTH105 - beside mkstemp
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
