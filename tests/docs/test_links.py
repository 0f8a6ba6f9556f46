"""Every link leads somewhere, and every page can be come to."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from .pages import PAGES, ROOT, anchors, links, name, prose

pytestmark = pytest.mark.any_release

INDEX = ROOT / "docs" / "index.md"
IDS = [name(page) for page in PAGES]


def test_there_are_pages_and_links() -> None:
    assert len(PAGES) > 25
    assert sum(len(links(page)) for page in PAGES) > 90
    assert len(links(INDEX)) == len(set(links(INDEX))) > 25


def _faults(page: Path) -> list[str]:
    faults = []
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme:
            named = re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc)
            if parts.scheme != "https" or not named:
                faults.append(f"{link} is no https address")
            continue
        file = (page.parent / parts.path).resolve() if parts.path else page
        if not file.is_file():
            faults.append(f"{link}: no such file")
        elif parts.fragment and parts.fragment not in anchors(file):
            faults.append(f"{link}: no such heading")
    return faults


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links_lead_somewhere(page: Path) -> None:
    assert _faults(page) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[a](#one)", None),
        ("[a](#one-1)", None),
        ("[a](other.md#two-words-its)", None),
        ("[a](https://example.org/b#c)", None),
        ("`[a](gone.md)`", None),
        ("```text\n[a](gone.md)\n```", None),
        ("[a](#three)", "#three: no such heading"),
        ("[a](other.md#one)", "other.md#one: no such heading"),
        ("![a](gone.svg)", "gone.svg: no such file"),
        ("[a](.)", ".: no such file"),
        ("[a](http://example.org)", "http://example.org is no https address"),
        ("[a](https://example)", "https://example is no https address"),
    ],
)
def test_what_is_a_fault(text: str, fault: str | None, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# One\n\n## One\n\n{text}\n")
    (tmp_path / "other.md").write_text("# Two words: it's\n")
    assert _faults(page) == ([] if fault is None else [fault])


def test_every_page_is_in_the_index() -> None:
    listed = {(INDEX.parent / link).resolve() for link in links(INDEX)}
    assert [name(p) for p in PAGES if p != INDEX and p not in listed] == []


def test_the_index_begins_and_ends_as_one_reads() -> None:
    headings = re.findall(r"^## (.+)$", prose(INDEX), re.MULTILINE)
    assert headings == [
        "Start here",
        "Guides",
        "Commands in depth",
        "Reference",
        "How it works",
        "The project",
    ]


def test_the_picture_loads_nothing_and_tells_nothing_of_a_machine() -> None:
    text = (ROOT / "docs" / "images" / "status.svg").read_text("utf-8")
    picture = ElementTree.fromstring(text)
    shown = "\n".join(picture.itertext()).replace("\N{NO-BREAK SPACE}", " ")
    for line in ("shims status", "kv-cache", "shims drift --against", "identical"):
        assert line in shown
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)\S+|url\([^#]", text) == []
    assert re.findall(r"/(?:home|root|work|tmp|Users)/", text) == []


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_pictures_say_what_they_show(page: Path) -> None:
    pictures = re.findall(r"!\[([^]]*)\]\(", prose(page))
    assert [text for text in pictures if len(text) < 20] == []
    if page.name.startswith("README") and page.parent == ROOT:
        assert len(pictures) == 1
