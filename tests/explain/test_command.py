"""`shims explain`, as a person meets it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from ascend_shims.cli.app import shims
from ascend_shims.explain import all_pages

from ..fresh import python

CODES = [page.code for group in all_pages() for page in group.pages]


def _explain(*words: str) -> Result:
    return CliRunner().invoke(shims, ["explain", *words], env={"COLUMNS": "80"})


def test_a_page_has_all_its_parts() -> None:
    said = _explain("version-skipped").stdout
    lines = said.splitlines()
    assert lines[0] == "version-skipped  States"
    headings = [line for line in lines[1:] if line and not line.startswith(" ")]
    assert headings == ["How one comes to it", "What to do", "Example"]
    assert "ASCEND_SHIMS_ASSUME=vllm=0.32.0" in said
    assert max(map(len, lines)) <= 80


def test_what_is_typed_is_not_broken() -> None:
    for code in ("broken", "lost", "discovery", "process-without-shims"):
        said = _explain(code).stdout
        for line in said.partition("\nExample\n")[0].splitlines():
            assert line.count("`") % 2 == 0, line


def test_all_codes_are_listed_by_group() -> None:
    lines = _explain().stdout.splitlines()
    listed = [
        line.split()[0] for line in lines if line[:2] == "  " and line[2:3] != " "
    ]
    assert listed == CODES
    titles = [line for line in lines if line and not line.startswith(" ")]
    assert titles == [g.title for g in all_pages()] + ["Next: shims explain CODE"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("[no-such-release]", "no-such-release"),
        ("NoSuchRelease", "no-such-release"),
        ("ascend_shims.switches.SwitchError", "switch"),
        (" lost ", "lost"),
        ("VERSION-SKIPPED", "version-skipped"),
    ],
)
def test_a_code_may_be_copied_as_it_was_met(said: str, meant: str) -> None:
    assert _explain(said).stdout.startswith(f"{meant}  ")


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("version-skiped", "did you mean version-skipped?"),
        ("qqqqqqqq", "see them all with: shims explain"),
        ("", "see them all with: shims explain"),
    ],
)
def test_the_nearest_of_an_unknown_one(said: str, hint: str) -> None:
    done = _explain(said)
    assert done.exit_code == 2
    assert f"no code is called {said!r}; {hint}" in " ".join(done.stderr.split())


def test_json_has_the_same() -> None:
    (one,) = json.loads(_explain("lost", "--json").stdout)["codes"]
    assert list(one) == ["code", "group", "meaning", "how", "do", "example"]
    assert (one["code"], one["group"]) == ("lost", "states")
    every = json.loads(_explain("--json").stdout)
    assert every["schema"] == 1
    assert [page["code"] for page in every["codes"]] == CODES


def test_it_is_quick() -> None:
    script = (
        "import sys; from ascend_shims.cli import main; main(['explain', 'lost']);"
        "print(sorted(sys.modules.keys() & {'vllm', 'torch', 'yaml', 'msgspec',"
        " 'wrapt', 'ascend_shims.engine', 'ascend_shims.plan'}))"
    )
    assert python(script).splitlines()[-1] == "[]"
