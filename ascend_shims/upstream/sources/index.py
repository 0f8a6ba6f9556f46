"""What the configured indexes offer of a project, and which file of it to read."""

from __future__ import annotations

import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from .cache import Cache
from .errors import BadSource, IndexUnreachable, NoSuchRelease, NotCached
from .limits import PAGE_BYTES
from .links import ACCEPT, Link, name_and_version, parse_page
from .meter import Meter
from .settings import Access
from .transport import Transport
from .urls import bare, file_path, origin, shown, split

__all__ = ["Offers", "Wanted", "best_first", "wanted"]

_FRESH_SECONDS = 600
"""How long a page is believed when the newest release is asked for; pip's own."""


class Wanted(msgspec.Struct, frozen=True):
    """Which release of which project."""

    project: str
    """Normalised."""
    specifier: str
    """PEP 440; empty: any."""
    prereleases: bool | None = None
    """None: only where there is nothing else, or where the specifier names one."""

    @property
    def exact(self) -> bool:
        return self.specifier.startswith("==") and "*" not in self.specifier

    def __str__(self) -> str:
        return f"{self.project}{self.specifier or '@latest'}"

    def best(self, links: Iterable[Link]) -> tuple[Link, ...]:
        """The files of the newest release wanted, builds (`+cpu`) and all."""
        specifiers = SpecifierSet(self.specifier, prereleases=self.prereleases)
        known = [(_version(link.version), link) for link in links]
        wanted = set(specifiers.filter({version for version, _ in known}))
        if not wanted:
            return ()
        newest = _version(max(wanted).public)
        return tuple(
            link
            for version, link in known
            if version in wanted and _version(version.public) == newest
        )


@lru_cache(maxsize=4096)
def _version(text: str) -> Version:
    # Every release is looked for among the same thousands of files.
    return Version(text)


def wanted(project: str, specifier: str, prereleases: bool | None = None) -> Wanted:
    """Checked. Raises `BadSource`."""
    try:
        specifiers = SpecifierSet(specifier)
    except InvalidSpecifier:
        raise BadSource(
            f"{specifier!r} is no version; write {project}==0.33.0 or {project}@latest"
        ) from None
    return Wanted(canonicalize_name(project), str(specifiers), prereleases)


class _Page(msgspec.Struct, frozen=True):
    """An index's answer as kept in the cache."""

    fetched: float
    """Seconds since 1970."""
    links: tuple[Link, ...]


def _load(data: bytes | None) -> _Page | None:
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=_Page)
    except msgspec.DecodeError:
        return None


class Offers:
    """Asks find-links, then each index in order, through the cache.

    The first place that offers an exact version wins, so a further index cannot
    slip its own file under a release that an earlier one has.
    """

    def __init__(
        self,
        access: Access,
        transport: Transport,
        cache: Cache,
        meter: Meter,
        *,
        offline: bool,
    ) -> None:
        self._access = access
        self._transport = transport
        self._cache = cache
        self._meter = meter
        self._offline = offline
        self._pages: dict[tuple[str, str], _Page] = {}
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        self.notes: list[str] = []
        """What a person should know, one sentence each."""

    def links(self, release: Wanted) -> tuple[Link, ...]:
        """Every file of the one release that fits best.

        Raises:
            NoSuchRelease, NotCached, IndexUnreachable, AccessRefused, HostRefused.
        """
        found: dict[str, Link] = {}
        down: list[IndexUnreachable | NotCached] = []
        places = [*self._access.find_links, *self._access.indexes]
        for place in places:
            try:
                links = self._offered(place, release)
            except (IndexUnreachable, NotCached) as error:
                # An exact version may be found elsewhere; "the newest" of what
                # happens to be reachable would be a wrong answer.
                if not (release.exact or self._offline):
                    raise
                down.append(error)
                continue
            for link in links:
                found.setdefault(link.filename, link)
            if release.exact and self._fitting(release, found.values()):
                break
        fitting = self._fitting(release, found.values())
        if fitting:
            self.notes.extend(str(error) for error in down)
            return fitting
        if down:
            raise down[0]
        raise NoSuchRelease(self._missing(release, found.values(), places))

    def versions(self, project: str) -> tuple[str, ...]:
        """All releases that are not withdrawn, oldest first."""
        release = Wanted(canonicalize_name(project), "")
        found: set[Version] = set()
        seen = False
        for place in (*self._access.find_links, *self._access.indexes):
            links = self._offered(place, release)
            seen = seen or bool(links)
            found.update(_version(link.version) for link in links if not link.yanked)
        if not seen:
            places = [*self._access.find_links, *self._access.indexes]
            raise NoSuchRelease(self._missing(release, (), places))
        return tuple(str(version) for version in sorted(found))

    @staticmethod
    def _fitting(release: Wanted, links: Iterable[Link]) -> tuple[Link, ...]:
        links = tuple(links)
        kept = tuple(link for link in links if not link.yanked)
        return release.best(kept) or (release.best(links) if release.exact else ())

    @staticmethod
    def _missing(release: Wanted, links: Iterable[Link], places: list[str]) -> str:
        where = (
            ", ".join(shown(place) for place in places) or "nowhere: no index is set"
        )
        known = sorted({_version(link.version) for link in links})
        if not known:
            return f"{release.project} is not offered by {where}"
        newest = ", ".join(str(version) for version in known[-3:])
        return f"no release fits {release}; the newest of {where}: {newest}"

    def _offered(self, place: str, release: Wanted) -> tuple[Link, ...]:
        if place in self._access.find_links:
            if "://" not in place or place.startswith("file:"):
                path = place if "://" not in place else file_path(place)
                return self._local(Path(path), place, release.project)
            return self._remote(place, place, release)
        page = f"{bare(place).rstrip('/')}/{release.project}/"
        if split(place).scheme == "file":
            return self._local(Path(file_path(page)), bare(place), release.project)
        return self._remote(place, page, release)

    @staticmethod
    def _local(path: Path, index: str, project: str) -> tuple[Link, ...]:
        """A folder on this machine: its `index.html`, or the files in it."""
        page = path / "index.html" if path.is_dir() else path
        if page.is_file():
            try:
                body = page.read_bytes()[:PAGE_BYTES]
            except OSError as error:
                raise IndexUnreachable(f"cannot read {page}: {error}") from error
            # Links are relative to the folder when the address ends in a slash.
            url = page.absolute().as_uri()
            return parse_page(project, index, url, "text/html", body)
        if not path.is_dir():
            return ()
        links = []
        for file in sorted(path.iterdir()):
            known = name_and_version(file.name)
            if known and known[0] == project and file.is_file():
                links.append(
                    Link(
                        filename=file.name,
                        url=file.absolute().as_uri(),
                        version=str(known[1]),
                        size=file.stat().st_size,
                        index=index,
                    )
                )
        return tuple(links)

    def _remote(self, place: str, url: str, release: Wanted) -> tuple[Link, ...]:
        # Releases are opened side by side, and a page is asked for once.
        with self._locks[url]:
            return self._page(place, url, release)

    def _page(self, place: str, url: str, release: Wanted) -> tuple[Link, ...]:
        index, project = bare(place), release.project
        kept = self._pages.get((index, project)) or _load(
            self._cache.get("page", index, project)
        )
        if kept is not None:
            self._pages[index, project] = kept
        if kept is not None and self._good_enough(kept, release):
            self._meter.count(cached=1)
            return kept.links
        if self._offline:
            raise NotCached(
                f"offline, and {shown(index)}'s page of {project} is not in the cache; "
                "run it once without --offline"
            )
        try:
            links = self._fetch(index, url, project)
        except IndexUnreachable as error:
            if kept is None or (release.exact and not self._good_enough(kept, release)):
                raise
            hours = (time.time() - kept.fetched) / 3600
            self.notes.append(
                f"{error}; going by what it offered {hours:.0f} hours ago"
            )
            self._meter.count(cached=1)
            return kept.links
        page = _Page(time.time(), links)
        self._pages[index, project] = page
        data = msgspec.json.encode(page)
        self._cache.put("page", index, project, data=data)
        return links

    def _good_enough(self, page: _Page, release: Wanted) -> bool:
        if self._offline:
            return True
        if release.exact:
            # A release's files do not change once they are published; one that
            # is missing may have been published a second ago.
            return bool(self._fitting(release, page.links))
        return 0 <= time.time() - page.fetched < _FRESH_SECONDS

    def _fetch(self, index: str, url: str, project: str) -> tuple[Link, ...]:
        because = f"the page of {project}"
        headers = {"Accept": ACCEPT, "Accept-Encoding": "gzip"}
        with self._transport.get(url, because, headers) as (response, final):
            if response.status in (404, 410):
                return ()
            if response.status != 200:
                raise IndexUnreachable(
                    f"{because}: {origin(url)} answers HTTP {response.status}"
                )
            chunks = self._transport.body(response, PAGE_BYTES)
            if response.headers.get("Content-Encoding", "").lower() == "gzip":
                body = _gunzip(b"".join(chunks), because)
            else:
                body = b"".join(chunks)
            kind = response.headers.get("Content-Type", "")
        return parse_page(project, index, final, kind, body)


def _gunzip(data: bytes, because: str) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        body = unpacker.decompress(data, PAGE_BYTES)
    except zlib.error:
        raise IndexUnreachable(f"{because} is damaged") from None
    if not unpacker.eof:
        raise IndexUnreachable(
            f"{because} is cut off or larger than {PAGE_BYTES} bytes"
        )
    return body


def best_first(links: Iterable[Link]) -> list[Link]:
    """The wheels, then the sdists, each with what costs least to read first.

    Any platform's wheel has the same Python files, so one without compiled
    parts comes first, then builds for the CPU, then the smaller file.
    """

    def cost(link: Link) -> tuple[bool, bool, bool, float, str]:
        size = float("inf") if link.size is None else link.size
        return (
            not link.wheel,
            not link.filename.endswith("-any.whl"),
            "cpu" not in link.version.partition("+")[2],
            size,
            link.filename,
        )

    return sorted(links, key=cost)
