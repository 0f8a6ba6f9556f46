"""What a console prints, put into another language: texts, and the cells of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..words import said
from ..words.folding import columns, ends

__all__ = ["Flow", "WordedTable", "worded"]

_TAG = re.compile(r"(\[/?[a-z ]*\])")


class Flow:
    """A text whose lines may end between any two Chinese characters."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[Text]:
        for line in self._text.split("\n", allow_blank=True):
            for part in line.divide(ends(line.plain, options.max_width)):
                part.rstrip()
                yield part

    def __rich_measure__(
        self, console: Console, options: ConsoleOptions
    ) -> Measurement:
        widest = max(map(columns, self._text.plain.split("\n")))
        return Measurement(min(widest, 2), widest).with_maximum(options.max_width)


class WordedTable(Table):
    """A table whose cells are looked up. The last column holds sentences, and folds."""

    def add_row(self, *cells: Any, **how: Any) -> None:
        *first, last = (_text(one, markup=True) for one in cells)
        folds = isinstance(last, Text) and not self.columns[-1].no_wrap
        super().add_row(*first, Flow(last) if folds else last, **how)


def worded(
    objects: Sequence[Any], how: dict[str, Any], *, folds: bool
) -> tuple[Any, ...]:
    """The same objects for `Console.print(**how)`, their texts looked up."""
    markup = how.get("markup", True)
    found = [_text(one, markup=markup) for one in objects]
    texts = [one for one in found if isinstance(one, Text)]
    one_by_one = len(texts) < len(found) or how.get("soft_wrap") or how.get("end") == ""
    if one_by_one or not folds or not texts:
        return tuple(found)
    return (Flow(Text(how.pop("sep", " ")).join(texts)),)


def _text(one: Any, *, markup: bool) -> Any:
    if isinstance(one, str):
        spelled = _marked(one) if markup else said(one)
        return Text.from_markup(spelled) if markup else Text(spelled)
    if isinstance(one, Text):
        return _styled(one)
    if isinstance(one, Padding):
        inner = _text(one.renderable, markup=markup)
        one.renderable = Flow(inner) if isinstance(inner, Text) else inner
    return one


def _marked(text: str) -> str:
    """A text with tags for styles: as a whole, or what stands between the tags."""
    whole = said(text)
    if whole != text or "[" not in text:
        return whole
    return "".join(p if _TAG.fullmatch(p) else said(p) for p in _TAG.split(text))


def _styled(text: Text) -> Text:
    """A text with styles of its parts: each part by itself."""
    if not text.spans:
        made = text.copy()
        made.plain = said(text.plain)
        return made
    at = sorted({edge for span in text.spans for edge in (span.start, span.end)})
    made = text.blank_copy()
    for part in text.divide([one for one in at if 0 < one < len(text)]):
        spelled = said(part.plain)
        if spelled == part.plain:
            made.append_text(part)
        else:
            made.append(spelled, part.spans[0].style if part.spans else None)
    return made
