"""A catalogue: finished English texts, and what stands for them in another language.

It is a folder of files, each one JSON object, English text to translation. That
needs no compile step, no parser of ours and no library, and translators' tools read it.
What varies is a named hole, as in `{gap} is switched off by {where}`, which the source
writes as an f-string. A text is matched as a whole; what was in its holes is looked up
in its turn, since sentences are put together of sentences.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from .folding import columns, padded

__all__ = ["FILES", "HOLE", "Catalogue", "Template", "load"]

HOLE = re.compile(r"\{([a-z_][a-z0-9_]*)\}")

_LONGEST = 4000
"""Characters of what people say; more is a log, or a file."""
_DEEPEST = 8
FILES = ("registry", "more", "messages")
"""Texts of our registry; of click, and single words; all others."""
_SURE = 5
"""Letters of our own in a text that is surely ours."""
_SURE_WITHIN = 6
"""The same, where it begins and ends with a hole."""
_STOPS = (": ", "; ", ". ", " · ", "  ")
"""What ends a sentence, or the cell of a line."""
_WORDS = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")
_EDGES = re.compile(r"(\s*(?:[-+?] )?)(.*?)(\s*)", re.DOTALL)
_JOINTS = (
    ("\n", "\n"),
    (" · ", " · "),
    ("; ", "；"),
    (": ", "："),
    (", ", "，"),
)
"""Where texts are put side by side, and what stands there in Chinese."""
_HAN = re.compile("[\u4e00-\u9fff]")
_CHINESE = re.compile("[\u4e00-\u9fff）]")
_LATIN = re.compile("[A-Za-z0-9`]")
_COUNT = "number"
"""The hole that only a number is in."""
_NUMBER = re.compile(r"[\d,]+")
_GAP = re.compile(r"( {2,})")
"""Between two columns of a line."""


@dataclass(frozen=True)
class Template:
    """A text with holes, and its translation with the same holes."""

    chunks: tuple[str, ...]
    """What stands before, between and after the holes."""
    names: tuple[str, ...]
    translated: str

    @classmethod
    def of(cls, text: str, translated: str) -> Template:
        parts = HOLE.split(text)
        return cls(tuple(parts[::2]), tuple(parts[1::2]), translated)

    @cached_property
    def is_sure(self) -> bool:
        """Whether a text that it fits is ours, and not by chance like it."""
        has_edge = self.chunks[0] or self.chunks[-1]
        needed = _SURE if has_edge else _SURE_WITHIN
        return sum(map(str.isalpha, "".join(self.chunks))) >= needed

    def is_fit(self, holes: Mapping[str, str]) -> bool:
        """Whether sentences end where ours does, and not within a hole."""
        *within, last = holes.values()
        if self.chunks[-1]:
            within.append(last)
        elif last.endswith("."):
            return False
        marks = _STOPS if self.is_sure else (*_STOPS, ", ")
        return not any(mark in value for mark in marks for value in within)

    @property
    def weight(self) -> int:
        """How much of a text it says: what says most fits best."""
        return sum(map(len, self.chunks))

    def holes(self, text: str) -> dict[str, str] | None:
        """What a text has in the holes; None where it is another text.

        Each hole ends where what follows it first stands. That finds a way if there
        is one, without trying any twice.
        """
        first, *between, last = self.chunks
        at, end = len(first), len(text) - len(last)
        if at > end or not (text.startswith(first) and text.endswith(last)):
            return None
        found = {}
        for name, chunk in zip(self.names, between, strict=False):
            behind = text.find(chunk, at, end)
            if behind < 0:
                return None
            found[name] = text[at:behind]
            at = behind + len(chunk)
        found[self.names[-1]] = text[at:end]
        # Without that any sentence that ends with `files` would be a number of them.
        number = found.get(_COUNT)
        return found if number is None or _NUMBER.fullmatch(number) else None

    def filled(self, holes: Mapping[str, str]) -> str:
        text = ""
        for number, part in enumerate(HOLE.split(self.translated)):
            text = _joined(text, holes[part] if number % 2 else part)
        return text


class Catalogue:
    """Translations of one language."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._plain: dict[str, str] = {}
        templates = []
        for text, translated in _also_alone(entries):
            if HOLE.search(text):
                templates.append(Template.of(text, translated))
            else:
                self._plain[text] = translated
        self._templates = sorted(templates, key=lambda one: -one.weight)
        self._known: dict[str, str] = {}

    def said(self, text: str) -> str:
        """The translation of a text or of its parts; the text where there is none."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._said(text, 0)
        return known

    def _said(self, text: str, depth: int) -> str:
        edges = _EDGES.fullmatch(text)
        if edges is None or not edges[2] or len(text) > _LONGEST or depth > _DEEPEST:
            return text
        before, bare, after = edges.groups()
        found = self._whole(bare, depth) or self._apart(bare, depth)
        if found is None:
            found = self._whole(bare, depth, strict=False) or bare
        if found[-1] in "，。：；":
            # A wide mark brings its own space.
            after = after.lstrip(" ")
        return f"{before}{found}{after}"

    def _whole(self, text: str, depth: int, *, strict: bool = True) -> str | None:
        """As one of our sentences. `strict`: what is in its holes is no sentence."""
        for spelled in _spellings(text):
            if spelled in self._plain:
                return self._plain[spelled]
            for one in self._templates:
                holes = one.holes(spelled)
                if holes is None or (strict and not one.is_fit(holes)):
                    continue
                values = {n: self._said(v, depth + 1) for n, v in holes.items()}
                if one.is_sure or not any(
                    _is_prose(value) and values[name] == value
                    for name, value in holes.items()
                ):
                    return one.filled(values)
        return None

    def _apart(self, text: str, depth: int) -> str | None:
        if text.endswith("."):
            whole = self._whole(text[:-1], depth)
            if whole is not None:
                return f"{whole}。"
        if "\n" not in text and "  " in text:
            return self._columns(text, depth)
        for joint, translated in _JOINTS:
            parts = self._parts(text, joint, depth)
            if parts:
                return translated.join(parts)
        return None

    def _columns(self, text: str, depth: int) -> str | None:
        """A line in columns, which begin where they did as far as there is room."""
        *cells, last = _GAP.split(text)
        line = ""
        for cell, space in zip(cells[::2], cells[1::2], strict=True):
            said = self._said(cell, depth + 1)
            line += padded(said, max(columns(cell + space), columns(said) + 2))
        line += self._said(last, depth + 1)
        return line if line != text else None

    def _parts(self, text: str, joint: str, depth: int) -> Sequence[str]:
        """The translated parts; nothing where this is not put together of our texts.

        What nobody here wrote is not put into words by halves.
        """
        parts = text.split(joint, 1 if joint == ": " else -1)
        if len(parts) < 2:
            return ()
        translated = [self._said(part, depth + 1) for part in parts]
        if translated == parts:
            return ()
        # Lines are texts of their own; and what we say may end with what others said.
        own = parts if joint != ": " else parts[:1]
        strange = (p for p, t in zip(own, translated, strict=False) if p == t)
        return () if joint != "\n" and any(map(_is_prose, strange)) else translated


def _joined(left: str, right: str) -> str:
    """Two texts beside each other: a space stands between Chinese and other words, and
    none between Chinese and Chinese."""
    if _HAN.search(left[-1:]) and _LATIN.match(right):
        return f"{left} {right}"
    if _LATIN.search(left[-1:]) and _HAN.match(right):
        return f"{left} {right}"
    if left.endswith(" ") and _CHINESE.search(left[-2:-1]) and _HAN.match(right):
        return f"{left[:-1]}{right}"
    if right.startswith(" ") and _CHINESE.search(left[-1:]) and _HAN.match(right[1:]):
        return f"{left}{right[1:]}"
    return f"{left}{right}"


def _also_alone(entries: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The entries, and what they are without the marks that join them to others."""
    for text, translated in entries.items():
        yield text, translated
        alone = text.removeprefix("; ").removesuffix(".")
        if alone not in entries and not text.endswith("..."):
            yield alone, translated.removeprefix("；").removesuffix("。")


def _is_prose(text: str) -> bool:
    """Whether it may be a sentence, rather than a name or a number."""
    return _WORDS.search(text) is not None


def _spellings(text: str) -> Iterable[str]:
    """As it stands, and as it would stand within a sentence."""
    yield text
    if text[0].isupper() and not text[1:2].isupper():
        yield text[0].lower() + text[1:]


@cache
def load(language: str) -> Catalogue:
    """The catalogue called `language`, which comes with this package."""
    folder = files(__package__) / language
    found: dict[str, str] = {}
    for name in FILES:
        found.update(json.loads(folder.joinpath(f"{name}.json").read_text("utf-8")))
    return Catalogue(found)
