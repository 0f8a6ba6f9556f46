"""The text of a file: how an expression is spelled, and which comment is nearest."""

from __future__ import annotations

import ast
import re

__all__ = ["Lines"]

_MOST = 600
"""Characters; more is an essay, not a reason."""

_WIDTH = 80

_MACHINE = re.compile(
    r"^(type:|noqa|pylint:|mypy:|ruff:|isort:|fmt:|yapf:|pragma|SPDX|-\*-|!|[-=#*~]+$)",
    re.I,
)
_TRAILING = re.compile(r"\s#\s*([^#\"']+)$")


class Lines:
    """The lines of one file."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def near(self, line: int, *others: ast.AST | None) -> str:
        """Of the statement in `line`: behind it, above it, or of other definitions.

        Args:
            others: what it puts there, the function that it stands in.
        """
        found = self._behind(line) or self._above(line)
        for other in others:
            if not found and other is not None:
                first = getattr(other, "lineno", 1)
                decorators = getattr(other, "decorator_list", [])
                first = min([first, *(one.lineno for one in decorators)])
                found = self._above(first) or _docstring(other)
        return found if len(found) <= _MOST else found[: _MOST - 1] + "…"

    def spelled(self, node: ast.AST, width: int = _WIDTH) -> str:
        """The text of an expression, on one line and cut to a width.

        As written where it is on one line: to write it anew takes a hundred times
        as long.
        """
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if first and first == last:
            # Offsets count bytes.
            line = self._line(first).encode()
            text = line[node.col_offset : node.end_col_offset].decode(errors="replace")  # type: ignore[attr-defined]
        else:
            text = ast.unparse(node)
        text = " ".join(text.split())
        return text if len(text) <= width else text[: width - 1] + "…"

    def _behind(self, line: int) -> str:
        found = _TRAILING.search(self._line(line))
        text = found[1].strip() if found else ""
        return "" if _MACHINE.match(text) else text

    def _above(self, line: int) -> str:
        kept: list[str] = []
        at = line - 1
        while at >= 1:
            text = self._line(at).strip()
            if not text.startswith("#"):
                break
            said = text.lstrip("#").strip()
            if _MACHINE.match(said):
                said = ""
            kept.append(said)
            at -= 1
        return " ".join(one for one in reversed(kept) if one)

    def _line(self, number: int) -> str:
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""


def _docstring(node: ast.AST) -> str:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return ""
    text = ast.get_docstring(node) or ""
    return " ".join(text.split("\n\n")[0].split())
