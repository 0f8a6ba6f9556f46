"""Pieces of Markdown, as the pages that are written by hand have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill

__all__ = ["cell", "code", "console", "note", "paragraph", "table"]

_WIDTH = 88


def paragraph(text: str, indent: str = "") -> str:
    """One paragraph, folded."""
    return fill(
        " ".join(text.split()),
        _WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def code(text: str) -> str:
    return f"`{text}`"


def console(lines: Iterable[str]) -> str:
    """What is typed, each line behind a prompt."""
    return "\n".join(["```console", *(f"$ {line}" for line in lines), "```"])


def cell(text: str) -> str:
    """One line, in which nothing ends a cell."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = [
        [cell(one) for one in head],
        ["---"] * len(head),
        *([cell(one) for one in row] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def note(source: str) -> str:
    """Says, to who opens the file, that it is not written by hand."""
    return f"<!-- Made by tools/docs of {source}. -->"
