"""What `shims demo` ends with; tests/cli/test_schemas.py runs the whole of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import ascend_shims
from ascend_shims.cli import demo

CHECKS = (
    "tokens identical",
    "guard saw every step",
    "guard saw no stock step",
    "KV bases aligned while applied",
    "KV bases stock before and after",
    "stock objects back",
    "software NPU with graphs: tokens identical",
    "and without graph-manager it fails",
)


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("COLUMNS", "80")
    report = ascend_shims.status().as_dict()
    return {
        "checks": dict.fromkeys(CHECKS, True),
        "rig": {
            "graphs": [1, 2, 4, 8],
            "without_graph_manager": {"error": "StaleLengthsError"},
        },
        "kv_bases": {
            key: ["0x7fef92dd8040"] for key in ("stock", "applied", "reverted")
        },
        "tokens": [[210, 284, 71, 437, 180, 76, 221, 96]],
        "guarded_steps": 24,
        "steps": 24,
        "definitions": 26713,
        "digest": dict.fromkeys(("before", "after"), "be8edac889848632"),
        "differences": [],
        "report": {**report, "gaps": []},
    }


def _printed(result: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> list[str]:
    demo._print(result)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    return lines


def test_it_ends_with_what_came_of_it_and_what_is_next(
    result: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(demo, "which", lambda name: f"/bin/{name}")
    assert _printed(result, capsys)[-3:] == [
        "",
        "All 8 checks hold: shims work here, and leave nothing behind.",
        "Next: shims status   (what a new process would get)",
    ]
    result["checks"]["stock objects back"] = False
    result["checks"]["tokens identical"] = False
    lines = _printed(result, capsys)
    assert lines[-5:] == [
        "",
        "Not as it should be:",
        "  tokens identical",
        "  stock objects back after revert()",
        "Next: shims doctor   (what is wrong here)",
    ]
    assert "NO   stock objects back after revert()" in lines


def test_what_is_next_can_be_typed_without_the_environment(
    result: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """tools/demo does not put it on the PATH."""
    monkeypatch.setattr(demo, "which", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv" / "bin" / "python"))
    monkeypatch.chdir(tmp_path)
    assert _printed(result, capsys)[-1].startswith("Next: .venv/bin/shims status ")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    demo._print(result)
    words = " ".join(capsys.readouterr().out.split())
    assert f"Next: {tmp_path}/.venv/bin/shims status" in words


def test_every_check_of_which_the_screen_says_more_is_one() -> None:
    assert set(demo._SAID) <= set(CHECKS)
