"""Which language somebody wants, by the rules of gettext and one variable of ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TextIO

__all__ = [
    "CHINESE",
    "ENGLISH",
    "NAMES",
    "VARIABLE",
    "can_show",
    "is_known",
    "preferred",
    "unspoken",
]

ENGLISH = "en"
CHINESE = "zh_CN"
NAMES = (ENGLISH, CHINESE)
VARIABLE = "ASCEND_SHIMS_LANG"

_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
_SIMPLIFIED = re.compile(r"zh|zh_(hans|cn|sg|my)(_\w+)?", re.IGNORECASE)
_ENGLISH = re.compile(r"en(_\w+)?|c|posix", re.IGNORECASE)
_SAMPLE = "漂移，已应用：《》“”…·"
"""What an encoding has to have."""


def preferred(environ: Mapping[str, str], *streams: TextIO | None) -> str:
    """The language of an environment, as its output can show it.

    Returns `zh_CN` or `en`; `en` also for languages that there are no words in.
    """
    return CHINESE if _asks(environ) and all(map(can_show, streams)) else ENGLISH


def unspoken(environ: Mapping[str, str], *streams: TextIO | None) -> str | None:
    """The encoding because of which it is not Chinese that is spoken, as is wanted."""
    if not _asks(environ):
        return None
    refusing = (one for one in streams if one is not None and not can_show(one))
    return next((one.encoding for one in refusing), None)


def _asks(environ: Mapping[str, str]) -> bool:
    """Whether of the languages that there are words in Chinese is liked best."""
    for name in _wanted(environ):
        spelled = _spelled(name)
        if _SIMPLIFIED.fullmatch(spelled):
            return True
        if _ENGLISH.fullmatch(spelled):
            return False
    return False


def is_known(name: str) -> bool:
    """Whether there are words in a language that is called so."""
    spelled = _spelled(name)
    return bool(_SIMPLIFIED.fullmatch(spelled) or _ENGLISH.fullmatch(spelled))


def _spelled(name: str) -> str:
    """Without the encoding, and with the one mark between its parts."""
    return re.split(r"[.@]", name.strip())[0].replace("-", "_")


def _wanted(environ: Mapping[str, str]) -> Iterator[str]:
    """Names of languages, the one that is liked best first."""
    if own := environ.get(VARIABLE, "").strip():
        yield own
        return
    locale = next(filter(None, map(environ.get, _LOCALE)), "")
    # As for gettext: who has no locale has no list of languages either.
    if locale and not re.match(r"(C|POSIX)\b", locale):
        yield from filter(None, environ.get("LANGUAGE", "").split(":"))
    yield locale


def can_show(stream: TextIO | None) -> bool:
    """Whether Chinese can be written there. What has no encoding takes any text."""
    encoding = getattr(stream, "encoding", None)
    if not isinstance(encoding, str):
        return True
    try:
        _SAMPLE.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
