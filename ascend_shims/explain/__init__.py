"""What each state, verdict, error and finding means: one page a code, as text.

The pages are written in the Markdown files of this folder, one a group, and nowhere
else; `docs/codes.md` is made of them.
"""

from __future__ import annotations

from .pages import GROUPS, Group, Page, all_pages, as_markdown

__all__ = ["GROUPS", "Group", "Page", "all_pages", "as_markdown"]
