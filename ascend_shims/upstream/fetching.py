"""Opens and reads several releases side by side, each once.

The network takes most of the time of a check that has nothing cached: releases are
opened as soon as their names are known, while the rest of the program is still being
imported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from .sources import OpenedSource, Sources
    from .sources.parts import Part

__all__ = ["Releases"]

_AT_ONCE = 4

_T = TypeVar("_T")


class Releases:
    """The releases of one command, by what a person calls them."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._slots = threading.Semaphore(_AT_ONCE)
        self._opened: dict[str, Future[OpenedSource]] = {}
        self._fetched: set[tuple[str, str]] = set()

    def begin(self, spec: str, part: Part | None = None) -> None:
        """Start to open a release; what goes wrong is raised when it is asked for.

        Args:
            part: where one of its wheels has what is going to be read, if known.
        """
        if spec not in self._opened:
            self._opened[spec] = self._start(lambda: self.sources.open(spec, part))

    def __getitem__(self, spec: str) -> OpenedSource:
        """The release. Raises `SourceUnavailable`."""
        self.begin(spec)
        return self._opened[spec].result()

    def fetch(self, wanted: Mapping[str, Iterable[str]]) -> None:
        """Bring these files of these releases here; those that are not there are
        left out.

        A file that two of the releases have in common is fetched for one of them:
        far sources know files by their content.
        """
        for spec in wanted:
            self.begin(spec)
        taken: set[object] = set()
        jobs = []
        for spec, paths in wanted.items():
            source = self[spec]
            is_there = getattr(source, "is_there", None)
            if is_there is None:
                is_there = set(source.paths()).__contains__
            mark = getattr(source, "mark", lambda _: None)
            mine = []
            for path in paths:
                if (spec, path) in self._fetched or not is_there(path):
                    continue
                self._fetched.add((spec, path))
                content = (path, mark(path) or spec)
                if content not in taken:
                    taken.add(content)
                    mine.append(path)
            if mine:
                jobs.append(self._start(_prefetching(source, mine)))
        for job in jobs:
            job.result()

    def _start(self, work: Callable[[], _T]) -> Future[_T]:
        """Do it in a thread that does not keep the interpreter from ending."""
        future: Future[_T] = Future()

        def run() -> None:
            with self._slots:
                try:
                    result = work()
                # Raised again where the result is asked for.
                except BaseException as error:  # noqa: BLE001
                    future.set_exception(error)
                else:
                    future.set_result(result)

        threading.Thread(target=run, name="shims-open", daemon=True).start()
        return future


def _prefetching(source: OpenedSource, paths: list[str]) -> Callable[[], None]:
    return lambda: source.prefetch(paths)
