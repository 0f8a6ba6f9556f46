"""Telling a person about a long download: its size first, then how far it is."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

__all__ = ["Bar", "Progress", "Silent", "megabytes"]


def megabytes(size: int | None) -> str:
    return "of unknown size" if size is None else f"{size / 1e6:.1f} MB"


class Progress(Protocol):
    """Hears of each whole-file download; range reads are too short to tell.

    `begin`, `advance` and `end` may be called by several threads, each about a
    download of its own.
    """

    def begin(self, what: str, size: int | None) -> None:
        """Called before the first byte; `size` in bytes where the server says it."""

    def advance(self, size: int) -> None:
        """`size` further bytes have arrived."""

    def end(self) -> None:
        """Called once after `begin`, whatever happened."""

    def count(self, what: str, done: int, total: int) -> None:
        """So many of so many things are done; all of them: the end of it."""


class Silent:
    """Tells nobody."""

    def begin(self, what: str, size: int | None) -> None:
        pass

    def advance(self, size: int) -> None:
        pass

    def end(self) -> None:
        pass

    def count(self, what: str, done: int, total: int) -> None:
        pass


class Bar:
    """Bars on standard error, in a terminal; elsewhere a line for each download."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._bars: RichProgress | None = None
        self._tasks: dict[object, TaskID] = {}

    def begin(self, what: str, size: int | None) -> None:
        with self._lock:
            text = f"downloading {what}, {megabytes(size)}"
            self._rich.console.print(text, highlight=False)
            self._start(threading.get_ident(), what, size, "bytes")

    def advance(self, size: int) -> None:
        with self._lock:
            self._rich.advance(self._tasks[threading.get_ident()], size)

    def end(self) -> None:
        with self._lock:
            self._stop(threading.get_ident())

    def count(self, what: str, done: int, total: int) -> None:
        if self._console is None and not sys.stderr.isatty():
            return
        with self._lock:
            if "count" not in self._tasks:
                self._start("count", what, total, "things")
            task = self._tasks["count"]
            self._rich.update(task, description=what, completed=done, total=total)
            if done >= total:
                self._stop("count")

    @property
    def _rich(self) -> RichProgress:
        # Most commands have nothing to show, and rich takes a while to import.
        if self._bars is None:
            from .bars import bars

            self._bars = bars(self._console)
        return self._bars

    def _start(self, key: object, what: str, total: int | None, unit: str) -> None:
        self._tasks[key] = self._rich.add_task(what, total=total, unit=unit)
        if self._rich.console.is_terminal:
            self._rich.start()

    def _stop(self, key: object) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            self._rich.remove_task(task)
        if not self._tasks and self._rich.console.is_terminal:
            self._rich.stop()
