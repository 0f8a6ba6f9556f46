"""Both READMEs are one page: sections, commands, links and code are the same."""

from __future__ import annotations

import re

import pytest

from .pages import ROOT, blocks, links, prose

pytestmark = pytest.mark.any_release

ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"

SECTIONS = {
    "ascend-shims": "ascend-shims",
    "Two commands": "两条命令",
    "A first success in five minutes": "五分钟上手",
    "In your own program": "在自己的程序里使用",
    "Switching one off": "关闭某一个",
    "What you might want next": "接下来",
    "Documentation": "文档",
}


def test_each_links_to_the_other_first() -> None:
    assert links(ENGLISH)[0] == "README.zh-CN.md"
    assert links(CHINESE)[0] == "README.md"
    for page in (ENGLISH, CHINESE):
        first = page.read_text("utf-8").splitlines()[0]
        assert links(page)[0] in first


def test_sections_are_the_same() -> None:
    found = [
        re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
        for page in (ENGLISH, CHINESE)
    ]
    assert found == [[*SECTIONS], [*SECTIONS.values()]]


def test_blocks_are_the_same() -> None:
    first, second = (
        [(one.language, one.text) for one in blocks(page)]
        for page in (ENGLISH, CHINESE)
    )
    assert len(first) > 5
    assert first == second


def test_links_are_the_same() -> None:
    assert links(ENGLISH)[1:] == links(CHINESE)[1:]


def test_rows_are_about_the_same() -> None:
    """First cells of variables, and commands of what comes next."""
    first, second = (
        re.findall(r"^\| .*$", prose(page), re.MULTILINE) for page in (ENGLISH, CHINESE)
    )
    assert len(first) > 15
    names = re.compile(r"`(?:ASCEND_SHIMS\w*|shims [^`]*|tools/[^`]*)(?:=\w+)?`")
    assert [names.findall(row) for row in first] == [
        names.findall(row) for row in second
    ]


def test_it_is_chinese() -> None:
    text = prose(CHINESE)
    assert len(re.findall(r"[\u4e00-\u9fff]", text)) > 800
    # A full stop of the other script is a slip of the hand.
    assert re.findall(r"[\u4e00-\u9fff][,;.](?: |$)", text, re.MULTILINE) == []
