"""Shared libraries for any kind of machine, made by hand: no more than their needs."""

from __future__ import annotations

import struct
from pathlib import Path

__all__ = ["library"]


def library(
    path: Path,
    *needs: str,
    search: str = "",
    order: str = "<",
    wide: bool = True,
    tag: int = 29,
) -> Path:
    """A file that needs libraries and searches `search` first (`tag`: 15 or 29)."""
    word, size = ("Q", 64) if wide else ("I", 52)
    header = 56 if wide else 32
    names, offsets = b"\0", []
    for name in (*needs, search):
        offsets.append(len(names))
        names += name.encode() + b"\0"
    tags = [(1, at) for at in offsets[:-1]]
    tags += [(tag, offsets[-1])] if search else []
    base = 0x10000
    start = size + 2 * header
    tags += [(5, base + start), (0, 0)]
    dynamic = b"".join(struct.pack(f"{order}{word}{word}", *one) for one in tags)
    at = start + len(names)
    total = at + len(dynamic)

    def segment(kind: int, offset: int, length: int) -> bytes:
        if wide:
            place = (offset, base + offset, base + offset, length, length, 8)
            return struct.pack(f"{order}IIQQQQQQ", kind, 4, *place)
        place = (offset, base + offset, base + offset, length, length, 4, 8)
        return struct.pack(f"{order}IIIIIIII", kind, *place)

    identity = bytes([0x7F, *b"ELF", 2 if wide else 1, 1 if order == "<" else 2, 1])
    elf = identity.ljust(16, b"\0") + struct.pack(f"{order}HHI", 3, 62, 1)
    elf += struct.pack(f"{order}{word}{word}{word}I", 0, size, 0, 0)
    elf += struct.pack(f"{order}HHHHHH", size, header, 2, 0, 0, 0)
    assert len(elf) == size
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        elf + segment(1, 0, total) + segment(2, at, len(dynamic)) + names + dynamic
    )
    return path
