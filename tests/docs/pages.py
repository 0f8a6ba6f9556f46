"""The pages that people read, taken apart: links, headings, blocks of code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Block", "anchors", "blocks", "links", "name", "prose"]

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "README.zh-CN.md",
    ROOT / "CHANGELOG.md",
    ROOT / "ascend_shims" / "simnpu" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]

_FENCE = re.compile(
    r"(?:^[ ]*<!-- test: (?P<marker>.+?) -->\n\n?)?"
    r"^(?P<indent>[ ]*)```(?P<language>\S*)\n(?P<text>.*?)^[ ]*```$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"!?\[[^]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`[^`\n]*`")


@dataclass(frozen=True)
class Block:
    """One block of code."""

    page: str
    line: int
    language: str
    text: str
    marker: str | None
    """What a comment before it says of how it is tested."""

    @property
    def id(self) -> str:
        return f"{self.page}:{self.line}"


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in _FENCE.finditer(text):
        indent = len(found["indent"])
        lines = [line[indent:] for line in found["text"].splitlines(keepends=True)]
        line = text.count("\n", 0, found.start("language")) + 1
        marker = found["marker"]
        yield Block(name(page), line, found["language"], "".join(lines), marker)


def prose(page: Path) -> str:
    """Without blocks of code and comments."""
    text = _FENCE.sub("", page.read_text("utf-8"))
    return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)


def links(page: Path) -> list[str]:
    return _LINK.findall(_CODE.sub("code", prose(page)))


def anchors(page: Path) -> set[str]:
    """What a link may name after `#`: headings, as GitHub and the site spell them."""
    seen: Counter[str] = Counter()
    found = set()
    for title in re.findall(r"^#{1,6} (.+)$", prose(page), re.MULTILINE):
        spelled = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
        found.add(f"{spelled}-{seen[spelled]}" if seen[spelled] else spelled)
        seen[spelled] += 1
    return found
