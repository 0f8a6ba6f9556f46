"""The page has every code and every key, and no others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import ascend_shims
from ascend_shims.doctor.switched import OURS

ROOT = Path(__file__).parents[2]
HOME = Path(ascend_shims.__file__).parent
PAGE = (ROOT / "docs" / "doctor.md").read_text("utf-8")
_MAKERS = {"ok", "notice", "problem", "make"}


def _codes(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            parts = node.args if node.func.id in _MAKERS else []
        elif isinstance(node, ast.Tuple) and len(node.elts) == 4:
            # Verdict, code and two sentences.
            parts = node.elts
            if not isinstance(parts[0], ast.Constant):
                continue
        if len(parts) > 1 and isinstance(parts[1], ast.Constant):
            yield str(parts[1].value)


def _section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def _listed(title: str) -> set[str]:
    rows = [line for line in _section(title).splitlines() if line.startswith("| `")]
    return {c for row in rows for c in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_every_code_is_on_the_page() -> None:
    files = sorted((HOME / "doctor").glob("*.py"))
    codes = {c for file in files for c in _codes(ast.parse(file.read_text("utf-8")))}
    assert len(codes) > 60
    assert _listed("Findings") == codes


def test_every_variable_that_something_reads_is_known() -> None:
    """What is not named in `doctor/switched.py` would be called unknown."""
    text = re.compile(r"ASCEND_SHIMS(?:_[A-Z]+)*\b(?!_)")
    files = [*HOME.rglob("*.py"), *(ROOT / "patches").glob("*.py")]
    found = {name for file in files for name in text.findall(file.read_text("utf-8"))}
    # Written as an example of what is none, or by tools that are no part of this.
    assert len(found) > 15
    assert {n for n in found if "SIM_" in n or "GUARD" in n or "RANKS" in n} <= OURS


@pytest.mark.parametrize("code", ["0", "1", "2"])
def test_exit_codes_are_on_the_page(code: str) -> None:
    assert re.search(rf"(?:Exit code {code}|\b{code}): ", PAGE)
