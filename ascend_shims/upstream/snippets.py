"""Calls found in text, to tell which files are worth parsing.

A release has hundreds of files that construct a common layer; the handful whose
call could fail is found by parsing the calls alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from ascend_shims.upstream.facts.signature import Shape, dropping, launched, shape_of

__all__ = ["call_shapes", "may_hold"]

_LONGEST = 20_000
"""Bytes of one call."""

_OPEN, _CLOSE = b"([{", b")]}"
_TOKEN = re.compile(rb"\"\"\"|'''|\"|'|#|[\[\](){}]")


def may_hold(text: bytes, name: str, wanted: Callable[[Shape], bool]) -> bool:
    """Whether the file may contain a call of `name` with a wanted shape."""
    word = re.escape(name.encode())
    # Held in a variable, bound to some arguments or imported under another name.
    indirect = (
        rb"(?:=|partial\(|\belse|\bif)\s*(?:\w+\.)*" + word + rb"\b(?!\s*[(\[=.])"
    )
    if re.search(indirect, text) or re.search(rb"\b" + word + rb"\s+as\s", text):
        return True
    return any(
        shape is None or wanted(shape) or wanted(dropping(shape, 1))
        for shape in call_shapes(text, name)
    )


def call_shapes(text: bytes, name: str) -> Iterator[Shape | None]:
    """Shapes of the calls of `name`; `None` for one that cannot be read so."""
    word = re.escape(name.encode())
    for found in re.finditer(rb"(?<!\w)" + word + rb"\s*([(\[])", text):
        before = text[max(0, found.start() - 8) : found.start()].split()
        if before and before[-1] in (b"def", b"class"):
            continue
        start = found.start(1)
        end = _closing(text, start)
        launch = text[start : start + 1] == b"["
        if end is not None and launch:
            rest = re.compile(rb"\s*\(").match(text, end)
            if rest is None:
                continue
            start = rest.end() - 1
            end = _closing(text, start)
        shape = None if end is None else _shape(text[start:end])
        yield launched(shape) if shape is not None and launch else shape


def _shape(arguments: bytes) -> Shape | None:
    try:
        call = ast.parse(b"f" + arguments, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return shape_of(call) if isinstance(call, ast.Call) else None


def _closing(text: bytes, start: int) -> int | None:
    """The end of the bracket that opens at `start`."""
    depth, at, limit = 0, start, start + _LONGEST
    while True:
        found = _TOKEN.search(text, at, limit)
        if found is None:
            return None
        token, at = found.group(), found.end()
        if token in _OPEN:
            depth += 1
        elif token in _CLOSE:
            depth -= 1
            if not depth:
                return at
        elif token == b"#":
            line = text.find(b"\n", at)
            at = line if line >= 0 else limit
        else:
            end = re.compile(rb"(?s)(?:\\.|(?!" + token + rb").)*" + token).match(
                text, at, limit
            )
            if end is None:
                return None
            at = end.end()
