"""Plain values as texts that are short and the same in every process.

Two interpreters that do the same never hold the same addresses and random names.
These are recognised for what they are, and written as such: an integer that lies in
memory which this process has mapped is an address, and a random UUID a UUID. Paths
are written from upstream's or the environment's directory on, so that two environments
may agree.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

__all__ = ["CALL_STACK", "SCALARS", "digest", "note_homes", "note_memory", "scalar"]

SCALARS = frozenset(
    map(
        id,
        (
            type(None),
            bool,
            int,
            float,
            complex,
            str,
            bytes,
            type(Ellipsis),
            type(NotImplemented),
        ),
    )
)
"""Kinds of values that are what they say, by identity: a class may have a metaclass
that is asked for its hash. The interpreter may share such values between unrelated
names, so the same one elsewhere means nothing."""

CALL_STACK = "a call stack"
"""Upstream keeps some, of whoever imported it."""

_LONG = 60
_LOWEST = 1 << 32
"""No smaller integer is taken for an address, whatever is mapped."""

_UUID4 = re.compile(
    r"[0-9a-f]{8}[-_]?[0-9a-f]{4}[-_]?4[0-9a-f]{3}[-_]?[89ab][0-9a-f]{3}[-_]?[0-9a-f]{12}"
)
_OBJECT_AT = re.compile(r"\bat 0x[0-9a-f]{9,16}\b")
"""As in `<C object at 0x7f…>`. It may have been written down in another process, long
ago, and lie in this one's memory by chance: so it is an address anywhere."""
_HEX = re.compile(r"0x[0-9a-f]{9,16}\b")
_DECIMAL = re.compile(r"\b[0-9]{12,15}\b")

_TEMPORARY = os.environ.get("TMPDIR", "/tmp").rstrip("/")
_FOLDERS = sorted(
    {
        one
        for one in (os.getcwd(), os.path.expanduser("~"), _TEMPORARY)  # noqa: PTH109, PTH111
        if len(one) > 1
    },
    key=len,
    reverse=True,
)
"""Upstream makes paths from where it was started, by whom, and where there is room."""

_homes: list[str] = []
"""Folders that upstream's packages are in, the longest first."""


def note_homes(folders: Iterable[str]) -> None:
    """Write these folders the same wherever they are."""
    _homes[:] = sorted({one for one in folders if len(one) > 1}, key=len, reverse=True)
    _texts.clear()


_starts: list[int] = []
_ends: list[int] = []


def note_memory() -> None:
    """Look up what is mapped. Without `/proc` no integer is an address."""
    _texts.clear()
    _starts.clear()
    _ends.clear()
    try:
        maps = Path("/proc/self/maps").read_text(encoding="ascii", errors="replace")
    except OSError:
        return
    for line in maps.splitlines():
        start, _, end = line.partition(" ")[0].partition("-")
        _starts.append(int(start, 16))
        _ends.append(int(end, 16))


def _is_address(value: int) -> bool:
    at = bisect_right(_starts, value) - 1
    return at >= 0 and value < _ends[at]


def digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _address(found: re.Match[str]) -> str:
    base = 16 if found[0].startswith("0x") else 10
    return "<address>" if _is_address(int(found[0], base)) else found[0]


_texts: dict[str, str] = {}
"""Of strings: most stand in many places."""

_FRAME = ("'  File \"", "'Traceback (most recent")
_SUSPECT = re.compile(r"[0-9a-f]{8}")


def scalar(value: Any) -> str:
    """A value of a kind in `SCALARS` as text."""
    kind = type(value)
    if kind is str:
        text = _texts.get(value)
        if text is None:
            text = _texts[value] = _shortened(_cleaned(repr(value)))
        return text
    if kind is int and value >= _LOWEST and _is_address(value):
        return "an address"
    return _shortened(repr(value))


def _cleaned(text: str) -> str:
    """A text without what the next process has otherwise."""
    if text.startswith(_FRAME):
        return CALL_STACK
    if "/" in text:
        for home in _homes:
            text = text.replace(home, "<upstream>")
        text = text.replace(sys.prefix, "<prefix>")
        text = _within(text.replace(sys.base_prefix, "<python>"))
    if _SUSPECT.search(text):
        text = _UUID4.sub("<uuid>", text)
        text = _OBJECT_AT.sub("at <address>", text)
        text = _DECIMAL.sub(_address, _HEX.sub(_address, text))
    return text


def _within(text: str) -> str:
    """A path in one of the folders as such; it is quoted."""
    for folder in _FOLDERS:
        end = len(folder) + 1
        if text.startswith(folder, 1) and text[end] in "/'\"":
            return f"{text[0]}<folder>{text[end:]}"
    return text


def _shortened(text: str) -> str:
    if len(text) <= _LONG:
        return text
    return f"{text[: _LONG - 20]}… of {len(text)} {digest(text)}"
