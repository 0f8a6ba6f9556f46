"""In a pipe a sentence stays on its line, and so does the row of a table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WHY = " ".join(f"word{number}" for number in range(60))
PIPE = {"COLUMNS": None}
NARROW = {"COLUMNS": "60"}


@pytest.fixture
def wordy(project: Path) -> None:
    """Gaps of which there is much to say."""
    path = project / "registry.yaml"
    text = path.read_text().replace("Callers are hard of hearing.", WHY)
    text = text.replace("upstream answers by itself", WHY)
    path.write_text(text)


@pytest.mark.usefixtures("wordy")
@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["status", "--all"], f"gone landed {WHY}"),
        (["show", "loud"], WHY),
        (["show", "gone"], f"landed {WHY}"),
    ],
)
def test_sentences(shims: Any, words: list[str], line: str) -> None:
    done = shims(*words, extra=PIPE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert line in [" ".join(one.split()) for one in lines]
    assert [one for one in lines if one != one.rstrip()] == []
    folded = shims(*words, extra=NARROW).stdout.splitlines()
    assert max(map(len, folded)) <= 60
    assert " ".join(" ".join(folded).split()).count("word59") == 1


def test_the_reasons_of_apply_check(shims: Any, project: Path) -> None:
    core = project / "madeup" / "core.py"
    core.write_text("def " + "answer_" * 30 + "(word): return word\n")
    (project / "madeup" / "user.py").write_text("")
    done = shims("apply-check", extra=PIPE)
    assert done.returncode == 1
    (row, *_) = [one for one in done.stdout.splitlines() if one.startswith("loud ")]
    assert "missing-target" in row
    assert "madeup.core:answer does not exist in the loaded upstream" in row
    assert "Without them: ASCEND_SHIMS_DISABLE=loud,polite" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["schema", "status"],
        ["new-gap", "soft", "--package", "own.shims", "--target", "madeup.core:answer"],
        ["explain"],
        ["--help"],
        ["drift", "--help"],
    ],
)
def test_a_reader_who_has_seen_enough_is_no_finding(
    environ: dict[str, str], tmp_path: Path, words: list[str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ascend_shims", *words],
            stdout=writer,
            stderr=subprocess.PIPE,
            env=environ,
            cwd=tmp_path,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
