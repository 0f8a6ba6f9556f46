"""All texts of a release in one piece, so that one search covers them all."""

from __future__ import annotations

import string
from bisect import bisect_right
from collections.abc import Iterable, Iterator

__all__ = ["Corpus", "has_word", "reads_attribute"]

_BETWEEN = b"\n\0\n"
"""Ends every word, and is in no honest Python file."""


_WORD = frozenset((string.ascii_letters + string.digits + "_").encode())
_SPACE = frozenset(string.whitespace.encode())


def has_word(
    text: bytes | bytearray, word: bytes, start: int = 0, end: int | None = None
) -> bool:
    """Whether the word stands alone anywhere between `start` and `end`.

    A regular expression that looks behind takes ten times as long.
    """
    end = len(text) if end is None else end
    at = text.find(word, start, end)
    while at >= 0:
        after = at + len(word)
        if (after >= end or text[after] not in _WORD) and (
            not at or text[at - 1] not in _WORD
        ):
            return True
        at = text.find(word, at + 1, end)
    return False


def reads_attribute(text: bytes, name: bytes) -> bool:
    """Whether `.name` is anywhere in the text, space around the dot allowed."""
    at = text.find(name)
    while at >= 0:
        after = at + len(name)
        if after >= len(text) or text[after] not in _WORD:
            before = at - 1
            while before >= 0 and text[before] in _SPACE:
                before -= 1
            if before >= 0 and text[before] == _DOT:
                return True
        at = text.find(name, at + 1)
    return False


_DOT = ord(".")


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
        """Names of the texts that have the whole word, in order; no word is in none."""
        if not word:
            return
        at = self._whole.find(word)
        while at >= 0:
            index = bisect_right(self._starts, at) - 1
            name = self._names[index]
            end = self._sizes[name][1]
            if has_word(self._whole, word, at, end):
                yield name
            at = self._whole.find(word, end)
