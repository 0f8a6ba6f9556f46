"""The results on a terminal, or in a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from .model import Entry, Results, Row
from .wording import interval, kept, number, quantity, ratio

__all__ = ["lines"]

_WIDTHS = (25, 15, 16, 9, 15)
_HEAD = ("", "OURS", "THEIRS", "RATIO", "95 %")
_MOST_TEXT = 100
_STEP = 2


def lines(results: Results, width: int) -> list[str]:
    """At most `width` columns, and never less than 80."""
    width = max(width, 80)
    found = []
    for entry in results.entries:
        found += [*_entry(entry, width), ""]
    unmet = sum(not limit.met for row in results.rows.values() for limit in row.limits)
    every = sum(len(row.limits) for row in results.rows.values())
    return [*found, f"{every - unmet} of {every} limits met"]


def _entry(entry: Entry, width: int) -> Iterator[str]:
    seconds = f"{entry.seconds:.0f} s" + (", quick" if entry.quick else "")
    yield f"{entry.title} ({seconds})"
    yield _cells(_HEAD)
    for row in entry.rows:
        yield from _row(row, width)


def _cells(texts: tuple[str, ...]) -> str:
    first, *rest = texts
    cells = [first.ljust(_WIDTHS[0])]
    pairs = zip(rest, _WIDTHS[1:], strict=True)
    cells += [text.rjust(size) for text, size in pairs]
    return "".join(cells).rstrip()


def _row(row: Row, width: int) -> Iterator[str]:
    theirs = quantity(row.theirs.median, row.unit) if row.theirs else ""
    ours = quantity(row.ours.median, row.unit)
    yield _cells((row.name, ours, theirs, ratio(row.ratio), interval(row)))
    against = f", against {row.against}" if row.against else ""
    yield from _folded(f"{row.what}{against}", width)
    for limit in row.limits:
        found = f"{limit.says}: {kept(limit)}, {number(limit.found)}"
        yield from _folded(found, width)


def _folded(text: str, width: int) -> list[str]:
    indent = " " * _STEP
    size = min(width, _MOST_TEXT)
    return textwrap.wrap(
        text, size, initial_indent=indent, subsequent_indent=indent * 2
    )
