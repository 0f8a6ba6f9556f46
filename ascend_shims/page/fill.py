"""The page as HTML: the template with styles, script and data put into it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from importlib.resources import files

import msgspec

from .model import Page

__all__ = ["filled", "script_safe"]

_POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""Nothing is loaded, and nothing runs but the very texts that are put in here."""


def filled(page: Page) -> str:
    """The whole page."""
    style, script = _read("page.css"), _read("page.js")
    policy = _POLICY.format(script=_named(script), style=_named(style))
    data = script_safe(msgspec.json.encode(page).decode())
    parts = {"policy": policy, "style": style, "script": script, "data": data}
    return _put(_read("page.html"), parts)


def script_safe(text: str) -> str:
    """JSON with the same meaning that nothing in a page can take for its own.

    Without `<` there is neither `</script>` nor `<!--`, and the two line ends that
    are of JSON and were not of JavaScript are spelled out.
    """
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _put(template: str, parts: Mapping[str, str]) -> str:
    """In one pass: what looks like a place in the data is data."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def _named(text: str) -> str:
    """A text as a policy names it, by its hash."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")
