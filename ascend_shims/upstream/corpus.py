"""All texts of a release in one piece, so that one search covers them all."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

__all__ = ["Corpus"]

_BETWEEN = b"\n\0\n"
"""Ends every word, and is in no honest Python file."""


class Corpus:
    def __init__(self, texts: Iterable[tuple[str, bytes]]) -> None:
        self._names: list[str] = []
        self._starts: list[int] = []
        self._sizes: dict[str, tuple[int, int]] = {}
        whole = bytearray()
        for name, text in texts:
            self._names.append(name)
            self._starts.append(len(whole))
            self._sizes[name] = (len(whole), len(whole) + len(text))
            whole += text
            whole += _BETWEEN
        self._whole = whole

    def text(self, name: str) -> bytes:
        start, end = self._sizes.get(name, (0, 0))
        return bytes(self._whole[start:end])

    def holding(self, word: bytes) -> Iterator[str]:
        """Names of the texts that have the whole word, in order."""
        pattern = re.compile(rb"(?<!\w)" + re.escape(word) + rb"(?!\w)")
        # The plain search is an order of magnitude faster than the pattern.
        at = self._whole.find(word)
        while at >= 0:
            index = bisect_right(self._starts, at) - 1
            name = self._names[index]
            end = self._sizes[name][1]
            if pattern.search(self._whole, max(0, at - 1), end):
                yield name
            at = self._whole.find(word, end)
