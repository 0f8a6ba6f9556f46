"""Lines of text in which Chinese characters take two columns.

A line may end behind any of them, but not before a mark that closes something nor
behind one that opens something. Other words stay whole, as they do in English.
"""

from __future__ import annotations

import re
import textwrap
from unicodedata import east_asian_width

__all__ = ["columns", "ends", "filled", "fold", "padded"]

_WIDE = "\u2e80-\u303f\u3040-\u9fff\uf900-\ufaff\uff01-\uff60"
_OPENING = "（“《「【"
_CLOSING = "，。；：、！？）”》」】…"
_HAS_WIDE = re.compile(f"[{_WIDE}]")
_PIECE = re.compile(
    rf"[{_OPENING}]*(?:[^\s{_WIDE}]+|[{_WIDE}])?[{_CLOSING}]*[ \t]*", re.DOTALL
)


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def padded(text: str, width: int) -> str:
    """The text with spaces behind it, up to a number of columns."""
    return text + " " * (width - columns(text))


def fold(text: str, width: int, *, whole: bool = False) -> list[str]:
    """The lines of a paragraph that is no wider than `width` columns.

    Args:
        whole: but for words that fit no line, which are copied as a whole.
    """
    starts = [0, *ends(text, width, whole=whole)]
    return [
        text[at:to].strip(" ")
        for at, to in zip(starts, [*starts[1:], len(text)], strict=True)
    ]


def filled(text: str, width: int) -> list[str]:
    """The lines of a paragraph in whatever language; words that fit no line stay."""
    if not _HAS_WIDE.search(text):
        return textwrap.wrap(
            text, width, break_long_words=False, break_on_hyphens=False
        )
    return fold(text, width, whole=True)


def ends(text: str, width: int, *, whole: bool = False) -> list[int]:
    """Where in a text lines end, but for the last one. `whole`: not within a word."""
    found: list[int] = []
    taken = 0
    for piece in _PIECE.finditer(text):
        if not piece[0]:
            continue
        bare = columns(piece[0].rstrip(" \t"))
        if taken and taken + bare > width:
            found.append(piece.start())
            taken = 0
        if bare > width and not whole:
            cuts, taken = _cut(piece[0], width)
            found += [piece.start() + cut for cut in cuts]
            continue
        taken += columns(piece[0])
    return found


def _cut(word: str, width: int) -> tuple[list[int], int]:
    """Where a word ends that fits no line, and how much its last line takes."""
    cuts, taken = [], 0
    for position, one in enumerate(word):
        size = columns(one)
        if taken + size > width and one not in " \t":
            cuts.append(position)
            taken = 0
        taken += size
    return cuts, taken
