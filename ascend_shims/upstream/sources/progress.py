"""Telling a person about a long download: its size first, then how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Bar", "Progress", "Silent", "megabytes"]


def megabytes(size: int | None) -> str:
    return "of unknown size" if size is None else f"{size / 1e6:.1f} MB"


class Progress(Protocol):
    """Hears of each whole-file download; range reads are too short to tell."""

    def begin(self, what: str, size: int | None) -> None:
        """Called before the first byte; `size` in bytes where the server says it."""

    def advance(self, size: int) -> None:
        """`size` further bytes have arrived."""

    def end(self) -> None:
        """Called once after `begin`, whatever happened."""


class Silent:
    """Tells nobody."""

    def begin(self, what: str, size: int | None) -> None:
        pass

    def advance(self, size: int) -> None:
        pass

    def end(self) -> None:
        pass


class Bar:
    """A line with the size, then a bar, on a terminal; the line alone elsewhere."""

    def __init__(self, console: Console) -> None:
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TextColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as RichProgress

        self._console = console
        self._rich = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._rich.add_task("", visible=False)

    def begin(self, what: str, size: int | None) -> None:
        self._console.print(f"downloading {what}, {megabytes(size)}", highlight=False)
        self._rich.reset(self._task, description=what, total=size, visible=True)
        if self._console.is_terminal:
            self._rich.start()

    def advance(self, size: int) -> None:
        self._rich.advance(self._task, size)

    def end(self) -> None:
        if self._console.is_terminal:
            self._rich.stop()
