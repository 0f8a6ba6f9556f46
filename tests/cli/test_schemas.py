"""What every command prints with `--json` is of the form that is published."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

import ascend_shims
from ascend_shims.cli import main
from ascend_shims.cli.app import shims as root
from ascend_shims.guard.config import ReportSettings
from ascend_shims.guard.report import Report
from ascend_shims.schemas import FOLDER, names, schema_text
from ascend_shims.schemas.made import made
from ascend_shims.states import State

from ..fresh import run
from ..upstream.repositories import commit_all, git
from .test_drift import index  # noqa: F401
from .test_hostile import LATER, _impostor

LINES = {"guard-report", "log-line"}
"""Written by processes, not by a command."""
DOCUMENTS = Path(__file__).parents[2] / "docs" / "json.md"


def commands() -> set[str]:
    """All that take `--json`, as click knows them."""
    context = click.Context(root)
    return {
        name
        for name in root.list_commands(context)
        if (command := root.get_command(context, name)) is not None
        and any("--json" in one.opts for one in command.params)
    }


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema_text(name)))


def valid(name: str, document: Any) -> Any:
    """`document`, which is of the form called `name`, and no looser one."""
    check = validator(name)
    found = [f"{one.json_path}: {one.message}" for one in check.iter_errors(document)]
    assert found == []
    for key in document:
        assert not check.is_valid({k: v for k, v in document.items() if k != key}), key
    assert not check.is_valid({**document, "further": 1})
    return document


# The schemas themselves


def test_every_command_has_one_and_nothing_else_has() -> None:
    assert len(commands()) > 13
    assert set(names()) == commands() | LINES


def test_the_committed_copies_are_those_of_the_types() -> None:
    fresh = made()
    assert set(fresh) == set(names())
    for name, text in fresh.items():
        assert (FOLDER / f"{name}.json").read_text("utf-8") == text, (
            "python -m ascend_shims.schemas.made --write"
        )


@pytest.mark.parametrize("name", names())
def test_it_is_a_schema_and_strict(name: str) -> None:
    document = json.loads(schema_text(name))
    Draft202012Validator.check_schema(document)
    assert document["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    objects = [one for one in document["$defs"].values() if "properties" in one]
    assert objects
    for one in objects:
        assert one["additionalProperties"] is False
        assert set(one["required"]) <= set(one["properties"])


def test_states_are_all_of_them() -> None:
    (states,) = (
        one["enum"]
        for name, one in json.loads(schema_text("status"))["$defs"].items()
        if name == "State"
    )
    assert sorted(states) == sorted(state.value for state in State)


def test_the_command_prints_them(shims: Any) -> None:
    assert shims("schema").stdout.split() == names()
    assert shims("schema", "drift").stdout == schema_text("drift")
    done = shims("schema", "dirft")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == (
        "Error: Invalid value: there is no schema of 'dirft'; did you mean drift? "
        "[usage]"
    )
    with pytest.raises(KeyError, match="dirft"):
        schema_text("dirft")


def test_the_page_has_an_example_of_each_that_is_valid() -> None:
    text = DOCUMENTS.read_text("utf-8")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    examples = {
        part.split("\n", 1)[0].strip("` "): re.findall(r"```json\n(.*?)```", part, re.S)
        for part in parts
    }
    assert set(names()) <= set(examples)
    for name in names():
        (example,) = examples[name]
        valid(name, json.loads(example))


# Each command, really run


Run = Callable[..., Any]


@pytest.fixture
def told(
    environ: dict[str, str],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run a command that is to end with `code`; what it says, once it is valid.

    In this process, which has the project's folder and variables.
    """
    for name in os.environ.keys() - environ.keys():
        monkeypatch.delenv(name)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(project)

    def run(code: int, *words: str, extra: dict[str, Any] | None = None) -> Any:
        with monkeypatch.context() as patch:
            for name, value in (extra or {}).items():
                if value is None:
                    patch.delenv(name, raising=False)
                else:
                    patch.setenv(name, value)
            capsys.readouterr()
            ended = main([*words, "--json"])
        said = capsys.readouterr()
        assert ended == code, said.err
        return valid(words[0], json.loads(said.out))

    return run


@pytest.fixture
def against(
    told: Run,
    index: str,  # noqa: F811
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """The same, of a command that reads releases: those of an index on this disk."""
    for name in [one for one in os.environ if one.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", index)
    monkeypatch.setenv("ASCEND_SHIMS_CACHE", str(project / "cache"))
    assert main(["lock", "madeup==1.0"]) == 0
    return told


BURIED = """
import ascend_shims, madeup.core
ascend_shims.apply()
on_top = madeup.core.answer
madeup.core.answer = lambda word: on_top(word)
"""


def test_status(told: Run) -> None:
    alone = told(0, "status", "--all")
    assert [gap["id"] for gap in alone["gaps"]] == ["loud", "polite", "gone"]


def test_status_with_processes(told: Run, serving: Any) -> None:
    running = serving(BURIED)
    with _impostor(b"{}") as silent:
        found = told(1, "status")
    pids = {one["pid"]: one for one in found["processes"]}
    assert pids[silent]["problem"]
    states = {gap["id"]: gap["state"] for gap in pids[running.pid]["gaps"]}
    assert "buried" in states.values()


def test_show(told: Run, serving: Any) -> None:
    running = serving(BURIED)
    found = told(0, "show", "loud")
    assert running.pid in [one["pid"] for one in found["processes"]]
    ours = {"ASCEND_SHIMS_REGISTRY": None, "ASCEND_SHIMS_ALLOW": None}
    seen = told(0, "show", "kv-cache", extra=ours)
    assert seen["registry"]["patches"]


def test_show_of_one_that_would_fail(told: Run, project: Path) -> None:
    (project / "madeup" / "core.py").write_text("def answer(): ...\n")
    found = told(0, "show", "polite")
    assert found["here"]["patches"][0]["target"] == "madeup.core:answer"


def test_apply_check(told: Run, project: Path) -> None:
    assert told(0, "apply-check")["ok"]
    registry = project / "registry.yaml"
    registry.write_text(registry.read_text() + LATER)
    only = {"ASCEND_SHIMS_ONLY": "later,loud"}
    (project / "madeup" / "core.py").write_text("answer = 1\n")
    found = told(1, "apply-check", extra=only)
    assert {gap["id"]: gap["state"] for gap in found["gaps"]}["later"] == (
        "not-applicable"
    )
    assert len(found["gaps"]) == 2


def test_doctor(told: Run, serving: Any) -> None:
    serving(BURIED)
    found = told(1, "doctor", extra={"ASCEND_SHIMS_DISABLE": "nobody"})
    assert found["counts"]["problem"] >= 1
    assert found["processes"]


def test_explain(told: Run) -> None:
    assert len(told(0, "explain")["codes"]) > 50
    assert [one["code"] for one in told(0, "explain", "buried")["codes"]] == ["buried"]


def test_drift(against: Run) -> None:
    same = against(0, "drift", "--against", "madeup==1.1", "--package", "madeup")
    assert {one["verdict"] for one in same["findings"]} == {"cosmetic"}
    gone = against(1, "drift", "--against", "madeup==1.4", "--package", "madeup")
    assert {one["verdict"] for one in gone["findings"]} == {"broken"}
    assert gone["findings"][0]["old"]["symbol"] == "madeup.core:answer"


def test_matrix(against: Run) -> None:
    found = against(0, "matrix", "--package", "madeup", "--from", "1.0")
    assert found["gaps"]["loud"]["1.0"] == "identical"
    assert found["gaps"]["loud"]["1.4"] == "broken"


def test_report(against: Run) -> None:
    found = against(0, "report", "--package", "madeup", "--from", "1.0")
    assert found["releases"][0]["version"] == "1.0"
    assert found["changes"]


def test_diff(against: Run) -> None:
    same = against(0, "diff", "loud", "--to", "madeup==1.0")
    assert same["changes"] == []
    found = against(1, "diff", "loud", "--to", "madeup==1.2")
    assert [one["symbol"] for one in found["changes"]] == ["madeup.core:answer"]
    nothing = against(0, "diff", "gone", "--to", "madeup==1.0", "--package", "madeup")
    assert nothing["unpatched"] == "upstream answers by itself"


PATCHING = """
import madeup.core

def ours(word): ...

if madeup.__version__ >= "1.0":
    madeup.core.answer = ours
madeup.core.nothing = ours
"""


def test_scan(against: Run, project: Path) -> None:
    code = project / "plugin"
    code.mkdir()
    (code / "clean.py").write_text("x = 1\n")
    assert against(0, "scan", str(code / "clean.py"))["found"] == []
    (code / "patches.py").write_text(PATCHING)
    (code / "torn.py").write_text("def (\n")
    found = against(
        1, "scan", str(code), "--upstream", "madeup", "--against", "madeup==1.4"
    )
    assert [one["target"] for one in found["found"]] == [
        "madeup.core:answer",
        "madeup.core:nothing",
    ]
    assert found["found"][0]["verdicts"][0]["verdict"] == "broken"
    assert [one["file"] for one in found["skipped"]] == [str(code / "torn.py")]


def test_bisect(told: Run, project: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    clone.mkdir()
    git(clone, "init", "-q", "-b", "main")
    files = {
        "madeup/__init__.py": b"",
        "madeup/core.py": b"def answer(word):\n    return word\n",
    }
    good = commit_all(clone, files, "there")
    other = commit_all(clone, {"madeup/other.py": b"x = 1\n"}, "something else")
    commit_all(clone, {"madeup/core.py": b""}, "gone")
    where = ("--repo", str(clone), "--package", "madeup")
    found = told(1, "bisect", "loud", *where, "--good", good)
    assert found["findings"][0]["commits"][0]["subject"] == "gone"
    same = told(0, "bisect", "loud", *where, "--good", good, "--bad", other)
    assert same["findings"] == []


def test_audit(told: Run, project: Path) -> None:
    assert told(0, "audit", "madeup.core")["rows"] == []
    (project / "theirs.py").write_text(
        "import madeup.core\ndef other(word): ...\nmadeup.core.answer = other\n"
    )
    found = told(1, "audit", "madeup.core", "madeup.absent", "--first", "theirs")
    assert [one["what"] for one in found["rows"]] == ["replaced"]
    assert list(found["problems"]) == ["madeup.absent"]


LEAKING = """
import madeup.core

def shout(call, word):
    return call(word).upper()

madeup.core.left = 1
"""


def test_verify(told: Run, project: Path) -> None:
    sound = told(0, "verify", "loud")
    assert sound["stages"][0]["name"] == "off"
    (project / "madeup_patches" / "loud.py").write_text(LEAKING)
    found = told(1, "verify", "loud")
    different = [one for stage in found["stages"] for one in stage["differences"]]
    assert any("left" in one["path"] for one in different)


def test_verify_without_an_answer(told: Run, project: Path) -> None:
    (project / "madeup_patches" / "loud.py").write_text(
        "import os\ndef shout(call, word): ...\nos._exit(3)\n"
    )
    found = told(2, "verify", "loud")
    assert found["code"] == "interpreter"


def test_new_gap(told: Run, tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    words = ("--package", "fresh_shims", "--dir", "fresh")
    found = told(0, "new-gap", "first", *words, extra={"ASCEND_SHIMS_REGISTRY": None})
    assert found["gap"] == "first"
    assert all(Path(file).is_file() for file in found["made"])
    assert len(found["made"]) > 2


@pytest.mark.vllm
@pytest.mark.skipif(
    find_spec("vllm") is None,
    reason=f"vLLM is not installed for {sys.executable}: see tools/env",
)
def test_demo() -> None:
    # In an interpreter of its own: vLLM is loaded once in one, and for good.
    said = run(sys.executable, "-m", "ascend_shims", "demo", "--json")
    assert valid("demo", json.loads(said))["ok"]


# Lines that processes write


def test_lines_of_the_guard(tmp_path: Path) -> None:
    path = tmp_path / "guard.jsonl"
    report = Report(ReportSettings(path=str(path), max_lines=2), rank=1)
    for step in range(3):
        report.write("repeated-tokens", {"run": 9}, step=step, request_id="a1")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [one["detector"] for one in lines] == ["repeated-tokens"] * 2 + ["guard"]
    for line in lines:
        valid("guard-report", line)


@contextmanager
def _logged(environ: dict[str, str], project: Path) -> Iterator[str]:
    import subprocess

    script = (
        "import logging; logging.basicConfig(level='INFO', format='%(message)s');"
        "import madeup.core, ascend_shims; ascend_shims.apply()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environ,
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    yield done.stderr


def test_the_line_in_the_log(environ: dict[str, str], project: Path) -> None:
    with _logged(environ, project) as said:
        (line,) = said.splitlines()
    word, _, document = line.partition(" ")
    assert word == "ascend_shims.apply"
    found = valid("log-line", json.loads(document))
    assert found["gaps"] == {"applied": 2, "landed": 1}
    assert found["version"] == ascend_shims.__version__
