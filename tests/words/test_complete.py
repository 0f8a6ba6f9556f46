"""Whatever a person may read has its words, in each language the same keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ascend_shims.explain import all_pages
from ascend_shims.registry import load as load_registry
from ascend_shims.words import speaking
from ascend_shims.words.catalogue import FILES, HOLE

from .collecting import PACKAGE, helps, may_be_said, sources, texts
from .not_said import is_said

FOLDER = PACKAGE / "words" / "zh_CN"
ENTRIES = {
    name: json.loads((FOLDER / f"{name}.json").read_text("utf-8")) for name in FILES
}
KNOWN = {text: said for entries in ENTRIES.values() for text, said in entries.items()}

SOURCES = [path.relative_to(PACKAGE) for path in sources()]

PLURALS = {"problems", "notices", "else", "files", "count2"}
"""Holes for the end of an English plural, which Chinese does without."""


def _said_in(path: Path) -> list[str]:
    file = path.relative_to(PACKAGE).as_posix()
    return [text for _, text in texts(path) if is_said(file, text)]


def _is_typed(text: str) -> bool:
    """A call in an example, or a file, which is the same in all languages."""
    return bool(re.match(r"shims [a-z-]|eval |~/|[$] ", text))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.as_posix())
def test_every_sentence_of_the_source_has_an_entry(path: Path) -> None:
    missing = [text for text in _said_in(PACKAGE / path) if text not in KNOWN]
    assert missing == [], (
        "add each to ascend_shims/words/zh_CN/messages.json, or to tests/words/"
        "not_said.py with the reason why nobody reads it"
    )


def test_sentences_were_found_at_all() -> None:
    found = [text for path in sources() for text in _said_in(path)]
    assert len(found) > 900
    assert "switched off by {said_by}" in found


def test_every_help_text_has_an_entry() -> None:
    found = [text for text in helps() if text and not _is_typed(text)]
    assert len(found) > 150
    assert [text for text in found if text not in KNOWN] == []


def test_what_our_registry_says_has_an_entry() -> None:
    found = list(_registry_texts())
    assert len(found) > 50
    assert [text for text in found if text not in ENTRIES["registry"]] == []
    assert sorted(set(ENTRIES["registry"]) - set(found)) == []


def _registry_texts() -> Iterator[str]:
    for gap in load_registry().gaps:
        for text in (gap.title, gap.why, gap.remove_when, gap.unpatched, gap.traced):
            if text:
                yield " ".join(text.split())
        yield from (sign.says for sign in gap.removal_probe)


def test_no_entry_is_left_of_what_nobody_says_any_more() -> None:
    said = {text for path in sources() for text in _said_in(path)} | set(helps())
    prose = {text for text in ENTRIES["messages"] if may_be_said(text)}
    assert sorted(prose - said) == []


def test_no_text_has_two_entries() -> None:
    assert sum(map(len, ENTRIES.values())) == len(KNOWN)


@pytest.mark.parametrize("name", FILES)
def test_a_translation_has_the_holes_of_its_text(name: str) -> None:
    assert len(ENTRIES[name]) > 40
    for text, translated in ENTRIES[name].items():
        there, here = HOLE.findall(text), HOLE.findall(translated)
        assert len(set(there)) == len(there), text
        assert set(here) <= set(there), text
        assert set(there) - set(here) <= PLURALS, text
        assert len(here) == len(set(here)), text


def test_holes_without_anything_between_them_stay_together() -> None:
    """Where one of them ends cannot be told from a finished text."""
    for text, translated in KNOWN.items():
        for pair in re.findall(r"(?=(\{[a-z_0-9]+\}\{[a-z_0-9]+\}))", text):
            plural = HOLE.findall(pair)[1] in PLURALS
            assert plural or pair in translated, text


def test_translations_are_chinese() -> None:
    plain = [
        text
        for text, translated in {**ENTRIES["messages"], **ENTRIES["registry"]}.items()
        if not re.search(r"[\u3000-\uff60]", translated) and translated != text
    ]
    assert plain == []
    assert sum(a == b for a, b in KNOWN.items()) < 40


# Pages ----------------------------------------------------------------------------


def test_pages_are_about_the_same_codes() -> None:
    english = [(g.name, p.code) for g in all_pages() for p in g.pages]
    written = [
        (path.stem, code)
        for path in sorted((PACKAGE / "explain" / "zh_CN").glob("*.md"))
        for code in re.findall(r"^## (.*)$", path.read_text("utf-8"), re.MULTILINE)
    ]
    assert len(english) > 150
    assert sorted(written) == sorted(english)


def test_pages_have_the_commands_of_the_english_ones() -> None:
    """What is typed is no matter of language."""
    other = {p.code: p for g in all_pages("zh_CN") for p in g.pages}
    for group in all_pages():
        for page in group.pages:
            for part in ("meaning", "how", "do"):
                there, here = getattr(page, part), getattr(other[page.code], part)
                missing = _commands(there) - _commands(here)
                assert not missing, (page.code, part, missing)
                assert re.search(r"[\u3000-\uff60]", here), (page.code, part)


def _commands(text: str) -> set[str]:
    """What is between backticks, but for names that may be said in words."""
    return {
        " ".join(one.split())
        for one in re.findall(r"`([^`]*)`", text)
        if " " in " ".join(one.split()) or "=" in one
    }


def test_an_example_is_said_in_words() -> None:
    with speaking("zh_CN"):
        pages = {p.code: p for g in all_pages("zh_CN") for p in g.pages}
    off = pages["off"].example.splitlines()
    assert off[0].startswith("$ ASCEND_SHIMS_DISABLE=graph-manager shims status")
    assert off[1:] == [
        "GAP            在新进程中        原因",
        "graph-manager  off               被 ASCEND_SHIMS_DISABLE 关闭",
    ]


def test_program_output_has_no_chinese_pages() -> None:
    first = next(iter(all_pages("en")))
    assert first.title == "States"
    assert first.pages[0].first_sentence.startswith("The gap is in force")
