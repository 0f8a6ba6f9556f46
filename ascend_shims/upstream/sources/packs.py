"""The source files of an archive that had to be read as a whole.

What cannot be read in parts (an sdist, a file on a server without ranges) is gone
through once; only its source files are kept.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import posixpath
import tarfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import msgspec

from ...errors import ShimsError
from ..source import SourceError
from .layout import Layout, find_layout, unsafe
from .limits import MEMBER_BYTES, PACK_BYTES, TAR_BYTES
from .meter import Meter, Stats
from .zips import FileBlocks, file_listing, refusal, too_large, unpack

__all__ = ["Pack", "PackSource", "pack_sdist", "pack_wheel"]

_READ_BYTES = 64 * 1024 * 1024
_MEMBERS = 100_000
_HOPS = 8
_OPENERS = {
    ".gz": gzip.open,
    ".tgz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}


class Pack(msgspec.Struct, frozen=True):
    """Source files, each deflated."""

    files: dict[str, bytes]
    refused: dict[str, str]
    """Path of a source file that is there and cannot be read, to why."""
    problems: dict[str, str]
    """Name as found to why it is left out."""


class PackSource:
    """The source files of a pack."""

    def __init__(
        self,
        label: str,
        version: str | None,
        pack: Pack,
        meter: Meter,
        notes: Sequence[str] = (),
        *,
        identity: str | None = None,
    ) -> None:
        self.label = label
        self.version = version
        self.identity = identity
        self.problems: Mapping[str, str] = pack.problems
        self.notes = tuple(notes)
        self._pack = pack
        self._meter = meter

    @property
    def stats(self) -> Stats:
        return self._meter.stats

    def paths(self) -> Sequence[str]:
        return tuple(sorted({*self._pack.files, *self._pack.refused}))

    def read(self, path: str) -> bytes:
        data = self._pack.files.get(path)
        if data is not None:
            return zlib.decompress(data)
        reasons = {**self.problems, **self._pack.refused}
        reason = reasons.get(path, "there is no such file")
        raise SourceError(f"{path} of {self.label}: {reason}")

    def prefetch(self, paths: Iterable[str]) -> None:
        """Everything is here already."""


class _Collected:
    """Source files as they turn up, within a bound for all of them together."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.refused: dict[str, str] = {}
        self.problems: dict[str, str] = {}
        self._total = 0

    def add(self, path: str, data: bytes) -> None:
        self._total += len(data)
        if self._total > PACK_BYTES:
            raise SourceError(f"its source files have more than {PACK_BYTES} bytes")
        self.files[path] = zlib.compress(data, 6)
        self.refused.pop(path, None)

    def refuse(self, path: str, reason: str) -> None:
        self.refused[path] = reason
        self.files.pop(path, None)

    def pack(self, layout: Layout) -> Pack:
        inside = layout.inside
        return Pack(
            {p: data for path, data in self.files.items() if (p := inside(path))},
            {p: why for path, why in self.refused.items() if (p := inside(path))},
            self.problems,
        )


class _Bounded(io.RawIOBase):
    """An unpacking stream that stops an archive from growing without end."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def _check(self, position: int) -> None:
        if position > TAR_BYTES:
            raise SourceError(f"unpacked it has more than {TAR_BYTES} bytes")

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _READ_BYTES:
            raise SourceError("it has a header of implausible size")
        data = self._inner.read(size)
        self._check(self._inner.tell())
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._check(offset)
        return self._inner.seek(offset, whence)

    def tell(self) -> int:
        return self._inner.tell()


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    for count, info in enumerate(archive):
        if count >= _MEMBERS:
            raise SourceError(f"it has more than {_MEMBERS} members")
        yield info


def _inside(name: str) -> str:
    """A member's name without the folder that an sdist wraps around everything."""
    return name.partition("/")[2]


def _from_tar(file: Path, opener: object, found: _Collected) -> None:
    links: dict[str, str] = {}
    with opener(file, "rb") as unpacked:  # type: ignore[operator]
        bounded = _Bounded(unpacked)
        with tarfile.open(fileobj=bounded, mode="r:") as archive:
            for info in _members(archive):
                if info.name.endswith(".py") and not info.isdir():
                    _take(archive, info, links, found)
        # What follows the last member holds the checksum of all of it.
        while bounded.read(1 << 20):
            pass
    for path in links:
        _follow(path, links, found)


def _take(
    archive: tarfile.TarFile,
    info: tarfile.TarInfo,
    links: dict[str, str],
    found: _Collected,
) -> None:
    path = _inside(info.name)
    reason = unsafe(info.name) or unsafe(path)
    if reason:
        found.problems[info.name] = reason
    elif info.issym():
        where = posixpath.join(posixpath.dirname(path), info.linkname)
        links[path] = posixpath.normpath(where)
    elif info.islnk():
        links[path] = _inside(info.linkname)
    elif not info.isreg():
        found.refuse(path, "it is not a regular file")
    elif why := too_large(info.size):
        found.refuse(path, why)
    else:
        stream = archive.extractfile(info)
        data = stream.read(MEMBER_BYTES) if stream else b""
        if len(data) != info.size:
            found.refuse(path, "it is cut off")
        else:
            found.add(path, data)


def _follow(path: str, links: Mapping[str, str], found: _Collected) -> None:
    """Give a link the content of what it leads to, inside the archive."""
    place = path
    for _ in range(_HOPS):
        place = links.get(place, place)
        if place in found.files:
            found.add(path, zlib.decompress(found.files[place]))
            return
        if place not in links:
            found.refuse(path, "it links to nothing inside the archive")
            return
    found.refuse(path, "its links lead in a circle")


def _from_zip(file: Path, found: _Collected, *, wrapped: bool) -> None:
    listing = file_listing(file)
    found.problems.update(listing.problems)
    blocks = FileBlocks(file)
    for member in listing.members:
        path = _inside(member.path) if wrapped else member.path
        if not path:
            continue
        reason = refusal(member)
        if reason:
            found.refuse(path, reason)
            continue
        block = blocks.get([member])[member.path]
        try:
            if isinstance(block, SourceError):
                raise block
            data = unpack(member, block)
        except SourceError as error:
            found.refuse(path, str(error))
        else:
            found.add(path, data)


def pack_wheel(file: Path) -> Pack:
    """The source files of a wheel on this machine. Raises `SourceError`."""
    found = _Collected()
    _from_zip(file, found, wrapped=False)
    return found.pack(Layout("", ()))


def pack_sdist(file: Path, name: str, packages: Collection[str]) -> Pack:
    """The packages of an sdist on this machine, without tests and the like.

    Args:
        name: the sdist's file name; its ending says how it is packed.
        packages: top-level packages to look for.

    Raises:
        SourceError: the archive is damaged or out of all proportion.
    """
    found = _Collected()
    ending = posixpath.splitext(name)[1]
    try:
        if ending == ".zip":
            _from_zip(file, found, wrapped=True)
        elif ending in _OPENERS:
            _from_tar(file, _OPENERS[ending], found)
        else:
            raise SourceError("it is neither a wheel nor a tar or zip archive")
    except ShimsError:
        raise
    except (
        tarfile.TarError,
        OSError,
        EOFError,
        ValueError,
        zlib.error,
        lzma.LZMAError,
        RecursionError,
    ) as error:
        raise SourceError(f"it is not an archive, or damaged: {error}") from error
    return found.pack(find_layout({*found.files, *found.refused}, packages))
