"""What `tools/mutation` has found out is there for the next run, here or elsewhere."""

from __future__ import annotations

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from . import quickest_first

ROOT = Path(__file__).resolve().parent.parent
MODULE = "ascend_shims/engine/slot.py"
NAME = "ascend_shims.engine.slot"


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = spec_from_loader(
        "mutation", SourceFileLoader("mutation", str(ROOT / "tools" / "mutation"))
    )
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "COPY", tmp_path)
    monkeypatch.setattr(module, "NOTICED", tmp_path / "mutants" / "long-tests.json")
    monkeypatch.setattr(module, "RECORD", tmp_path / "record.json")
    return module


def meta(tool: ModuleType) -> Path:
    return Path(tool.COPY, "mutants", f"{MODULE}.meta")


def found(tool: ModuleType, codes: dict[str, int | None]) -> None:
    told: dict[str, Any] = {
        "exit_code_by_key": {f"{NAME}.{name}": code for name, code in codes.items()},
        "hash_by_function_name": {"x_read": "0f", "x_write": "1e"},
    }
    meta(tool).parent.mkdir(parents=True)
    meta(tool).write_text(json.dumps(told))


@pytest.mark.parametrize(
    ("most", "kept"),
    [(None, "bca"), ("100", "bca"), ("4", "bc"), ("1.5", "b"), ("0.1", "b")],
)
def test_the_quickest_come_first_and_the_slowest_are_left_out(
    most: str | None, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in "abc"]
    took = {"duration_by_test": {"a": 9.0, "b": 1.0, "c": 2.0}}
    (tmp_path / "mutmut-stats.json").write_text(json.dumps(took))
    monkeypatch.chdir(tmp_path)
    if most is not None:
        monkeypatch.setenv("MUTATION_SECONDS", most)
    quickest_first.pytest_collection_modifyitems(items)
    assert "".join(item.nodeid for item in items) == kept


CODES = {
    "x_read__mutmut_1": 1,
    "x_read__mutmut_2": 0,
    "x_read__mutmut_3": 33,
    "x_write__mutmut_1": None,
    "x_write__mutmut_2": -9,
}


def test_the_record_has_a_letter_a_mutant(tool: ModuleType) -> None:
    found(tool, CODES)
    tool.keep()
    assert json.loads(tool.RECORD.read_text()) == {
        MODULE: {"x_read": ["0f", "kst"], "x_write": ["1e", "-k"]}
    }
    assert len(tool.RECORD.read_text().splitlines()) == 6


def test_what_a_long_test_noticed_counts(tool: ModuleType) -> None:
    found(tool, CODES)
    tool.NOTICED.write_text(json.dumps({f"{NAME}.x_read__mutmut_2": 1}))
    tool.keep()
    assert json.loads(tool.RECORD.read_text())[MODULE]["x_read"] == ["0f", "kkt"]


def test_what_was_killed_is_known_the_next_time_and_the_rest_is_tried(
    tool: ModuleType,
) -> None:
    found(tool, CODES)
    tool.keep()
    meta(tool).unlink()
    tool.remembered()
    told = json.loads(meta(tool).read_text())
    assert told["exit_code_by_key"] == {
        f"{NAME}.x_read__mutmut_1": tool.KILLED,
        f"{NAME}.x_write__mutmut_2": tool.KILLED,
    }
    assert told["hash_by_function_name"] == {"x_read": "0f", "x_write": "1e"}


def test_what_mutmut_knows_itself_is_left_to_it(tool: ModuleType) -> None:
    found(tool, CODES)
    tool.keep()
    before = meta(tool).read_text()
    tool.remembered()
    assert meta(tool).read_text() == before


def test_the_record_of_this_project_is_one(tool: ModuleType) -> None:
    record = json.loads((ROOT / "docs" / "mutation.json").read_text())
    letters = {
        letter
        for functions in record.values()
        for _, row in functions.values()
        for letter in row
    }
    assert letters == set(tool.LETTERS.values()) or letters < set(tool.LETTERS.values())
    assert "k" in letters
