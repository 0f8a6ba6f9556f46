"""What `tools/mutation` has found out is there for the next run, here or elsewhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

from .each_mutant import JOBS, TASKS, TOLD, Order

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
    monkeypatch.setattr(module, "STATISTICS", tmp_path / "statistics.json")
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


TOOK = {"a": 9.0, "b": 1.0, "c": 2.0}


@pytest.mark.parametrize(
    ("most", "known", "kept"),
    [
        (None, [], "bca"),
        (None, ["c"], "cba"),
        (None, ["a", "c"], "acb"),
        (100, [], "bca"),
        (4, [], "bc"),
        (1.5, [], "b"),
        (0.1, [], "b"),
        (0.1, ["a"], "a"),
        (1.5, ["a", "elsewhere"], "ab"),
    ],
)
def test_what_noticed_before_comes_first_then_the_quickest(
    most: float | None, known: list[str], kept: str
) -> None:
    order = Order({"m.f": ["a", "b", "c"], "m.g": ["b"]}, most, TOOK)
    for test in reversed(known):
        order.learn("m.f__mutmut_1", test)
    assert order.of("m.f__mutmut_2") == ("m.f__mutmut_2", list(kept))
    assert order.of("m.g__mutmut_1") == ("m.g__mutmut_1", ["b"])


def test_who_noticed_last_is_asked_first() -> None:
    order = Order({"m.f": ["a", "b", "c"]}, None, TOOK)
    for test in ("a", "c", "a"):
        order.learn("m.f__mutmut_1", test)
    assert order.noticed == {"m.f": ["a", "c"]}


def test_all_tests_run_once_unchanged_whatever_the_number_of_parts() -> None:
    order = Order({"m.f": ["a", "b"], "m.g": ["b", "c"]})
    parts = list(order.unchanged("nothing", 2))
    assert [name for name, _ in parts] == ["nothing", "nothing"]
    assert sorted(test for _, tests in parts for test in tests) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (None, "abcd"),
        (("m.py", 3, 4), "acd"),
        (("m.py", 5, 5), "d"),
        (("other.py", 3, 4), "d"),
    ],
)
def test_a_mutant_meets_those_that_execute_its_lines(
    lines: tuple[str, int, int] | None, kept: str
) -> None:
    order = Order({"m.f": ["a", "b", "c", "d"]}, changed={"m.f__mutmut_1": lines})
    assert order.of("m.f__mutmut_1")[1] == list("abcd")
    # Of `d`, which did not bear to be traced, nothing is known.
    every: dict[str, set[int]] = {test: set() for test in "abc"}
    order.executed = {"": every, "m.py": {"a": {1, 3}, "b": {1}, "c": {4}}}
    assert order.of("m.f__mutmut_1")[1] == list(kept)


PROJECT = {
    "thing.py": """
        import os, time

        def changed(name):
            return os.environ.get("MUTANT_UNDER_TEST") == f"thing.{name}"

        def double(x):
            if changed("double__mutmut_1"):
                return x
            if changed("double__mutmut_5") or changed("double__mutmut_6"):
                return 3
            if changed("double__mutmut_3") and x:
                raise SystemExit(0)
            if changed("double__mutmut_4") and x:
                os._exit(7)
            return 2 * x
    """,
    "test_thing.py": """
        import pytest
        from thing import double

        @pytest.fixture(scope="module")
        def two():
            yield 2

        def test_zero(two):
            assert double(0) == 0

        def test_two(two, tmp_path):
            assert double(two) == 4
            assert "mutant-" in str(tmp_path)
    """,
    "mutmut/__init__.py": "",
    "mutmut/mutation/__init__.py": "",
    "mutmut/mutation/trampoline.py": """
        import os

        def set_mutant_under_test(name):
            os.environ["MUTANT_UNDER_TEST"] = name
    """,
}
"""A project of two tests, and in mutmut's place what the plugin asks of it."""

REACH = {"thing.double": ["test_thing.py::test_zero", "test_thing.py::test_two"]}


def _meet(folder: Path, **files: str) -> list[Any]:
    for name, text in {**PROJECT, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    mutants = {f"thing.double__mutmut_{number}": None for number in (1, 2, 3, 4)}
    # What nobody executes nobody can notice.
    mutants["thing.double__mutmut_5"] = ["thing.py", 20, 20]  # type: ignore[assignment]
    mutants["thing.double__mutmut_6"] = ["thing.py", 5, 5]  # type: ignore[assignment]
    tasks = folder / "tasks.json"
    tasks.write_text(json.dumps({"mutants": mutants, "tests": REACH, "most": None}))
    (folder / "thing.py.meta").touch()
    temporary = folder / "temporary"
    temporary.mkdir()
    read, write = os.pipe()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "--rootdir", "."),
            *("-p", "no:cacheprovider", "-p", "tests.each_mutant", "test_thing.py"),
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
            "TMPDIR": str(temporary),
            TASKS: str(tasks),
            TOLD: str(write),
            JOBS: "2",
        },
        pass_fds=[write],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    os.close(write)
    with os.fdopen(read) as told:
        found = [json.loads(line) for line in told]
    assert found, done.stdout + done.stderr
    return sorted(found)


def test_each_mutant_meets_its_tests_in_a_child(tmp_path: Path) -> None:
    two = "test_thing.py::test_two"
    *found, last = _meet(tmp_path)
    # Which test notices it depends on what was noticed before.
    assert last[:2] == ["thing.double__mutmut_6", 1]
    assert found == [
        ["nothing", 0, None],
        ["nothing", 0, None],
        ["thing.double__mutmut_1", 1, two],
        ["thing.double__mutmut_2", 0, None],
        ["thing.double__mutmut_3", 1, two],
        ["thing.double__mutmut_4", 7, None],
        ["thing.double__mutmut_5", 0, None],
    ]
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_fails_anyway_says_nothing_of_a_change(tmp_path: Path) -> None:
    broken = PROJECT["test_thing.py"].replace("== 4", "== 5")
    assert _meet(tmp_path, **{"test_thing.py": broken}) == [
        ["nothing", 0, None],
        ["nothing", 1, "test_thing.py::test_two"],
    ]


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


def test_what_was_found_out_is_kept_where_mutmut_has_it(tool: ModuleType) -> None:
    found(tool, CODES)
    tool.settled({f"{NAME}.x_read__mutmut_2": 1, "of.another.x__mutmut_1": 1})
    tool.keep()
    assert json.loads(tool.RECORD.read_text())[MODULE]["x_read"] == ["0f", "kkt"]


def test_a_mutant_that_no_test_reaches_has_none(tool: ModuleType) -> None:
    told = {"tests_by_mangled_function_name": {f"{NAME}.x_read": []}}
    tool.STATISTICS.write_text(json.dumps(told))
    mutants = [f"{NAME}.x_read__mutmut_1", f"{NAME}.x_write__mutmut_1"]
    assert tool.tried(mutants, [], 1) == dict.fromkeys(mutants, 33)


def _met(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, *lines: Any) -> list[Any]:
    given: list[Any] = []

    def met(tasks: Path, *_: object) -> Any:
        given.append(json.loads(tasks.read_text()))
        yield from lines

    monkeypatch.setattr(tool, "met", met)
    monkeypatch.setattr(tool, "changes", lambda _: {f"{NAME}.x_read__mutmut_1": LINES})
    return given


LINES = ["slot.py", 3, 4]


def test_each_function_has_its_tests_and_what_is_said_is_kept(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(tool, CODES)
    reach = {f"{NAME}.x_read": ["a", "b"], f"{NAME}.x_gone": ["c"]}
    tool.STATISTICS.write_text(json.dumps({"tests_by_mangled_function_name": reach}))
    one, other = f"{NAME}.x_read__mutmut_1", f"{NAME}.x_read__mutmut_2"
    lines = [("nothing", 0, None), (one, 1, "a"), (other, 0, None)]
    given = _met(tool, monkeypatch, *lines)
    assert tool.tried([one, other], [], 1, most=5) == {one: 1, other: 0}
    assert given == [
        {
            "mutants": {one: LINES, other: None},
            "tests": {f"{NAME}.x_read": ["a", "b"]},
            "most": 5,
        }
    ]


MUTATED = """\
def x_f__mutmut_orig(a):
    if a:
        return [
            a,
            1,
        ]
    for one in a:
        print(one)

def x_f__mutmut_1(a):
    if not a:
        return [
            a,
            1,
        ]
    for one in a:
        print(one)

def x_f__mutmut_2(a):
    if a:
        return [
            a,
            2,
        ]
    for one in a:
        print(one)

def x_f__mutmut_3(a):
    if a:
        return [
            a,
            1,
        ]
    for one in a:
        print(None)

def x_f__mutmut_4(a):
    if a:
        return [
            a,
        ]
    for one in a:
        print(one)

def x_f__mutmut_5(a):
    if a:
        return [
            a,
            1,
        ]
    for one in None:
        print(one)
"""


def test_what_a_mutant_changes_is_the_smallest_statement(tool: ModuleType) -> None:
    file = tool.COPY / "mutants" / "m" / "n.py"
    file.parent.mkdir(parents=True)
    file.write_text(MUTATED)
    mutants = [f"m.n.x_f__mutmut_{number}" for number in range(1, 7)]
    assert tool.changes(mutants) == {
        "m.n.x_f__mutmut_1": ("m/n.py", 2, 2),
        "m.n.x_f__mutmut_2": ("m/n.py", 3, 6),
        "m.n.x_f__mutmut_3": ("m/n.py", 8, 8),
        "m.n.x_f__mutmut_5": ("m/n.py", 7, 7),
    }


def test_tests_that_fail_with_nothing_changed_end_it(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach = {f"{NAME}.x_read": ["a"]}
    tool.STATISTICS.write_text(json.dumps({"tests_by_mangled_function_name": reach}))
    _met(tool, monkeypatch, ("nothing", 1, "a"))
    with pytest.raises(SystemExit, match="with nothing changed, a fails"):
        tool.tried([f"{NAME}.x_read__mutmut_1"], [], 1)


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
