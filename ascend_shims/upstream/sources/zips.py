"""A zip whose members are read one by one, wherever its bytes are.

`zipfile` reads the central directory. Members are cut out by the places it
gives, so that a wheel of hundreds of megabytes costs only its source files:
neighbours are fetched with one request, which no library for remote zips does.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import msgspec

from ...errors import ShimsError
from ..source import Mark, SourceError
from .layout import unsafe
from .limits import DIRECTORY_BYTES, MEMBER_BYTES
from .meter import Meter, Stats

__all__ = [
    "Blocks",
    "FileBlocks",
    "Listing",
    "Member",
    "ZipSource",
    "file_listing",
    "read_listing",
    "refusal",
    "too_large",
    "unpack",
]

_LOCAL = struct.Struct("<4s5H3L2H")
_EXTRA = 0xFFFF
_ENCRYPTED = 0x1


class Member(msgspec.Struct, frozen=True, array_like=True):
    """One source file and where it lies."""

    path: str
    """Relative to the import root."""
    start: int
    """Offset of its local header."""
    end: int
    """Offset after its data, or a little more."""
    packed: int
    size: int
    crc: int
    method: int


class Listing(msgspec.Struct, frozen=True):
    """A zip's source files."""

    members: tuple[Member, ...]
    problems: dict[str, str]
    """Name as found to why it is left out."""


class _Remote(io.RawIOBase):
    """A seekable file over a function that fetches parts of it."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        self._size = size
        self._fetch = fetch
        self._at = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = (0, self._at, self._size)[whence]
        if base + offset < 0:
            raise OSError("seek before the start")
        self._at = base + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._at + size, self._size)
        if end - self._at > DIRECTORY_BYTES:
            raise SourceError("its central directory is implausibly large")
        data = self._fetch(self._at, end) if end > self._at else b""
        self._at += len(data)
        return data


def _import_path(name: str) -> str | None:
    """Where a wheel's member is installed; None where that is no import path."""
    if not name.endswith(".py"):
        return None
    top, _, rest = name.partition("/")
    if top.endswith(".dist-info"):
        return None
    if top.endswith(".data"):
        scheme, _, inner = rest.partition("/")
        return inner if scheme in ("purelib", "platlib") else None
    return name


def read_listing(size: int, fetch: Callable[[int, int], bytes]) -> Listing:
    """The source files of a zip of `size` bytes.

    Args:
        fetch: gives the bytes from one offset up to another.

    Raises:
        SourceError: it is no zip, or a damaged one.
    """
    try:
        with zipfile.ZipFile(_Remote(size, fetch)) as archive:
            infos, directory = archive.infolist(), archive.start_dir
    except ShimsError:
        raise
    except (
        zipfile.BadZipFile,
        ValueError,
        struct.error,
        NotImplementedError,
        EOFError,
        OverflowError,
        OSError,
    ) as error:
        raise SourceError(f"it is not a zip archive: {error}") from error
    starts = sorted({info.header_offset for info in infos} | {directory})
    following = dict(pairwise(starts))
    members: dict[str, Member] = {}
    problems: dict[str, str] = {}
    for info in infos:
        path = _import_path(info.filename)
        if path is None:
            continue
        name = info.orig_filename
        reason = unsafe(name) or (unsafe(path) if path != name else None)
        if reason:
            problems[info.orig_filename] = reason
            continue
        start = info.header_offset
        # A local header's extra field may be longer than the directory's.
        most = start + _LOCAL.size + len(info.orig_filename.encode()) + _EXTRA
        end = min(most + info.compress_size, following.get(start, start))
        # As in an installation, the last of several members of one name stays.
        members[path] = Member(
            path,
            start,
            end,
            info.compress_size,
            info.file_size,
            info.CRC,
            info.compress_type,
        )
    return Listing(tuple(members[path] for path in sorted(members)), problems)


def too_large(size: int) -> str | None:
    if size <= MEMBER_BYTES:
        return None
    return f"{size} bytes are more than a source file may have ({MEMBER_BYTES})"


def refusal(member: Member) -> str | None:
    """Why not even a byte of it is read; None where it is."""
    if not 0 <= member.start < member.end:
        return "the archive says it lies where no member can"
    return too_large(max(member.size, member.packed - _EXTRA))


def unpack(member: Member, block: bytes) -> bytes:
    """The member's content from the bytes that lie at its place.

    Raises:
        SourceError: they are not what the central directory promised.
    """
    if len(block) < _LOCAL.size or not block.startswith(b"PK\x03\x04"):
        raise SourceError("there is no member where the archive says")
    header = _LOCAL.unpack_from(block)
    begin = _LOCAL.size + header[9] + header[10]
    data = block[begin : begin + member.packed]
    if header[2] & _ENCRYPTED:
        raise SourceError("it is encrypted")
    if len(data) < member.packed:
        raise SourceError("it is cut off, or overlaps another member")
    if member.method == zipfile.ZIP_DEFLATED:
        try:
            data = zlib.decompressobj(-15).decompress(data, member.size + 1)
        except zlib.error as error:
            raise SourceError(f"it cannot be unpacked: {error}") from error
    elif member.method != zipfile.ZIP_STORED:
        raise SourceError(f"its compression method {member.method} is not supported")
    if len(data) != member.size or zlib.crc32(data) != member.crc:
        raise SourceError("its content does not match its checksum")
    return data


class Blocks(Protocol):
    """Gives members' bytes, however it gets them."""

    def get(self, members: Sequence[Member]) -> Mapping[str, bytes | SourceError]:
        """Path to bytes that start with the local header, or why there are none."""


def _fetcher(file: Path) -> Callable[[int, int], bytes]:
    def fetch(start: int, end: int) -> bytes:
        with file.open("rb") as stream:
            stream.seek(start)
            return stream.read(end - start)

    return fetch


def file_listing(file: Path) -> Listing:
    """The source files of a zip on this machine. Raises `SourceError`."""
    return read_listing(file.stat().st_size, _fetcher(file))


class FileBlocks:
    """Members of a zip on this machine."""

    def __init__(self, file: Path) -> None:
        self._fetch = _fetcher(file)

    def get(self, members: Sequence[Member]) -> dict[str, bytes | SourceError]:
        found: dict[str, bytes | SourceError] = {}
        for member in members:
            try:
                found[member.path] = self._fetch(member.start, member.end)
            except OSError as error:
                found[member.path] = SourceError(str(error))
        return found


class ZipSource:
    """The source files of a wheel, near or far.

    Of a far one, `read` and `prefetch` also raise `AccessRefused` and
    `HostRefused`: what a server refuses for one file it refuses for all.
    """

    def __init__(
        self,
        label: str,
        version: str | None,
        listing: Listing,
        blocks: Blocks,
        meter: Meter,
        notes: Sequence[str] = (),
        *,
        identity: str | None = None,
        is_far: bool = False,
    ) -> None:
        self.label = label
        self.version = version
        self.identity = identity
        self.is_far = is_far
        self.problems: Mapping[str, str] = listing.problems
        self.notes = tuple(notes)
        self._members = {member.path: member for member in listing.members}
        self._blocks = blocks
        self._meter = meter

    @property
    def stats(self) -> Stats:
        return self._meter.stats

    def paths(self) -> Sequence[str]:
        return tuple(self._members)

    def place(self, path: str) -> Member:
        """Where one of its files lies. Raises `KeyError`."""
        return self._members[path]

    def mark(self, path: str) -> Mark | None:
        member = self._members.get(path)
        return Mark(member.crc, member.size, member.packed) if member else None

    def read(self, path: str) -> bytes:
        try:
            return self._read(path)
        except SourceError as error:
            raise SourceError(f"{path} of {self.label}: {error}") from error

    def _read(self, path: str) -> bytes:
        member = self._members.get(path)
        if member is None:
            raise SourceError(self.problems.get(path, "there is no such file"))
        reason = refusal(member)
        if reason:
            raise SourceError(reason)
        block = self._blocks.get([member])[path]
        if isinstance(block, SourceError):
            raise block
        return unpack(member, block)

    def prefetch(self, paths: Iterable[str]) -> None:
        """Bring these files here with few requests; unknown paths are ignored.

        What cannot be had is told by `read`.
        """
        wanted = {path: self._members[path] for path in paths if path in self._members}
        self._blocks.get([m for m in wanted.values() if not refusal(m)])
