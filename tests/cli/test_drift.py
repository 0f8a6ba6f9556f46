"""`shims drift`, `lock`, `matrix` and `diff` on a made-up upstream with releases."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

RELEASES = {
    "1.0": {"core": "def answer(word):\n    return word\n"},
    "1.1": {
        "core": "# licence\ndef answer(word):\n    '''Says it.'''\n    return word\n"
    },
    "1.2": {"core": "def answer(word, tone=None):\n    return word\n"},
    "1.3": {
        "core": "from madeup.voice import answer\n",
        "voice": "def answer(word, tone=None):\n    return word\n",
    },
    "1.4": {"core": "", "voice": "def answer(word, tone=None):\n    return word\n"},
}
USER = "from madeup.core import answer\n\n\ndef ask():\n    return answer('tea')\n"


@pytest.fixture
def index(tmp_path: Path) -> str:
    """A package index on disk with an sdist a release."""
    page = tmp_path / "index" / "madeup"
    page.mkdir(parents=True)
    links = []
    for version, modules in RELEASES.items():
        name = f"madeup-{version}.tar.gz"
        files = {"PKG-INFO": f"Name: madeup\nVersion: {version}\n"}
        files |= {f"madeup/{m}.py": text for m, text in modules.items()}
        files |= {"madeup/__init__.py": "", "madeup/user.py": USER}
        with tarfile.open(page / name, "w:gz") as archive:
            for path, text in files.items():
                member = tarfile.TarInfo(f"madeup-{version}/{path}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        links.append(f'<a href="{name}">{name}</a>')
    (page / "index.html").write_text("\n".join(links))
    return (tmp_path / "index").as_uri()


@pytest.fixture
def drift(shims: Any, index: str, tmp_path: Path, project: Path) -> Any:
    """Run a command that reads upstream, against that index alone."""

    def run(command: str, *words: str, extra: dict[str, Any] | None = None) -> Any:
        environ = {
            "ASCEND_SHIMS_CACHE": str(tmp_path / "cache"),
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": None,
            "PIP_EXTRA_INDEX_URL": None,
            "PIP_FIND_LINKS": None,
            **(extra or {}),
        }
        return shims(command, *words, "--index-url", index, extra=environ)

    locked = run("lock", "madeup==1.0")
    assert locked.returncode == 0, locked.stderr
    return run


def _against(version: str) -> tuple[str, ...]:
    return ("--against", f"madeup=={version}", "--package", "madeup")


@pytest.mark.parametrize(
    ("version", "verdicts", "code"),
    [
        ("1.0", {"identical"}, 0),
        ("1.1", {"cosmetic"}, 0),
        ("1.2", {"compatible"}, 0),
        ("1.3", {"compatible"}, 0),
        ("1.4", {"broken"}, 1),
    ],
)
def test_the_verdict_of_each_release(
    drift: Any, version: str, verdicts: set[str], code: int
) -> None:
    done = drift("drift", *_against(version), "--json")
    assert done.returncode == code, done.stderr
    report = json.loads(done.stdout)
    assert {f["gap"] for f in report["findings"]} == {"loud", "polite"}
    assert {f["verdict"] for f in report["findings"]} == verdicts
    assert report["baseline"] == "madeup 1.0"
    assert report["release"] == f"madeup {version}"


def test_a_moved_symbol_is_found(drift: Any) -> None:
    report = json.loads(drift("drift", *_against("1.4"), "--json").stdout)
    (finding, _) = report["findings"]
    assert finding["moved_to"] == "madeup.voice:answer"
    assert finding["line"] == 14
    assert finding["file"] == "registry.yaml"


def test_the_table_says_what_to_do_next(drift: Any) -> None:
    done = drift("drift", *_against("1.4"))
    assert done.returncode == 1
    assert "now madeup.voice:answer" in done.stdout
    assert "2 broken" in done.stdout
    assert "Next: shims diff loud --to madeup==1.4" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_fail_on_decides_the_exit_code(drift: Any) -> None:
    never = drift("drift", *_against("1.4"), "--fail-on", "never")
    assert never.returncode == 0
    any_ = drift("drift", *_against("1.2"), "--fail-on", "any")
    assert any_.returncode == 1


def test_sarif_points_at_the_registry(drift: Any) -> None:
    done = drift("drift", *_against("1.4"), "--format", "sarif")
    log = json.loads(done.stdout)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) == 2
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] == "error"
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "registry.yaml"
        assert place["region"]["startLine"] >= 1
        assert result["partialFingerprints"]["ascendShims/v1"]


def test_fingerprints_are_stable(drift: Any) -> None:
    first, second = (
        json.loads(drift("drift", *_against("1.4"), "--json").stdout) for _ in "ab"
    )
    prints = [[f["fingerprint"] for f in r["findings"]] for r in (first, second)]
    assert prints[0] == prints[1]
    assert len(set(prints[0])) == 2


def test_junit_has_a_case_for_each(drift: Any) -> None:
    done = drift("drift", *_against("1.4"), "--format", "junit")
    suite = ElementTree.fromstring(done.stdout)
    assert (suite.get("tests"), suite.get("failures")) == ("2", "2")
    assert [case.get("classname") for case in suite] == ["loud", "polite"]


def test_github_annotates_and_writes_a_summary(drift: Any, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    done = drift(
        "drift",
        *_against("1.4"),
        "--format",
        "github",
        extra={"GITHUB_STEP_SUMMARY": str(summary)},
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("::error file=registry.yaml,line=14,title=loud%3A")
    assert summary.read_text().startswith("### madeup 1.4 against madeup 1.0")


def test_markdown_is_a_table(drift: Any) -> None:
    done = drift("drift", *_against("1.4"), "--format", "markdown")
    assert done.stdout.count("| broken |") == 2


def test_the_matrix_names_the_release_of_each_change(drift: Any) -> None:
    done = drift("matrix", "--from", "1.0", "--package", "madeup", "--json")
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)
    assert table["releases"] == list(RELEASES)
    assert table["gaps"]["loud"] == {
        "1.0": "identical",
        "1.1": "cosmetic",
        "1.2": "compatible",
        "1.3": "compatible",
        "1.4": "broken",
    }


def test_diff_shows_upstreams_change(drift: Any) -> None:
    done = drift("diff", "loud", "--to", "madeup==1.2")
    assert done.returncode == 1
    assert "-def answer(word):" in done.stdout
    assert "+def answer(word, tone=None):" in done.stdout


def test_the_lock_is_deterministic_and_checked(drift: Any, project: Path) -> None:
    lock = project / "registry.lock"
    before = lock.read_text()
    assert drift("lock", "--check").returncode == 0
    assert drift("lock").returncode == 0
    assert lock.read_text() == before
    facts = json.loads(before)["baselines"]["madeup==1.0"]["symbols"]
    assert facts["madeup.core:answer"]["signature"] == "(word)"
    assert facts["madeup.core:answer"]["callers"] == ["madeup.core", "madeup.user"]


def test_a_watch_file_is_checked_too(drift: Any, tmp_path: Path) -> None:
    watch = tmp_path / "watch.jsonl"
    watch.write_text('{"symbol": "madeup.core:answer", "how": "imports_name"}\n')
    done = drift("drift", *_against("1.4"), "--watch", str(watch), "--json")
    found = [f for f in json.loads(done.stdout)["findings"] if f["gap"] == "watch"]
    assert [(f["verdict"], f["line"]) for f in found] == [("broken", 1)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--against", "madeup==9.9"), "9.9"),
        (("--against", "what is this"), "names no source"),
        (("--against", "/no/such/dir.whl"), "no/such"),
        (("--gap", "lou"), "did you mean loud?"),
    ],
)
def test_misuse_is_one_line_and_exit_2(drift: Any, words: Any, said: str) -> None:
    done = drift("drift", "--package", "madeup", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_offline_without_a_cache_is_one_line(drift: Any, tmp_path: Path) -> None:
    extra = {"ASCEND_SHIMS_CACHE": str(tmp_path / "empty")}
    done = drift("drift", *_against("1.4"), "--offline", extra=extra)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
