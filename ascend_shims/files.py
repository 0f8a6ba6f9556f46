"""Files that are there whole or not at all, and that not everybody may write to."""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "beside",
    "make_folder",
    "read_piped",
    "real",
    "write_new",
    "write_piped",
    "write_whole",
]

_PATIENCE = 5
"""Seconds until a pipe counts as one that nobody else has opened."""


def make_folder(path: Path) -> None:
    """Make a folder for this user alone, and those above it that are missing."""
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        # Another process may be making it at this moment.
        folder.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def beside(path: Path, prefix: str | None = None) -> Iterator[Path]:
    """The name of a file in the folder of `path`, gone afterwards unless renamed.

    Nobody has it yet, and the block makes it. So there is no moment at which a file is
    there and, when Ctrl-C is pressed, nobody clears it away.
    """
    first = f".{path.name}-" if prefix is None else prefix
    made = path.with_name(f"{first}{os.urandom(4).hex()}")
    try:
        yield made
    finally:
        try:
            made.unlink(missing_ok=True)
        except KeyboardInterrupt:
            # It may have come before that was done.
            made.unlink(missing_ok=True)
            raise


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a file that is not there yet to the disk.

    It is this user's alone while it is written, and has `mode` when it is whole.
    """
    with open(path, "xb", opener=_private) as file:
        file.write(data)
        file.flush()
        os.fchmod(file.fileno(), mode)
        # Who renames it: the name must not be on the disk before the content is.
        os.fsync(file.fileno())


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def write_whole(path: Path, content: str | bytes) -> None:
    """Put `content` in the place of a file, for everybody to read.

    Whoever reads meanwhile gets the old content or the new one, also where this process
    is killed or interrupted on the way.
    """
    data = content.encode() if isinstance(content, str) else content
    with beside(path) as made:
        write_new(made, data, 0o644)
        made.replace(path)


def real(path: Path) -> Path:
    """Where links lead; unlike `Path.resolve()`, also where they go round."""
    return Path(os.path.realpath(path))


def read_piped(path: Path) -> bytes:
    """A file's content; of a pipe, what somebody writes to it.

    Raises `OSError`, also where that is a pipe and nobody does.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not path.is_file():
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            if not poll.poll(_PATIENCE * 1000):
                raise OSError(errno.EAGAIN, "nobody writes to this pipe", str(path))
        os.set_blocking(handle, True)
        return file.read()


def write_piped(path: Path, data: bytes) -> None:
    """Write to what is there and is no regular file, as a pipe.

    Raises `OSError`, also where that is a pipe and nobody reads it.
    """
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "wb") as file:
        os.set_blocking(handle, True)
        file.write(data)
