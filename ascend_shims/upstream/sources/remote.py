"""A file on a server, read in parts."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from ..source import SourceError
from .cache import Cache
from .errors import IndexUnreachable, SourceUnavailable
from .links import Link
from .meter import Meter
from .transport import Transport
from .zips import Member, unpack

__all__ = ["NoRanges", "RemoteBlocks", "RemoteFile", "groups"]

_Asked = TypeVar("_Asked")
_Got = TypeVar("_Got")

_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")
_TAIL = 64 * 1024
"""Asked for first. A small wheel's central directory fits; of a larger one it says
where the rest is."""

_GAP = 10 * 1024
"""Bytes not worth another request. Several requests are under way at once, so what
a further one costs is little; with 24 KiB a check fetched a fifth more."""

_MOST = 1024 * 1024
"""Bytes of one request, so that large groups arrive in parallel."""


class NoRanges(Exception):
    """The server gives this file only as a whole."""


class RemoteFile:
    """Parts of the file behind a link, each checked to be the part asked for."""

    def __init__(self, link: Link, transport: Transport) -> None:
        self.link = link
        self._transport = transport
        self._tail = b""
        self.size = link.size or 0

    def open(self) -> None:
        """Learn the size, and keep the end. Raises `NoRanges`."""
        known = self.link.size
        first = max(0, known - _TAIL) if known else None
        wanted = f"{first}-{known - 1}" if known else f"-{_TAIL}"
        start, tail, self.size = self._request(wanted)
        if start + len(tail) != self.size or (first is not None and first != start):
            raise NoRanges
        self._tail = tail

    def fetch(self, start: int, end: int) -> bytes:
        """Bytes `start` to `end`, the latter excluded.

        Raises:
            SourceError: the server gave something else.
        """
        kept = self.size - len(self._tail)
        if start >= kept and self._tail:
            return self._tail[start - kept : end - kept]
        if end > kept > start and self._tail:
            return self.fetch(start, kept) + self._tail[: end - kept]
        try:
            at, data, size = self._request(f"{start}-{end - 1}")
        except NoRanges:
            raise SourceError("the server stopped giving parts of the file") from None
        if (at, len(data)) != (start, end - start) or size != (self.size or size):
            raise SourceError("the server gave another part than the one asked for")
        return data

    def side_by_side(
        self, fetch: Callable[[_Asked], _Got], wanted: Sequence[_Asked]
    ) -> list[_Got]:
        """Calls that fetch parts, some at once; one alone needs no thread."""
        if len(wanted) < 2:
            return [fetch(one) for one in wanted]
        return list(self._transport.workers.map(fetch, wanted))

    def _request(self, wanted: str) -> tuple[int, bytes, int]:
        """Offset, bytes, and size of the whole."""
        headers = {"Range": f"bytes={wanted}"}
        because = f"the file {self.link.filename}"
        with self._transport.get(self.link.url, because, headers) as (response, _):
            if response.status in (404, 410):
                raise IndexUnreachable(
                    f"{because} is gone (HTTP {response.status}), though its index "
                    "lists it"
                )
            found = _RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
            if response.status != 206 or found is None:
                raise NoRanges
            start, last, size = (int(number) for number in found.groups())
            if not start <= last < size:
                raise NoRanges
            data = b"".join(self._transport.body(response, last - start + 1))
        if len(data) != last - start + 1:
            raise SourceError("the server gave fewer bytes than it announced")
        return start, data, size


def groups(members: Sequence[Member]) -> list[list[Member]]:
    """Members to fetch with one request each: neighbours, up to a certain size."""
    ordered = sorted(members, key=lambda member: member.start)
    if not ordered:
        return []
    found = [[ordered[0]]]
    for before, member in pairwise(ordered):
        joined = member.end - found[-1][0].start
        if member.start - before.end <= _GAP and joined <= _MOST:
            found[-1].append(member)
        else:
            found.append([member])
    return found


class RemoteBlocks:
    """Members of a remote zip: from the cache, else by range, several at a time.

    A member is known by its content, as far as the directory tells it, and not by
    its wheel: what a release has in common with another one is fetched once.
    """

    def __init__(
        self,
        project: str,
        file: RemoteFile,
        cache: Cache,
        meter: Meter,
        unkept: dict[tuple[str, ...], bytes],
        offline: bool,
    ) -> None:
        self._project = project
        self._file = file
        self._cache = cache
        self._meter = meter
        self._unkept = unkept
        self._offline = offline
        self._lock = threading.Lock()
        self._counted: set[str] = set()

    def _key(self, member: Member) -> tuple[str, ...]:
        content = (member.crc, member.size, member.packed, member.method)
        index = self._file.link.index
        return (index, self._project, member.path, *map(str, content))

    def _known(self, member: Member) -> bytes | None:
        key = self._key(member)
        block = self._unkept.get(key) or self._cache.get("member", *key)
        if block is None:
            return None
        with self._lock:
            # What this process put there itself was no gift of the cache.
            new = member.path not in self._counted
            self._counted.add(member.path)
        if new:
            self._meter.count(cached=1)
        return block

    def get(self, members: Sequence[Member]) -> dict[str, bytes | SourceError]:
        found: dict[str, bytes | SourceError] = {}
        missing = []
        for member in members:
            block = self._known(member)
            if block is None:
                missing.append(member)
            else:
                found[member.path] = block
        if self._offline:
            gone = SourceError("offline, and it is not in the cache")
            return {**dict.fromkeys((m.path for m in missing), gone), **found}
        wanted = groups(missing)
        for part in self._file.side_by_side(self._group, wanted):
            found.update(part)
        return found

    def _group(self, group: list[Member]) -> dict[str, bytes | SourceError]:
        start, end = group[0].start, max(member.end for member in group)
        try:
            data = self._file.fetch(start, end)
        except IndexUnreachable as error:
            return dict.fromkeys((m.path for m in group), SourceError(str(error)))
        except SourceUnavailable:
            raise
        except SourceError as error:
            return dict.fromkeys((m.path for m in group), error)
        found: dict[str, bytes | SourceError] = {}
        for member in group:
            block = data[member.start - start : member.end - start]
            try:
                unpack(member, block)
            except SourceError as error:
                # Kept, it would be wrong for ever.
                found[member.path] = error
                continue
            found[member.path] = block
            key = self._key(member)
            with self._lock:
                self._counted.add(member.path)
            if not self._cache.put("member", *key, data=block):
                self._unkept[key] = block
        return found
