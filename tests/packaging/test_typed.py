"""A project that uses the public face, checked and run against the installed wheel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..test_packaging import wheel  # noqa: F401 - a fixture
from .environments import asked, environment

pytestmark = pytest.mark.any_release

DOWNSTREAM = '''\
"""What a plugin's own code may look like."""

from collections.abc import Awaitable

import ascend_shims
from ascend_shims.errors import ShimsError
from ascend_shims.ranks.compare import Ranks
from ascend_shims.report import Report
from ascend_shims.states import State
from ascend_shims.testing import Shims
from ascend_shims.verify.running import Verification


def start(gaps: list[str]) -> Report:
    report = ascend_shims.apply(only=gaps, disable=["cos-sin"], strict=False)
    if report.state("kv-cache") is not State.APPLIED:
        print(report["kv-cache"].reason.upper(), report["kv-cache"].state.is_fault)
    with ascend_shims.disabled("cos-sin"):
        again: Report = ascend_shims.status()
    return again


def stop() -> str:
    try:
        left: Report = ascend_shims.revert("kv-cache", "cos-sin")
    except ShimsError as error:
        return str(error)
    proof: Verification = ascend_shims.verify()
    return f"{len(left.gaps)} {proof}"


def same(engine: object) -> "Ranks | Awaitable[Ranks]":
    return ascend_shims.check_ranks(engine, timeout=1.5)


def version() -> str:
    return ascend_shims.__version__


def test_it(shims: Shims) -> None:
    report: Report = shims.apply(only=["cos-sin"])
    assert report.state("cos-sin") == "not-applicable"
    with shims.disabled():
        shims.status()
    assert start([]).gaps
    shims.revert()


def test_stop() -> None:
    assert stop()[:3].strip().isdecimal()
'''
WRONG = """\
import ascend_shims
from ascend_shims.testing import Shims

ascend_shims.apply(only=3)
ascend_shims.apply(gaps=["kv-cache"])
ascend_shims.revert(1)
ascend_shims.status().state(2)
ascend_shims.disabled(b"cos-sin")
ascend_shims.check_ranks(None, timeout="soon")
ascend_shims.verify().no_such_thing
ascend_shims.no_such_thing


def test_it(shims: Shims) -> None:
    shims.apply(strict="yes")
"""


@pytest.fixture(scope="module")
def downstream(
    wheel: Path,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """The `bin` of an environment with the wheel and pytest."""
    home = tmp_path_factory.mktemp("downstream") / "own"
    return environment(Path(sys.executable), home, wheel, "pytest>=8.2", pins={})


def _checked(downstream: Path, file: Path, *options: str) -> str:
    """What `mypy --strict` says of a file, going by what is installed there."""
    python = ("--python-executable", downstream / "python")
    alone = ("--config-file", "", "--cache-dir", file.parent / "cache")
    words = (sys.executable, "-m", "mypy", "--strict", *python, *alone, *options, file)
    done = subprocess.run(
        words, cwd=file.parent, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout


def test_right_use_passes_strict_checks(downstream: Path, tmp_path: Path) -> None:
    file = tmp_path / "test_downstream.py"
    file.write_text(DOWNSTREAM)
    said = _checked(downstream, file, "--disallow-any-expr")
    assert said == "Success: no issues found in 1 source file\n"


def test_wrong_use_does_not(downstream: Path, tmp_path: Path) -> None:
    file = tmp_path / "test_wrong.py"
    file.write_text(WRONG)
    said = _checked(downstream, file).splitlines()
    wrong = [line for line in said if ": error: " in line]
    assert [int(line.split(":")[1]) for line in wrong] == [*range(4, 12), 15], said
    assert "import" not in "".join(wrong)


def test_what_was_checked_runs(downstream: Path, tmp_path: Path) -> None:
    """With the fixture that the entry point brings."""
    file = tmp_path / "test_downstream.py"
    file.write_text(DOWNSTREAM)
    pytest_ = (downstream / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "2 passed" in asked(*pytest_, file, cwd=tmp_path)
