"""From what a person types to a source."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..source import Source
from .errors import BadSource
from .meter import Stats
from .progress import Progress, Silent
from .settings import IndexSettings, access_from

if TYPE_CHECKING:
    from .cache import Cache
    from .parts import Part
    from .releases import Shop

__all__ = ["OpenedSource", "Sources", "open_source"]

_RELEASE = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*"
    r"(?:@(?P<word>[A-Za-z-]+)|(?P<specifier>[=<>!~]=?.+))"
)
_ARCHIVES = (".whl", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
_FORMS = (
    "write installed, vllm==0.33.0, vllm@latest, the path of a wheel, an sdist or a "
    "directory, or git:PATH@REVISION"
)


class OpenedSource(Source, Protocol):
    """A `Source` with what else opening it told."""

    version: str | None
    """PEP 440, where anything tells one."""
    problems: Mapping[str, str]
    """Files left out because of their name, and why."""
    notes: tuple[str, ...]
    """What a person should know of how it was opened."""

    @property
    def stats(self) -> Stats:
        """What this source has cost, or all that were opened with it."""

    def prefetch(self, paths: Iterable[str]) -> None:
        """Bring files here with few requests before they are read one by one."""


class Sources:
    """Opens sources that share connections, the cache and one count of costs.

    Several may be opened at once, from several threads.

    Args:
        index: what the command line says of the index; what it leaves open comes
            from pip's variables and files, then from pip's default.
        offline: read from this machine and the cache alone.
        progress: hears of each file that has to be downloaded as a whole.
        packages: top-level packages to read of a checkout, an sdist or this
            interpreter. Default: those that are there, tests and the like apart,
            and `vllm` for this interpreter.
    """

    def __init__(
        self,
        *,
        index: IndexSettings | None = None,
        offline: bool = False,
        progress: Progress | None = None,
        packages: Collection[str] = (),
    ) -> None:
        self._index = index
        self._offline = offline
        self.progress = progress or Silent()
        self._packages = tuple(packages)
        self._lock = threading.RLock()
        self._kept: Cache | None = None
        self._opened: Shop | None = None

    @property
    def stats(self) -> Stats:
        return self._opened.meter.stats if self._opened else Stats()

    @property
    def cache(self) -> Cache:
        """What outlives the process."""
        from .cache import Cache, cache_directory

        with self._lock:
            if self._kept is None:
                self._kept = Cache(cache_directory(os.environ))
            return self._kept

    @property
    def _shop(self) -> Shop:
        from .releases import Shop

        with self._lock:
            if self._opened is None:
                self._opened = Shop.of(
                    access_from(self._index, os.environ),
                    self.cache,
                    self.progress,
                    offline=self._offline,
                )
            return self._opened

    def releases(self, distribution: str) -> Sequence[str]:
        """Every release that the indexes offer, pre-releases too, oldest first.

        Raises:
            SourceUnavailable: no index offers any, or none can be asked.
        """
        return self._shop.offers.versions(distribution)

    def open(self, spec: str, part: Part | None = None) -> OpenedSource:
        """The source that `spec` names.

        Args:
            part: of a release, where one of its wheels has what is going to be read.

        Raises:
            SourceUnavailable: with one sentence that says what to do.
        """
        text = spec.strip()
        if text == "installed" or text.startswith("installed:"):
            from .local import installed_source

            named = text.partition(":")[2]
            packages = (named,) if named else self._packages or ("vllm",)
            return installed_source(packages)
        if text.startswith("git:"):
            from .revisions import revision_source

            clone, at, revision = text[4:].rpartition("@")
            if not (at and clone and revision):
                raise BadSource(f"{spec!r} is incomplete; write git:PATH@REVISION")
            return revision_source(Path(clone).expanduser(), revision, self._packages)
        path = Path(text).expanduser()
        if text and path.is_dir():
            from .local import folder_source

            return folder_source(path, self._packages)
        if text.endswith(_ARCHIVES) and (path.is_file() or "/" in text):
            from .local import archive_source
            from .meter import Meter

            return archive_source(path, self._packages, Meter())
        looks_like_one = text.startswith((".", "/", "~")) or text.endswith(_ARCHIVES)
        if looks_like_one and not path.exists():
            raise BadSource(f"there is no file or folder {text}")
        return self._release(spec, text, part)

    def _release(self, spec: str, text: str, part: Part | None) -> OpenedSource:
        match = _RELEASE.fullmatch(text)
        word = (match and match["word"]) or "latest"
        if match is None or word not in ("latest", "latest-pre"):
            raise BadSource(f"{spec!r} names no source; {_FORMS}")
        from .index import wanted
        from .releases import open_release

        prereleases = True if word == "latest-pre" else None
        release = wanted(match["name"], match["specifier"] or "", prereleases)
        return open_release(self._shop, release, self._packages, part)


def open_source(
    spec: str,
    *,
    index: IndexSettings | None = None,
    offline: bool = False,
    progress: Progress | None = None,
    packages: Collection[str] = (),
) -> OpenedSource:
    """One source, opened by itself; `Sources` says what the arguments mean.

    Args:
        spec: `installed`, `installed:NAME`, `NAME==VERSION`, `NAME@latest`,
            `NAME@latest-pre`, a path of a wheel, an sdist or a directory, or
            `git:PATH@REVISION`.

    Raises:
        SourceUnavailable: with one sentence that says what to do.
    """
    sources = Sources(
        index=index, offline=offline, progress=progress, packages=packages
    )
    return sources.open(spec)
