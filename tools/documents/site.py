"""The site's sources: docs/ and the pages that lie elsewhere, with links that fit."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath

__all__ = ["ELSEWHERE", "stage"]

_ROOT = Path(__file__).resolve().parents[2]

ELSEWHERE = {
    "README.md": "start.md",
    "README.zh-CN.md": "start.zh-CN.md",
    "CHANGELOG.md": "changelog.md",
    "ascend_shims/simnpu/README.md": "rig-model.md",
}
"""Pages that have their place elsewhere in the repository, and on the site."""

_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")
_FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def stage(there: Path) -> None:
    """Fill an empty folder with what the generator reads.

    Raises:
        LookupError: a link leads to a file that is no page of the site.
    """
    shutil.copytree(_ROOT / "docs", there, dirs_exist_ok=True)
    pages = {f"docs/{name}": name for name in _pages(_ROOT / "docs")} | ELSEWHERE
    for source, page in pages.items():
        text = (_ROOT / source).read_text("utf-8")
        (there / page).write_text(_relinked(text, source, page, pages), "utf-8")


def _pages(folder: Path) -> list[str]:
    return [one.relative_to(folder).as_posix() for one in sorted(folder.rglob("*.md"))]


def _relinked(text: str, source: str, page: str, pages: dict[str, str]) -> str:
    """The text with links that lead from where the page is on the site."""

    def moved(found: re.Match[str]) -> str:
        link = found[1]
        if ":" in link:
            return link
        target = os.path.normpath(PurePosixPath(source).parent / link)
        place = pages.get(target, target.removeprefix("docs/"))
        if target not in pages and not target.startswith("docs/"):
            raise LookupError(f"{source} links to {link}, which is no page of the site")
        return os.path.relpath(place, PurePosixPath(page).parent)

    parts = []
    end = 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(moved, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(moved, text[end:])])
