"""`--registry`, of the commands that look at this environment."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

OFF = {"ASCEND_SHIMS_REGISTRY": None}
ASK = "from madeup.user import answer; print(answer('tea'))"


@pytest.fixture(params=["file", "folder", "from here"])
def named(request: pytest.FixtureRequest, project: Path) -> str:
    """The project's registry, as a person may name it."""
    if request.param == "from here":
        return "registry.yaml"
    if request.param == "file":
        return str(project / "registry.yaml")
    (project / "registry.yaml").rename(project / "gap_registry.yaml")
    return str(project)


def test_show(shims_json: Any, named: str) -> None:
    page = shims_json("show", "loud", "--registry", named, extra=OFF)
    assert page["registry"]["why"] == "Callers are hard of hearing."
    assert page["here"]["state"] == "pending"


def test_apply_check(shims_json: Any, named: str) -> None:
    told = shims_json("apply-check", "--registry", named, extra=OFF)
    assert (told["ok"], told["wanted"]) == (True, ["loud", "polite"])
    assert [one["state"] for one in told["gaps"]] == ["applied", "applied"]


def test_run(shims: Any, named: str) -> None:
    words = ["run", "--registry", named, "--disable", "polite", "--"]
    code = f"import os; os.chdir('/'); {ASK}"
    done = shims(*words, sys.executable, "-c", code, extra=OFF)
    assert (done.stdout, done.stderr) == ("TEA\n", "")


def test_it_comes_before_the_variable(shims_json: Any, project: Path) -> None:
    mine = project / "mine.yaml"
    text = (project / "registry.yaml").read_text()
    mine.write_text(text.replace("id: polite", "id: shy"))
    (project / "madeup_patches" / "polite.py").rename(
        project / "madeup_patches" / "shy.py"
    )
    told = shims_json("apply-check", "--registry", str(mine))
    assert told["wanted"] == ["loud", "shy"]


def test_it_is_taken_at_its_word_but_not_by_what_is_started(
    shims: Any, project: Path
) -> None:
    """Those find it named by a variable."""
    registry = project / "registry.yaml"
    registry.chmod(0o666)
    done = shims("apply-check", "--json", "--registry", str(registry), extra=OFF)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"]
    done = shims("show", "loud", "--registry", str(registry), extra=OFF)
    assert done.returncode == 0, done.stderr
    words = ["--registry", str(registry), "--", sys.executable, "-c", ASK]
    done = shims("run", *words, extra=OFF)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{registry}: can be written by everybody (mode 0666)" in done.stderr


@pytest.mark.parametrize(
    "words", [["apply-check"], ["show", "loud"], ["run", "--", "true"]]
)
def test_a_package_is_allowed_by_name(
    shims: Any, project: Path, words: list[str]
) -> None:
    at = [words[0], "--registry", str(project / "registry.yaml"), *words[1:]]
    done = shims(*at, extra={**OFF, "ASCEND_SHIMS_ALLOW": None})
    assert done.returncode == 2
    assert "ASCEND_SHIMS_ALLOW=madeup_patches" in done.stderr


@pytest.mark.parametrize("words", [["apply-check"], ["show", "loud"]])
def test_what_is_not_there(shims: Any, words: list[str], tmp_path: Path) -> None:
    done = shims(*words, "--registry", "nowhere.yaml")
    assert done.returncode == 2
    assert "'nowhere.yaml' does not exist" in done.stderr
    (tmp_path / "empty").mkdir()
    done = shims(*words, "--registry", "empty")
    assert done.returncode == 2
    assert "put a gap_registry.yaml there" in done.stderr
