"""A release of a distribution, read with as few bytes as its servers allow."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from ..source import SourceError
from .cache import Cache
from .download import download
from .errors import IndexUnreachable, NotCached
from .index import Offers, Wanted, best_first
from .links import Link
from .meter import Meter
from .packs import Pack, PackSource, pack_sdist, pack_wheel
from .parts import Part, PartSource
from .progress import Progress
from .remote import NoRanges, RemoteBlocks, RemoteFile
from .settings import Access
from .transport import Transport
from .urls import file_path
from .zips import FileBlocks, Listing, ZipSource, file_listing, read_listing

__all__ = ["Shop", "open_release"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Shop:
    """All that opening releases needs, shared by the releases of one command."""

    offers: Offers
    transport: Transport
    cache: Cache
    meter: Meter
    progress: Progress
    offline: bool
    unkept: dict[tuple[str, ...], bytes] = field(default_factory=dict)
    """Files' bytes that the cache did not take."""

    @classmethod
    def of(
        cls, access: Access, cache: Cache, progress: Progress, *, offline: bool
    ) -> Shop:
        meter = Meter()
        transport = Transport(access, meter)
        offers = Offers(access, transport, cache, meter, offline=offline)
        return cls(offers, transport, cache, meter, progress, offline)


def _load(data: bytes | None, kind: type[_T]) -> _T | None:
    if data is None:
        return None
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.DecodeError:
        return None


class _Opener:
    """One release's candidates, tried in order of cost."""

    def __init__(
        self,
        shop: Shop,
        project: str,
        links: list[Link],
        packages: Collection[str],
        part: Part | None,
    ) -> None:
        self._shop = shop
        self._links = links
        self._packages = packages or (project.replace("-", "_"),)
        self._project = project
        self._part = part

    def open(self) -> ZipSource | PackSource | PartSource:
        """From this machine, else from the cache, else in parts, else as a whole."""
        for link in self._links:
            # A page from a server must not make us read this machine's files.
            if link.url.startswith("file:") and not link.index.startswith("http"):
                return self._local(link)
        for link in self._links:
            kept = self._kept(link)
            if kept is not None:
                self._shop.meter.count(cached=1)
                return kept
        if self._shop.offline:
            raise NotCached(
                f"offline, and {self._label(self._links[0])} is not in the cache; "
                "read it once with the network on"
            )
        known = self._known(self._part) if self._part is not None else None
        if known is not None:
            return known
        whole = False
        faults: list[Exception] = []
        for link in self._links:
            if not link.wheel:
                continue
            try:
                return self._in_parts(link)
            except NoRanges:
                whole = True
                break
            except (SourceError, IndexUnreachable) as error:
                faults.append(error)
        # The smaller file, now that all of it has to come; a wheel that could not
        # be read in parts because it is broken is not tried again.
        for link in sorted(self._links, key=lambda one: (one.size or 0, one.wheel)):
            if link.wheel and not whole:
                continue
            try:
                return self._whole(link)
            except (SourceError, IndexUnreachable) as error:
                faults.append(error)
        label = self._label(self._links[0])
        raise IndexUnreachable(f"{label} cannot be read: {faults[0]}")

    def _local(self, link: Link) -> ZipSource | PackSource:
        file = Path(file_path(link.url))
        try:
            if link.wheel:
                return self._zip(link, file_listing(file), FileBlocks(file))
            return self._pack(link, pack_sdist(file, link.filename, self._packages))
        except (SourceError, OSError) as error:
            raise IndexUnreachable(f"{file} cannot be read: {error}") from error

    def _label(self, link: Link) -> str:
        return f"{self._project} {link.version}"

    def _zip(
        self, link: Link, listing: Listing, blocks: FileBlocks | RemoteBlocks
    ) -> ZipSource:
        meter, notes = self._shop.meter, self._shop.offers.notes
        label = self._label(link)
        return ZipSource(
            label,
            link.version,
            listing,
            blocks,
            meter,
            notes,
            identity=link.hash or None,
            is_far=isinstance(blocks, RemoteBlocks),
        )

    def _pack(self, link: Link, pack: Pack) -> PackSource:
        meter, notes = self._shop.meter, self._shop.offers.notes
        return PackSource(
            self._label(link),
            link.version,
            pack,
            meter,
            notes,
            identity=link.hash or None,
        )

    def _key(self, link: Link) -> tuple[str, ...]:
        # Without a hash the index does not say which content it means: such a
        # file is known by its size, and offline only.
        return (link.index, link.filename, link.hash or f"size={link.size}")

    def _pack_key(self, link: Link) -> tuple[str, ...]:
        return (*self._key(link), *(() if link.wheel else sorted(self._packages)))

    def _kept(self, link: Link) -> ZipSource | PackSource | None:
        if not (link.hash or self._shop.offline):
            return None
        cache = self._shop.cache
        if link.wheel:
            listing = _load(cache.get("listing", *self._key(link)), Listing)
            if listing is not None:
                file = RemoteFile(link, self._shop.transport)
                return self._zip(link, listing, self._blocks(file))
        pack = _load(cache.get("pack", *self._pack_key(link)), Pack)
        return self._pack(link, pack) if pack is not None else None

    def _blocks(self, file: RemoteFile) -> RemoteBlocks:
        shop = self._shop
        return RemoteBlocks(
            self._project, file, shop.cache, shop.meter, shop.unkept, shop.offline
        )

    def _in_parts(self, link: Link) -> ZipSource:
        file = RemoteFile(link, self._shop.transport)
        file.open()
        listing = read_listing(file.size, file.fetch)
        data = msgspec.msgpack.encode(listing)
        self._shop.cache.put("listing", *self._key(link), data=data)
        return self._zip(link, listing, self._blocks(file))

    def _known(self, part: Part) -> PartSource | None:
        """By the places that a lock knows; None where they are not of these files."""
        listing = part.listing()
        same = (link for link in self._links if link.wheel and link.hash == part.hash)
        link = next(same, None)
        if link is None or listing is None:
            return None
        blocks = self._blocks(RemoteFile(link, self._shop.transport))
        known = self._zip(link, listing, blocks)
        try:
            return PartSource(part, known, partial(self._in_parts, link))
        except SourceError:
            return None

    def _whole(self, link: Link) -> PackSource:
        shop = self._shop
        with shop.cache.scratch() as file:
            download(link, shop.transport, shop.progress, file)
            if link.wheel:
                pack = pack_wheel(file)
            else:
                pack = pack_sdist(file, link.filename, self._packages)
        data = msgspec.msgpack.encode(pack)
        shop.cache.put("pack", *self._pack_key(link), data=data)
        return self._pack(link, pack)


def open_release(
    shop: Shop,
    release: Wanted,
    packages: Collection[str] = (),
    part: Part | None = None,
) -> ZipSource | PackSource | PartSource:
    """The source files of the release that fits best.

    Args:
        part: where one of its wheels has what is going to be read, if that is known.

    Raises:
        SourceUnavailable: with one sentence that says what to do.
    """
    links = best_first(shop.offers.links(release))
    return _Opener(shop, release.project, links, packages, part).open()
