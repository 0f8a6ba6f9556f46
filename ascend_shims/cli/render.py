"""How things look: one console, one palette, one table style."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..states import State
from ..words import is_english, said

__all__ = ["ShimsConsole", "console", "state_text", "summary", "table", "tally"]

_STYLES = {
    State.APPLIED: "green",
    State.PENDING: "cyan",
    State.PARTIAL: "cyan",
    State.PROVIDED: "green",
    State.LANDED: "dim",
    State.OBSOLETE: "dim",
    State.OFF: "yellow",
    State.REVERTED: "yellow",
}

_TRAILING = re.compile(r"(?<! )(?: |\x1b\[[0-9;]*m)+(?=\n)")
"""Spaces at the end of a line, and what switches styles among them. It begins where
they begin: a cell may have many of them, and is looked through once."""

_ENDLESS = 100_000
"""Columns of a pipe: more than anything needs."""


class ShimsConsole(Console):
    """Standard output.

    In a pipe a line is as long as what it says: whoever searches it finds sentences,
    and rows of tables, as a whole. `COLUMNS` says otherwise.
    """

    def __init__(self) -> None:
        self.folds = sys.stdout.isatty() or "COLUMNS" in os.environ
        """Whether text is folded to a width."""
        width = None if self.folds else _ENDLESS
        super().__init__(highlight=False, soft_wrap=False, width=width)

    def print(self, *objects: Any, **how: Any) -> None:
        if not is_english():
            from .wording import worded

            objects = worded(objects, how, folds=self.folds)
        with self.capture() as captured:
            super().print(*objects, **how)
        # Cells are filled up with spaces to the width of their column, and a text that
        # is folded keeps the one at which it is: nobody wants to copy them.
        try:
            self.file.write(_TRAILING.sub(_styles, captured.get()))
            self.file.flush()
        except BrokenPipeError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Rich would exit with 1, which stands for findings; and so would click, by
        the number that the system's own error has."""
        raise BrokenPipeError


def _styles(found: re.Match[str]) -> str:
    return found[0].replace(" ", "")


def console() -> ShimsConsole:
    """Standard output: in a pipe without colour, and not cut to a width."""
    return ShimsConsole()


def state_text(state: str) -> Text:
    known = State(state)
    style = "bold red" if known.is_fault else _STYLES.get(known, "dim")
    return Text(state, style=style)


def table(*columns: str) -> Table:
    kind = Table
    if not is_english():
        from .wording import WordedTable

        kind = WordedTable
    made = kind(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for position, column in enumerate(columns):
        last = position == len(columns) - 1
        made.add_column(
            said(column), no_wrap=not last, overflow="fold" if last else "ellipsis"
        )
    return made


def tally(states: list[str]) -> str:
    """`3 applied, 7 off`, most frequent first."""
    return ", ".join(
        f"{count} {state}" for state, count in Counter(states).most_common()
    )


def summary(environment: dict[str, Any]) -> str:
    """One line about an interpreter: upstream, device."""
    found = environment["distributions"]
    package = "vllm" if "vllm" in found else next(iter(found), "vllm")
    vllm = found.get(package, {"origin": "nowhere"})
    if vllm["origin"] == "nowhere":
        upstream = f"{package} is not installed"
    else:
        name = vllm.get("distribution")
        other = f" ({name})" if name not in (None, package) else ""
        upstream = f"{package} {vllm.get('version') or 'of unknown version'}{other}"
        if vllm["origin"] == "assumed":
            upstream += " (assumed)"
    return f"{upstream} · device {environment['device']['kind']}"
