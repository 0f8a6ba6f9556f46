"""The pages that are made from code, and whether they are as the code is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ascend_shims import explain

from . import commands, formats, interface, variables

__all__ = ["PAGES", "renew", "stale"]

_DOCS = Path(__file__).resolve().parents[2] / "docs"

PAGES: dict[str, Callable[[], str]] = {
    "codes.md": explain.as_markdown,
    "reference/commands.md": commands.page,
    "reference/python.md": interface.page,
    "reference/registry.md": formats.page,
    "reference/variables.md": variables.page,
}
"""Below docs/: what makes each."""


def stale() -> list[str]:
    """Pages that are not what would be made now."""
    return [name for name, make in PAGES.items() if _there(_DOCS / name) != make()]


def renew() -> list[str]:
    """Write those anew, and name them."""
    changed = stale()
    for name in changed:
        file = _DOCS / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(PAGES[name](), "utf-8")
    return changed


def _there(file: Path) -> str | None:
    return file.read_text("utf-8") if file.exists() else None
