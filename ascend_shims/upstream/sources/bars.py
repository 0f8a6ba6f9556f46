"""What the bars look like."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TransferSpeedColumn,
)
from rich.text import Text

__all__ = ["bars"]


class _Amount(ProgressColumn):
    """How much of how much: of a file in megabytes, of other things by number."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes, self._speed = DownloadColumn(), TransferSpeedColumn()
        self._things = MofNCompleteColumn()

    def render(self, task: Task) -> Text:
        if task.fields["unit"] != "bytes":
            return self._things.render(task)
        return self._bytes.render(task) + " " + self._speed.render(task)


def bars(console: Console | None) -> Progress:
    """Bars that are gone when they have ended, on standard error by default."""
    columns = (TextColumn("{task.description}"), BarColumn(), _Amount())
    out = console or Console(stderr=True)
    return Progress(*columns, console=out, transient=True)
