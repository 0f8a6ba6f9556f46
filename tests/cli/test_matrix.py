"""The screen of `shims matrix`: what is compared with what, and what comes next."""

from __future__ import annotations

from typing import Any

import pytest

from ascend_shims.cli import matrix

from .test_drift import drift, index

__all__ = ["drift", "index"]

ROWS = {
    "loud": {"1.0": "identical", "1.1": "compatible", "1.2": "cosmetic"},
    "rank": {"1.0": "identical", "1.1": "identical", "1.2": "identical"},
}
RELEASES = ["1.0", "1.1", "1.2"]


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        ("80", ["  loud  1.1 compatible, 1.2 cosmetic"]),
        ("31", ["  loud  1.1 compatible,", "        1.2 cosmetic"]),
        ("24", ["  loud  1.1 compatible,", "        1.2 cosmetic"]),
    ],
)
def test_a_release_and_its_verdict_stay_side_by_side(
    columns: str,
    lines: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    matrix._print(ROWS, RELEASES, [], [])
    printed = capsys.readouterr().out.splitlines()
    assert printed[printed.index("Verdicts change at") + 1 :] == lines


def test_it_says_what_is_compared_and_which_rows_are_companions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    matrix._print(ROWS, RELEASES, ["madeup 1.0", "madeup 1.1"], ["rank"])
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "Compared with what is locked: madeup 1.0, madeup 1.1"
    assert "1 of them is the companion of a gap: rank" in printed


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (
            ("broken", "review", "identical"),
            "shims drift --against vllm==1.1   (what to review)",
        ),
        (
            ("review", None, "broken"),
            "shims drift --against vllm==1.2   (what is broken, and how)",
        ),
        (
            ("identical", None, "fixed-upstream"),
            "shims report --html report.html   (all of it as one page)",
        ),
    ],
)
def test_next_is_the_newest_release_with_something_to_look_at(
    verdicts: tuple[str | None, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    row = dict(zip(RELEASES, verdicts, strict=True))
    matrix._print_next({"loud": row}, RELEASES, "vllm")
    assert capsys.readouterr().out == f"\nNext: {said}\n"


def test_the_command_says_all_of_it(drift: Any) -> None:
    done = drift("matrix", "--from", "1.0", "--package", "madeup")
    lines = done.stdout.splitlines()
    assert lines[0] == "Compared with what is locked: madeup 1.0"
    assert lines[-1].startswith("Next: shims drift --against madeup==1.4 --index-url ")
    assert lines[-1].endswith("   (what is broken, and how)")
