"""Help screens in another language, with columns that hold wide characters.

Command modules write their help in English. It comes here in paragraphs and in rows of
two columns, and each of these is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from textwrap import dedent

import click

from ..words import said
from ..words.folding import columns, fold, padded

__all__ = ["Formatter", "as_it_stands", "paragraphs"]

_RAW = "\b"
"""Heads a paragraph that is not filled, as click has it."""
_BESIDE = re.compile(r"(\S.*?)( {2,})(\S.*)")
"""A call in an example, and what is said about it."""
_EXTRA = re.compile(r"(.*?)  (\[[^]]*\])")
"""What click adds to an option's help: its default, a range."""


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a help text, their lines joined but in those that stay raw."""
    parts = re.split(r"\n\s*\n", dedent(text).strip("\n"))
    return [
        part if part.startswith(_RAW) else " ".join(part.split())
        for part in parts
        if part.strip()
    ]


def as_it_stands(paragraph: str) -> list[tuple[str, str]]:
    """The lines of a raw paragraph: what is typed, and what is said about it."""
    lines = []
    for line in paragraph.splitlines()[1:]:
        found = _BESIDE.fullmatch(line.strip())
        indent = line[: len(line) - len(line.lstrip())]
        typed, about = (found[1], found[3]) if found else (line.strip(), "")
        lines.append((f"{indent}{typed}", about))
    return lines


class Formatter(click.HelpFormatter):
    """Looks up what it is given, and counts columns rather than characters."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        head = f"{said('Usage:') if prefix is None else prefix}{prog} "
        indent = columns(head)
        words = " ".join(said(word) for word in _words(args))
        first, *rest = fold(words, max(20, self.width - indent))
        lines = [head + first, *(" " * indent + line for line in rest)]
        self.write("".join(f"{line}\n" for line in lines))

    def write_heading(self, heading: str) -> None:
        self.write(f"{' ' * self.current_indent}{said(heading)}：\n")

    def write_text(self, text: str) -> None:
        indent = " " * self.current_indent
        for number, paragraph in enumerate(paragraphs(text)):
            if number:
                self.write("\n")
            for line in self._lines(paragraph):
                self.write(f"{indent}{line}".rstrip() + "\n")

    def _lines(self, paragraph: str) -> Iterator[str]:
        if not paragraph.startswith(_RAW):
            yield from fold(said(paragraph), self.width - self.current_indent)
            return
        lines = as_it_stands(paragraph)
        width = max((columns(typed) for typed, about in lines if about), default=0)
        for typed, about in lines:
            yield f"{padded(typed, width)}  {said(about)}" if about else said(typed)

    def write_dl(
        self,
        rows: Iterable[tuple[str, str]],
        col_max: int = 30,
        col_spacing: int = 2,
    ) -> None:
        known = list(rows)
        widest = min(max((columns(term) for term, _ in known), default=0), col_max)
        beside = self.current_indent + widest + col_spacing
        for term, about in known:
            first, *rest = fold(_about(about), max(20, self.width - beside)) or [""]
            head = " " * self.current_indent + term
            if columns(term) > widest:
                self.write(f"{head}\n{' ' * beside}{first}\n")
            else:
                self.write(f"{padded(head, beside)}{first}".rstrip() + "\n")
            self.write("".join(f"{' ' * beside}{line}\n" for line in rest))


def _words(args: str) -> Iterator[str]:
    """The words of a usage line; those of click that belong together as one."""
    yield from re.findall(r"COMMAND \[ARGS\]\.\.\.|\S+", args)


def _about(text: str) -> str:
    found = _EXTRA.fullmatch(text)
    if found is None:
        return said(text)
    return f"{said(found[1])}  {said(found[2])}"
