"""`tools/matrix`: what it makes of what it saw; it goes on where it stopped."""

from __future__ import annotations

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from ascend_shims.registry import load

TOP = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tool() -> Any:
    loader = SourceFileLoader("tools_matrix", str(TOP / "tools" / "matrix"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


ALL = {"name": "all-gqa-graphs", "kind": "all", "model": "gqa", "mode": "graphs"}
EAGER = {**ALL, "name": "all-gqa-eager", "mode": "eager"}
WITHOUT = {
    **EAGER,
    "name": "without-a",
    "kind": "without",
    "gap": "a",
    "error": "PackedCacheError",
}
TOKENS = [[1, 2], [3, 4]]
STOCK = {"tokens": TOKENS, "error": None}
RAN = {
    "tokens": TOKENS,
    "graphs": [1, 2],
    "error": None,
    "states": {"a": "applied", "b": "version-skipped"},
    "seconds": 7.5,
}
FAILED = {**RAN, "tokens": [], "error": "OutOfMemoryError", "message": "none left\nb"}


@pytest.mark.parametrize(
    ("case", "result", "stock", "expected"),
    [
        (ALL, RAN, STOCK, ("ok", "")),
        (EAGER, {**RAN, "graphs": []}, STOCK, ("ok", "")),
        (ALL, {}, STOCK, ("missing", "not run")),
        (ALL, {"skipped": "no MLA"}, None, ("skipped", "no MLA")),
        (ALL, FAILED, STOCK, ("failed", "OutOfMemoryError: none left")),
        (ALL, {**RAN, "tokens": []}, STOCK, ("failed", "no tokens")),
        (ALL, {**RAN, "tokens": [[1], []]}, STOCK, ("failed", "no tokens")),
        (
            ALL,
            {**RAN, "tokens": [[1, 2], [3, 5]]},
            STOCK,
            ("failed", "other tokens than stock"),
        ),
        (ALL, RAN, None, ("failed", "there is no stock run to compare with")),
        (
            ALL,
            RAN,
            {"tokens": [], "error": "E"},
            ("failed", "there is no stock run to compare with"),
        ),
        (ALL, {**RAN, "graphs": []}, STOCK, ("failed", "captured graphs: []")),
        (EAGER, RAN, STOCK, ("failed", "captured graphs: [1, 2]")),
        (
            WITHOUT,
            {**FAILED, "error": "PackedCacheError"},
            None,
            ("ok", "fails with PackedCacheError"),
        ),
        (
            WITHOUT,
            FAILED,
            None,
            ("failed", "PackedCacheError was expected and OutOfMemoryError came"),
        ),
        (
            WITHOUT,
            RAN,
            None,
            ("failed", "PackedCacheError was expected and nothing came"),
        ),
    ],
)
def test_what_a_cell_is(
    tool: Any, case: Any, result: Any, stock: Any, expected: tuple[str, str]
) -> None:
    assert tool.verdict(case, result, stock) == expected


@pytest.fixture
def kept(tool: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(tool, "KEPT", tmp_path)
    return tool.Kept


def test_an_interrupted_run_goes_on(kept: Any, tmp_path: Path) -> None:
    first = kept("code", anew=False)
    first.add({"release": "1", "case": "all-gqa-graphs", **RAN})
    with (tmp_path / "code.jsonl").open("a") as file:
        file.write('{"release": "1", "case": "al')
    again = kept("code", anew=False)
    assert list(again.results) == [("1", "all-gqa-graphs")]
    assert kept("other code", anew=False).results == {}
    assert kept("code", anew=True).results == {}


def test_the_page_is_made_of_the_cells(tool: Any, kept: Any) -> None:
    seen = kept("code", anew=False)
    stock = {"name": "stock-gqa", "kind": "stock", "model": "gqa", "mode": "eager"}
    for release in ("1", "2"):
        seen.add({"release": release, "case": "stock-gqa", **STOCK})
    seen.add({"release": "1", "case": "all-gqa-graphs", **RAN})
    seen.add({"release": "2", "case": "all-gqa-graphs", **FAILED})
    cells = tool.cells([stock, ALL], seen, ["1", "2"])
    assert [(c["gap"], c["release"], c["verdict"], c["state"]) for c in cells] == [
        ("a", "1", "ok", "applied"),
        ("b", "1", "ok", "version-skipped"),
        ("a", "2", "failed", "applied"),
        ("b", "2", "failed", "version-skipped"),
    ]
    text = tool.page(cells, ["1", "2"], ["a", "b"])
    assert "| 1 | ✓ |" in text
    assert "| 2 | ✗ |" in text
    assert "| b | ✓ version-skipped | ✗ version-skipped |" in text
    assert "- 2, gqa graphs, all on: OutOfMemoryError: none left" in text
    assert "Nothing." not in text


def test_what_was_written_holds_for_every_gap_and_release() -> None:
    """The page and its data go with the registry: no gap is without cells."""
    data = json.loads((TOP / "docs" / "compatibility.json").read_text("utf-8"))
    found = {(c["gap"], c["release"]) for c in data["cells"] if c["kind"] == "all"}
    gaps = [gap.id for gap in load(None).gaps]
    assert found >= {(gap, one) for gap in gaps for one in data["releases"]}
    assert {c["verdict"] for c in data["cells"]} <= {"ok", "skipped"}
