"""Reading the files of this folder.

A file begins with the group's title and a sentence about it. A page is a heading with
the code; then what it means, a paragraph that begins with `How:`, one that begins with
`Do:`, and a fenced example. `How:` and `Do:` are the same in every language. Pages in
another language lie in a folder of its name, and have no examples of their own: what is
shown is the English one, its sentences put into words as on a screen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from textwrap import fill

from ..words import ENGLISH, said

__all__ = ["GROUPS", "Group", "Page", "all_pages", "as_markdown"]

GROUPS = ("states", "verdicts", "breakages", "errors", "engine", "rig", "doctor")
"""The files, in the order in which one reads them."""

_WIDTH = 88
"""Columns of what is written by hand beside it."""
_SENTENCE = re.compile(r"^.*?(?:[.](?= |$)|。)")


@dataclass(frozen=True)
class Page:
    """What there is to say about one code."""

    code: str
    group: str
    meaning: str
    how: str
    """How one comes to it."""
    do: str
    example: str

    @property
    def first_sentence(self) -> str:
        found = _SENTENCE.match(self.meaning)
        return found.group() if found else self.meaning


@dataclass(frozen=True)
class Group:
    """Codes that are met in the same place."""

    name: str
    title: str
    about: str
    pages: tuple[Page, ...]


def all_pages(language: str = ENGLISH) -> tuple[Group, ...]:
    """Every page there is, by group; in English what a language has no page about."""
    english = tuple(_group(name, ENGLISH, {}) for name in GROUPS)
    if language == ENGLISH:
        return english
    examples = {page.code: page.example for one in english for page in one.pages}
    return tuple(_instead(one, _group(one.name, language, examples)) for one in english)


def _instead(english: Group, other: Group) -> Group:
    known = {page.code: page for page in other.pages}
    pages = tuple(known.get(page.code, page) for page in english.pages)
    return replace(other, pages=pages)


def _group(name: str, language: str, examples: Mapping[str, str]) -> Group:
    folder = files(__package__)
    if language != ENGLISH:
        folder = folder / language
    text = folder.joinpath(f"{name}.md").read_text("utf-8")
    head, *pages = re.split(r"^## ", text, flags=re.MULTILINE)
    title, _, about = head.removeprefix("# ").partition("\n")
    made = tuple(_page(name, page, examples) for page in pages)
    return Group(name, title.strip(), _joined(about), made)


def _page(group: str, text: str, examples: Mapping[str, str]) -> Page:
    code, _, rest = text.partition("\n")
    if code.strip() in examples:
        rest = f"{rest}```text\n{_in_words(examples[code.strip()])}\n```"
    prose, fence, example = rest.partition("```text\n")
    meaning, _, rest = prose.partition("\nHow: ")
    how, _, do = rest.partition("\nDo: ")
    meaning, how, do = map(_joined, (meaning, how, do))
    example = example.partition("\n```")[0]
    if not (meaning and how and do and fence and example):
        raise ValueError(f"the page {code!r} of {group}.md lacks a part")
    return Page(code.strip(), group, meaning, how, do, example)


def _in_words(example: str) -> str:
    """What is typed stays; what is answered is said in the language that is spoken."""
    return "\n".join(
        line if line.startswith("$ ") else _said(line) for line in example.splitlines()
    )


def _said(line: str) -> str:
    """As the command line puts it: a usage error's code comes behind its sentence."""
    sentence, code, rest = line.partition(" [usage]")
    return f"{said(sentence)}{code}{rest}" if code else said(line)


def _joined(text: str) -> str:
    # Between two Chinese characters a line's end is no space.
    text = re.sub(r"(?<=[\u3000-\uff60])\n(?=[\u3000-\uff60])", "", text)
    return " ".join(text.split())


# One document ------------------------------------------------------------------------


def as_markdown() -> str:
    """All pages for people who read them on a screen elsewhere."""
    groups = all_pages()
    parts = [
        "# Codes",
        "Every state, verdict, error and finding, what it means and what to do. "
        "`shims explain CODE` prints a page, `shims explain` lists them.",
        "<!-- Made by `python -m ascend_shims.explain > docs/codes.md` of the pages in "
        "ascend_shims/explain/*.md. -->",
        "\n".join(
            _filled(f"- [{one.title}](#{_anchor(one.title)}): {one.about}", "  ")
            for one in groups
        ),
    ]
    for group in groups:
        parts += [f"## {group.title}", group.about]
        for page in group.pages:
            parts += [f"### {page.code}", page.meaning]
            parts += [f"**How one comes to it.** {page.how}"]
            parts += [f"**What to do.** {page.do}"]
            parts += [f"```text\n{page.example}\n```"]
    return "\n\n".join(p if "\n" in p else _filled(p) for p in parts) + "\n"


def _filled(text: str, indent: str = "") -> str:
    return fill(
        text,
        _WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
