"""The page as HTML: nothing in the data leaves it, and nothing is loaded."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser

import msgspec
import pytest

from ascend_shims.page.fill import filled, script_safe
from ascend_shims.page.model import Page

from .conftest import BREAKOUT


class _Seen(HTMLParser):
    """Elements as a browser would find them, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": []}
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag if tag in self.texts else ""
        if self._inside:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._inside][-1] += data


@pytest.mark.parametrize(
    "text",
    [
        "</script>",
        "</SCRIPT >",
        "<!-- <script>",
        "]]>",
        "a & b &amp; &lt;",
        "\u2028 and \u2029",
        "{{data}} {{script}}",
        "\\u003c is no sign",
        "\0 \x7f \ud7ff 中文 🙂",
        "\"quoted\" \\ and 'so'",
    ],
)
def test_any_text_survives_and_none_gets_out(text: str) -> None:
    safe = script_safe(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(safe) == {text: text}
    assert not set(safe) & set("<>&\u2028\u2029")


def test_the_data_is_the_page(page: Page) -> None:
    html = filled(page)
    seen = _Seen(html)
    data, script = seen.texts["script"]
    assert msgspec.json.decode(data, type=Page) == page
    assert BREAKOUT in json.loads(data)["entries"][0]["why"]
    assert script.lstrip().startswith('"use strict";')
    assert BREAKOUT not in html
    # A place of the template in the data stays what it is.
    assert data.count("{{data}}") >= 2


def test_the_policy_allows_what_is_there_and_nothing_else(page: Page) -> None:
    seen = _Seen(filled(page))
    policies = [
        attributes["content"]
        for tag, attributes in seen.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert len(policies) == 1
    policy = dict(part.strip().split(" ", 1) for part in (policies[0] or "").split(";"))
    (style,), script = seen.texts["style"], seen.texts["script"][1]

    def named(text: str) -> str:
        digest = hashlib.sha256(text.encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    assert policy == {
        "default-src": "'none'",
        "script-src": named(script),
        "style-src": named(style),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_nothing_is_loaded_from_anywhere(page: Page) -> None:
    html = filled(page)
    seen = _Seen(html)
    for tag, attributes in seen.tags:
        assert tag not in ("img", "iframe", "object", "embed", "base")
        assert not attributes.keys() & {"src", "srcset", "style", "action", "onclick"}
        assert (attributes.get("href") or "#")[:1] == "#" or (
            tag == "link" and attributes["href"] == "data:,"
        )
    styles, script = seen.texts["style"][0], seen.texts["script"][1]
    assert not re.search(r"url\(|@import", styles)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|fetch\(|XMLHttp"
        r"|localStorage|sessionStorage|cookie|https?:",
        script,
    )


def test_the_page_is_said_to_be_what_it_is(page: Page) -> None:
    seen = _Seen(filled(page))
    assert ("html", {"lang": "en"}) in seen.tags
    ids = [attributes["id"] for _, attributes in seen.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    (skip,) = [a for tag, a in seen.tags if tag == "a" and a.get("class") == "skip"]
    assert (skip["href"] or "")[1:] in ids


def test_only_the_time_differs(page_of: Callable[..., Page]) -> None:
    one, two = (filled(page_of(made=f"2000-01-0{n}")) for n in (1, 2))
    assert one != two
    assert one.replace("2000-01-01", "2000-01-02") == two
