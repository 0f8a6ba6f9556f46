"""Texts of a locked release that no index has, kept for later checks."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import msgspec

from .source import Source, SourceError
from .traces import Kept

__all__ = ["KeptSource", "keep", "kept"]

_KIND = "locked"


class KeptSource:
    """A release as it was when it was locked."""

    def __init__(
        self, label: str, version: str | None, texts: Mapping[str, bytes]
    ) -> None:
        self.label = label
        self.version = version
        self.problems: Mapping[str, str] = {}
        self.notes: tuple[str, ...] = ()
        self._texts = texts

    def paths(self) -> Sequence[str]:
        return sorted(self._texts)

    def read(self, path: str) -> bytes:
        try:
            return self._texts[path]
        except KeyError:
            raise SourceError(f"{path} is not in {self.label}") from None


def keep(cache: Kept, tree: str, source: Source) -> bool:
    """Keep all texts of a release under the hash of them. False where it cannot."""
    texts = {}
    for path in source.paths():
        try:
            texts[path] = source.read(path)
        except SourceError:
            # Unreadable then as now: nothing was locked of it.
            continue
    return cache.put(_KIND, tree, data=zlib.compress(msgspec.msgpack.encode(texts), 1))


def kept(cache: Kept, tree: str, label: str, version: str | None) -> KeptSource | None:
    """The texts that were kept under this hash, or None."""
    data = cache.get(_KIND, tree)
    if data is None:
        return None
    try:
        texts = msgspec.msgpack.decode(zlib.decompress(data), type=dict[str, bytes])
    except (zlib.error, msgspec.DecodeError, msgspec.ValidationError):
        return None
    return KeptSource(label, version, texts)
