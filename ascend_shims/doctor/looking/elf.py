"""Which shared libraries a file needs, and where it looks for them first.

Read from the file alone: to load a library is to run it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

__all__ = ["Needs", "read_needs"]

_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRTAB, _RPATH, _RUNPATH = 1, 5, 15, 29
_SMALLEST = 52
"""Bytes of a header."""
_MOST = 4096
"""Entries of a table: more are in no file, except in one made to do harm."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The dynamic section, as far as it matters here."""

    libraries: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    """Searched first; `$ORIGIN` is written out."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """How the numbers of one kind of file lie."""

    order: str
    wide: bool

    def header(self, data: bytes) -> tuple[int, int, int]:
        """Offset, size and number of the program headers."""
        if self.wide:
            offset = self._one("Q", data, 32)
            size, count = struct.unpack_from(f"{self.order}HH", data, 54)
        else:
            offset = self._one("I", data, 28)
            size, count = struct.unpack_from(f"{self.order}HH", data, 42)
        return offset, size, count

    def segment(self, data: bytes) -> tuple[int, int, int, int]:
        """Kind, offset, address and size in the file."""
        if self.wide:
            kind, _, offset, address, _, size = struct.unpack_from(
                f"{self.order}IIQQQQ", data
            )
        else:
            kind, offset, address, _, size = struct.unpack_from(
                f"{self.order}IIIII", data
            )
        return kind, offset, address, size

    def entries(self, data: bytes) -> Iterator[tuple[int, int]]:
        size = 16 if self.wide else 8
        form = f"{self.order}{'qQ' if self.wide else 'iI'}"
        for start in range(0, len(data) - size + 1, size):
            yield struct.unpack_from(form, data, start)

    def _one(self, form: str, data: bytes, at: int) -> int:
        value: int = struct.unpack_from(self.order + form, data, at)[0]
        return value


def read_needs(file: Path) -> Needs | None:
    """None where it is no such file, or cannot be read."""
    try:
        with file.open("rb") as stream:
            return _read(stream, file)
    except (OSError, ValueError, struct.error, OverflowError):
        # What it says of itself cannot be so.
        return None


def _read(stream: BinaryIO, file: Path) -> Needs | None:
    start = stream.read(64)
    if len(start) < _SMALLEST or start[:4] != b"\x7fELF":
        return None
    if start[4] not in (1, 2) or start[5] not in (1, 2):
        return None
    layout = _Layout("<" if start[5] == 1 else ">", start[4] == 2)
    offset, size, count = layout.header(start)
    if not 0 < size <= _SMALLEST * 2:
        return None
    stream.seek(offset)
    raw = stream.read(size * min(count, _MOST))
    segments = [layout.segment(raw[at : at + size]) for at in range(0, len(raw), size)]
    dynamic = next((s for s in segments if s[0] == _DYNAMIC), None)
    if dynamic is None:
        return Needs()
    stream.seek(dynamic[1])
    entries = list(layout.entries(stream.read(min(dynamic[3], 16 * _MOST))))
    table = next((value for tag, value in entries if tag == _STRTAB), 0)
    names = _Names(stream, _in_file(table, segments))
    libraries = tuple(names.at(value) for tag, value in entries if tag == _NEEDED)
    paths = [names.at(value) for tag, value in entries if tag in (_RPATH, _RUNPATH)]
    home = str(file.resolve().parent)
    folders = [
        one.replace("${ORIGIN}", home).replace("$ORIGIN", home)
        for path in paths
        for one in path.split(":")
        if one
    ]
    return Needs(libraries, tuple(folders))


def _in_file(address: int, segments: list[tuple[int, int, int, int]]) -> int:
    for kind, offset, start, size in segments:
        if kind == _LOAD and start <= address < start + size:
            return address - start + offset
    return address


@dataclass(frozen=True, slots=True)
class _Names:
    stream: BinaryIO
    start: int

    def at(self, offset: int) -> str:
        self.stream.seek(self.start + offset)
        return self.stream.read(_MOST).partition(b"\0")[0].decode()
