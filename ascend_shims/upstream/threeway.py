"""What to port: upstream's change, hunk by hunk, seen from our version of a body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

__all__ = ["Hunk", "Standing", "hunks"]

Standing = Literal["to-port", "ported", "by-hand"]
"""`to-port`: ours still has the lines that upstream changed. `ported`: ours has what
they became. `by-hand`: ours has neither, since it differs there on purpose."""


@dataclass(frozen=True)
class Hunk:
    """One change of upstream's, lines without their ends."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    standing: Standing
    ours: tuple[str, ...]
    """Our lines at that place; those around it where upstream inserts."""
    line: int
    """Of the first of them within our text, from 0; -1 where there are none."""


def hunks(old: str, new: str, ours: str, *, name: str, our_name: str) -> list[Hunk]:
    """Upstream's changes from `old` to `new` against our version.

    `name` and `our_name` are what upstream and we call it: they differ and mean the
    same. Indentation does not count, since a method may be a function of ours.
    """
    before, after, mine = old.splitlines(), new.splitlines(), ours.splitlines()
    known = _plain(mine, our_name, name)
    made = SequenceMatcher(
        None, _plain(before, "", ""), _plain(after, "", ""), autojunk=False
    )
    return [
        _hunk(before, after, mine, known, spans)
        for tag, *spans in made.get_opcodes()
        if tag != "equal" and not _is_blank(before, after, spans)
    ]


def _plain(lines: Sequence[str], word: str, becomes: str) -> list[str]:
    if not word:
        return [line.strip() for line in lines]
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    return [pattern.sub(becomes, line).strip() for line in lines]


def _is_blank(before: list[str], after: list[str], spans: list[int]) -> bool:
    a, b, c, d = spans
    return not any(line.strip() for line in (*before[a:b], *after[c:d]))


def _hunk(
    before: list[str],
    after: list[str],
    mine: list[str],
    known: list[str],
    spans: list[int],
) -> Hunk:
    a, b, c, d = spans
    old, new = tuple(before[a:b]), tuple(after[c:d])
    # With a neighbour on each side, so that a mere insertion has a place too.
    lead, tail = before[max(0, a - 1) : a], before[b : b + 1]
    looks: tuple[tuple[Standing, list[str]], ...] = (
        ("ported", _plain([*lead, *new, *tail], "", "")),
        ("to-port", _plain([*lead, *old, *tail], "", "")),
    )
    for standing, wanted in looks:
        at = _find(known, wanted) if wanted else -1
        if at >= 0:
            return Hunk(old, new, standing, tuple(mine[at : at + len(wanted)]), at)
    at, length = _near(known, _plain(before, "", ""), a, b)
    return Hunk(old, new, "by-hand", tuple(mine[at : at + length]), at)


def _find(lines: list[str], wanted: list[str]) -> int:
    """Where `wanted` stands in `lines`, -1 if it does not."""
    size = len(wanted)
    for at in range(len(lines) - size + 1):
        if lines[at : at + size] == wanted:
            return at
    return -1


def _near(known: list[str], before: list[str], a: int, b: int) -> tuple[int, int]:
    """Our lines between those that match upstream's around the change."""
    first, last = -1, len(known)
    for mine, theirs, size in _matching(known, before):
        if theirs < a:
            first = max(first, mine + min(size, a - theirs) - 1)
        if theirs + size > b:
            last = min(last, mine + max(0, b - theirs))
    start, end = first + 1, last
    return (start, end - start) if start < end else (max(first, 0), min(1, len(known)))


def _matching(known: list[str], before: list[str]) -> Iterator[tuple[int, int, int]]:
    matcher = SequenceMatcher(None, known, before, autojunk=False)
    for block in matcher.get_matching_blocks():
        if block.size:
            yield block.a, block.b, block.size
