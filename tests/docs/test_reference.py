"""What is made from code is as the code is, and the site can be built."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..fresh import LONG
from .pages import ROOT

pytestmark = pytest.mark.any_release

OFFLINE = (
    *("NewConnectionError", "Retrying (", "timed out", "Temporary failure in name"),
    *("No matching distribution found", "No module named venv", "ensurepip"),
)


def _tool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "docs", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=10 * LONG,
        check=False,
    )


def test_pages_are_as_the_code_is() -> None:
    done = _tool("--check")
    assert (done.returncode, done.stdout) == (0, ""), "run tools/docs --write"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    from documents import written

    yield written
    for module in [one for one in sys.modules if one.split(".")[0] == "documents"]:
        monkeypatch.delitem(sys.modules, module)


def test_a_page_that_is_not_is_named_and_renewed(
    written: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"a.md": lambda: "A\n", "reference/b.md": lambda: "B\n"}
    monkeypatch.setattr(written, "_DOCS", tmp_path)
    monkeypatch.setattr(written, "PAGES", made)
    (tmp_path / "a.md").write_text("A\n")
    assert written.stale() == ["reference/b.md"]
    assert written.renew() == ["reference/b.md"]
    assert (tmp_path / "reference" / "b.md").read_text() == "B\n"
    (tmp_path / "a.md").write_text("old\n")
    assert written.renew() == ["a.md"]
    assert written.stale() == []


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("commands", ["### shims status", "| `--watch SECONDS` |", "$ shims explain"]),
        ("variables", ["| `ASCEND_SHIMS_DISABLE` |", "| `ASCEND_SHIMS_SIM_MEMORY` |"]),
        ("registry", ["| `target` | name or list of name | required |", "## Patch"]),
        ("python", ["### apply()", "- `UnappliedError`: strict", "### Report"]),
    ],
)
def test_what_is_on_a_page(page: str, lines: list[str]) -> None:
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text("utf-8")
    assert [line for line in lines if line not in text] == []


def test_the_site(tmp_path: Path) -> None:
    done = _tool("--out", tmp_path / "site")
    if done.returncode and any(sign in done.stderr for sign in OFFLINE):
        pytest.skip("the package index does not give the generator")
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    assert done.stdout == f"{site / 'index.html'}\n"
    pages = {one.relative_to(site).as_posix() for one in site.rglob("*.html")}
    assert pages >= {
        "index.html",
        "start.html",
        "start.zh-CN.html",
        "bump-vllm.html",
        "changelog.html",
        "rig-model.html",
        "reference/commands.html",
    }
    index = (site / "index.html").read_text("utf-8")
    navigation = re.findall(r'toctree-l1.*?href="([^"]+)"', index)
    assert len(navigation) > 25
    assert [page for page in navigation if page not in pages] == []
    assert navigation[0] == "start.html"
    # Nothing is loaded from anywhere else.
    foreign = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//')
    for page in pages:
        assert foreign.findall((site / page).read_text("utf-8")) == [], page
    assert str(ROOT) not in index
