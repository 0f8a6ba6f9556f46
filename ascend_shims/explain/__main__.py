"""`python -m ascend_shims.explain > docs/codes.md`: all pages as one document."""

from __future__ import annotations

from .pages import as_markdown

if __name__ == "__main__":
    print(as_markdown(), end="")
