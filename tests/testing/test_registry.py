"""One test for each gap of a project's own registry."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from .project import Project

pytest_plugins = ["pytester"]


@pytest.fixture
def listed(project: Project) -> Project:
    """A project that names its registry."""
    project.ini("shims_registry = gaps.yaml")
    project.write("test_own.py", "def test_own(): pass\n")
    return project


REFUSING = """
    def shout(call, word, *, volume):
        return call(word)
"""
LEAVING = """
    import madeup.core

    def shout(function):
        madeup.core.left = lambda: None
        return lambda word: function(word)
"""
RAISING = """
    raise LookupError("the patch cannot be imported")
    shout = None
"""


@dataclass(frozen=True)
class Kind:
    """A gap of a project, and what its test says."""

    target: str | None
    outcome: str
    reason: str = ""
    fields: dict[str, str] = field(default_factory=dict)


MANY = "\n".join(f"def f{n}(word): return word" for n in range(9))
ANY = "def shout(call, *args, **kwargs): return call(*args, **kwargs)\n"

KINDS = {
    "good": Kind("madeup.many:f0", "passed"),
    "method": Kind("madeup.core:Speaker.say", "passed", fields={"source": ANY}),
    "alias": Kind("madeup.late:two", "passed", fields={"source": ANY}),
    "old": Kind(
        "madeup.core:gone",
        "skipped",
        "version-skipped: madeup 1.2.0 is outside madeup <1",
        {"versions": "<1"},
    ),
    "npu": Kind(
        "madeup.many:f1", "skipped", "not-applicable: no NPU: *", {"device": "true"}
    ),
    "landed": Kind(None, "skipped", "landed: a test without one", {"status": "landed"}),
    "lost": Kind(
        "madeup.core:gone", "failed", "*, lost is missing-target: madeup.core:gone *"
    ),
    "nowhere": Kind(
        "madeup.nothing:gone",
        "failed",
        "madeup.nothing cannot be imported: ModuleNotFoundError: *",
    ),
    "contract": Kind(
        "madeup.many:f2",
        "failed",
        "*, contract is broken-contract: *volume*",
        {"source": REFUSING},
    ),
    "leaving": Kind(
        "madeup.many:f3",
        "failed",
        "applied * and taken back, it leaves madeup.core:left: is shout*",
        {"source": LEAVING, "kind": "decorate"},
    ),
    "raising": Kind(
        "madeup.many:f4",
        "failed",
        "*, raising is failed: *LookupError: the patch cannot be imported*",
        {"source": RAISING},
    ),
    "needing": Kind("madeup.many:f5", "passed", fields={"needs": "good"}),
    "needing-lost": Kind(
        "madeup.many:f6", "failed", "*, lost is missing-target*", {"needs": "lost"}
    ),
}


def test_each_gap_is_a_test_that_says_how_it_stands(listed: Project) -> None:
    listed.write("madeup/many.py", MANY)
    listed.write("madeup/late.py", "from madeup.core import two\n")
    for gap, kind in KINDS.items():
        listed.gap(gap, kind.target, "shout", **kind.fields)  # type: ignore[arg-type]
    result = listed.run("-v", "-rs", "-p", "xdist", "-n", "2")
    lines = result.outlines
    for gap, kind in KINDS.items():
        shown = [line for line in lines if f"gaps.yaml::{gap} " in f"{line} "]
        assert any(kind.outcome.upper() in line for line in shown), (gap, lines)
        said = lines
        if kind.outcome == "failed":
            said = lines[lines.index(f"{gap}:") :][1:6]
        elif kind.outcome == "skipped":
            said = [line for line in lines if line.startswith("SKIPPED")]
            kind = replace(kind, reason=f"SKIPPED *gaps.yaml:*: {kind.reason}")
        if kind.reason:
            assert any(fnmatchcase(line, kind.reason) for line in said), (gap, said)
    outcomes = [kind.outcome for kind in KINDS.values()]
    # And `loud`, which every project of these tests has, and the project's own test.
    assert result.parseoutcomes() == {
        "failed": outcomes.count("failed"),
        "passed": outcomes.count("passed") + 2,
        "skipped": outcomes.count("skipped"),
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["gaps.yaml"], ["gaps.yaml::loud", "gaps.yaml::quiet"]),
        (["gaps.yaml::quiet"], ["gaps.yaml::quiet"]),
        (["-k", "quiet"], ["gaps.yaml::quiet"]),
        (["test_own.py"], ["test_own.py::test_own"]),
        ([], ["gaps.yaml::loud", "gaps.yaml::quiet", "test_own.py::test_own"]),
        (["sub"], []),
    ],
)
def test_it_is_chosen_like_any_test(
    listed: Project, arguments: list[str], expected: list[str]
) -> None:
    listed.gap("quiet", "madeup.core:question", "shout")
    listed.write("sub/other.yaml", "schema: 1\n")
    result = listed.run("--collect-only", "-q", *arguments)
    assert [line for line in result.outlines if "::" in line] == expected


def test_nothing_is_collected_unless_the_configuration_says_so(
    project: Project,
) -> None:
    project.write("test_own.py", "def test_own(): pass\n")
    assert project.outcomes() == {"passed": 1}


def test_a_registry_elsewhere_is_named_to_be_collected(listed: Project) -> None:
    listed.ini("shims_registry = package/mine.yaml", "testpaths = tests package")
    listed.write("tests/test_own.py", "def test_own(): pass\n")
    (listed.root / "package").mkdir()
    (listed.root / "gaps.yaml").rename(listed.root / "package" / "mine.yaml")
    result = listed.run("-v")
    assert result.parseoutcomes() == {"passed": 2}
    result.stdout.fnmatch_lines(["*package/mine.yaml::loud PASSED*"])


def test_a_failure_is_in_every_report(listed: Project) -> None:
    listed.gap("lost", "madeup.core:gone", "shout")
    result = listed.run("--junitxml", "out.xml", "gaps.yaml::lost")
    assert result.parseoutcomes() == {"failed": 1}
    said = (listed.root / "out.xml").read_text()
    assert "lost is missing-target" in said


def test_a_registry_with_mistakes_is_an_error_that_names_them(listed: Project) -> None:
    text = (listed.root / "gaps.yaml").read_text()
    (listed.root / "gaps.yaml").write_text(text.replace("kind: wrap,", "kind: wrapp,"))
    result = listed.run("-p", "no:xdist")
    assert result.parseoutcomes() == {"errors": 1}
    result.stdout.fnmatch_lines(["*gaps.yaml:*`wrapp`*did you mean `wrap`?*"])


def test_a_registry_that_is_not_there_is_a_usage_error(listed: Project) -> None:
    listed.ini("shims_registry = gone.yaml")
    result = listed.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    gone = Path(listed.root / "gone.yaml")
    result.stderr.fnmatch_lines([f"ERROR: shims_registry: there is no {gone}"])


def test_nothing_of_it_is_left_in_the_process_of_the_tests(listed: Project) -> None:
    listed.write(
        "test_own.py",
        """
        import sys
        def test_own():
            assert "madeup" not in sys.modules
            assert "gaps" not in sys.modules
            assert "ascend_shims.process" not in sys.modules
        """,
    )
    assert listed.outcomes("gaps.yaml", "test_own.py") == {"passed": 2}
    assert listed.outcomes("--shims-verify", "gaps.yaml") == {"passed": 1}


def test_switches_and_what_a_conftest_adds_to_the_path_reach_it(
    listed: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed.write("elsewhere/more.py", "def shout(call, word): return call(word)\n")
    listed.write("conftest.py", "import sys; sys.path.insert(0, 'elsewhere')\n")
    listed.gap("more", "madeup.core:question", "shout", source="from more import shout")
    assert listed.outcomes("gaps.yaml") == {"passed": 2}
    monkeypatch.setenv("ASCEND_SHIMS_DISABLE", "more")
    result = listed.run("gaps.yaml", "-rs")
    assert result.parseoutcomes() == {"passed": 1, "skipped": 1}
    # At the entry's line.
    lines = (listed.root / "gaps.yaml").read_text().splitlines()
    place = f"gaps.yaml:{lines.index('  - id: more') + 1}"
    said = "off: switched off by ASCEND_SHIMS_DISABLE"
    result.stdout.fnmatch_lines([f"SKIPPED ?1? {place}: {said}"])


def test_a_check_that_dies_is_told_with_what_it_said(listed: Project) -> None:
    source = """
        import os, sys
        print("about to die", file=sys.stderr, flush=True)
        os._exit(7)
        shout = None
    """
    listed.gap("dying", "madeup.core:question", "shout", source=source)
    result = listed.run("gaps.yaml::dying")
    assert result.parseoutcomes() == {"failed": 1}
    result.stdout.fnmatch_lines(["*the check ended with 7:*", "*about to die*"])
