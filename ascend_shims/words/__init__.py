"""The language in which commands speak to a person: English, or Simplified Chinese.

Code everywhere says what it has to say in English. Where a screen is written, and
only there, a finished text is looked up in the catalogue: `said()`. For English there
is none, and nothing of it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .language import ENGLISH, preferred

if TYPE_CHECKING:
    from .catalogue import Catalogue

__all__ = ["ENGLISH", "is_english", "language", "preferred", "said", "speaking"]

_language = ENGLISH
_catalogue: Catalogue | None = None


def language() -> str:
    """The one that is spoken now: `en`, or the name of a catalogue."""
    return _language


def is_english() -> bool:
    return _catalogue is None


def said(text: str) -> str:
    """The text in the language that is spoken; as it is where that has no words for it.

    Names, paths and whatever else is data come out as they went in.
    """
    return text if _catalogue is None else _catalogue.said(text)


@contextmanager
def speaking(wanted: str) -> Iterator[None]:
    """Speak this language meanwhile. `wanted` is what `preferred()` returned."""
    global _language, _catalogue
    before = _language, _catalogue
    if wanted == ENGLISH:
        _language, _catalogue = ENGLISH, None
    else:
        from .catalogue import load

        _language, _catalogue = wanted, load(wanted)
    try:
        yield
    finally:
        _language, _catalogue = before
