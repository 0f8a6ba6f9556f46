"""Where upstream source text comes from.

The rest of this package asks a `Source` for paths and bytes and nothing else;
wheels, sdists, indexes and git revisions live in `sources`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from ascend_shims.errors import ShimsError

__all__ = ["DirectorySource", "Mark", "Source", "SourceError"]


class SourceError(ShimsError):
    """One file of a source cannot be read; the others can."""


class Mark(NamedTuple):
    """What an archive's table of contents says of a file's content."""

    crc: int
    size: int
    packed: int


class Source(Protocol):
    """One release's Python files. Paths are POSIX, relative to the import root."""

    label: str
    """For people, for example `vllm 0.33.0`."""

    def paths(self) -> Sequence[str]:
        """Every `.py` file: `vllm/v1/worker/utils.py`."""

    def read(self, path: str) -> bytes:
        """The bytes of one file. Raises `SourceError`."""


class DirectorySource:
    """The `.py` files beneath a directory, symbolic links to elsewhere left out.

    `packages` keeps only those top-level packages, so that an unpacked sdist does
    not bring its tests and benchmarks along.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        label: str | None = None,
        packages: Collection[str] | None = None,
    ) -> None:
        self._root = Path(root).resolve()
        if not self._root.is_dir():
            raise SourceError(f"{root} is not a directory of source files")
        self.label = label or str(root)
        self._packages = None if packages is None else frozenset(packages)

    def paths(self) -> Sequence[str]:
        found = []
        for folder, folders, files in os.walk(self._root, followlinks=False):
            here = Path(folder).relative_to(self._root)
            if here == Path() and self._packages is not None:
                folders[:] = [name for name in folders if name in self._packages]
                files = [name for name in files if name[:-3] in self._packages]
            folders.sort()
            found += [
                (here / name).as_posix() for name in files if name.endswith(".py")
            ]
        return sorted(found)

    def read(self, path: str) -> bytes:
        try:
            place = (self._root / path).resolve(strict=True)
            if not place.is_relative_to(self._root):
                raise SourceError(f"{path} leads outside {self.label}")
            if not place.is_file():
                raise SourceError(f"{path} of {self.label} is not a regular file")
            return place.read_bytes()
        # A loop of links is a RuntimeError before Python 3.13.
        except (OSError, RuntimeError, ValueError) as error:
            raise SourceError(f"{path} of {self.label}: {error}") from error
