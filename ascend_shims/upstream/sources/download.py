"""A whole file from a server, checked against what the index says of it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from .errors import IndexUnreachable
from .links import Link
from .progress import Progress, megabytes
from .transport import Transport
from .urls import origin

__all__ = ["download"]

_ATTEMPTS = 4
_NO_LIMIT = 1 << 62


def _announced(headers: Mapping[str, str], have: int) -> int | None:
    length = headers.get("Content-Length", "")
    return have + int(length) if length.isdigit() else None


def _receive(
    link: Link, transport: Transport, progress: Progress, into: Path, begun: bool
) -> None:
    """Append what is missing of the file."""
    because = f"the file {link.filename}"
    have = into.stat().st_size
    asked = {"Range": f"bytes={have}-"} if have else {}
    with transport.get(link.url, because, asked) as (response, _):
        if response.status not in (200, 206):
            raise IndexUnreachable(
                f"{because}: {origin(link.url)} answers HTTP {response.status}"
            )
        resumed = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        have = have if response.status == 206 and resumed else 0
        size = link.size or _announced(response.headers, have)
        if not begun:
            progress.begin(link.filename, size)
            if size and shutil.disk_usage(into.parent).free < size:
                raise IndexUnreachable(
                    f"{because} has {megabytes(size)}, and {into.parent} has less free"
                )
        left = size - have if size is not None else _NO_LIMIT
        with into.open("r+b") as stream:
            stream.truncate(have)
            stream.seek(have)
            for chunk in transport.body(response, left):
                stream.write(chunk)
                progress.advance(len(chunk))
        if size is not None and into.stat().st_size < size:
            raise IndexUnreachable(f"{because} broke off before its end")


def download(link: Link, transport: Transport, progress: Progress, into: Path) -> None:
    """Fetch the file into the empty file `into`, going on where it broke off.

    Raises:
        IndexUnreachable: it cannot be had, or is not the file the index lists.
    """
    try:
        for attempt in range(_ATTEMPTS):
            have = into.stat().st_size
            try:
                _receive(link, transport, progress, into, begun=attempt > 0)
                break
            except IndexUnreachable:
                # Only an answer that brought something is worth asking again.
                if attempt == _ATTEMPTS - 1 or into.stat().st_size <= have:
                    raise
    finally:
        progress.end()
    algorithm, _, digest = link.hash.partition("=")
    if not digest:
        return
    with into.open("rb") as stream:
        actual = hashlib.new(algorithm)
        while chunk := stream.read(1 << 20):
            actual.update(chunk)
    if actual.hexdigest() != digest:
        raise IndexUnreachable(
            f"the file {link.filename} is not the one its index lists: "
            f"its {algorithm} differs"
        )
