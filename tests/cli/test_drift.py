"""`shims drift`, `lock`, `matrix` and `diff` on a made-up upstream with releases."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
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


@pytest.mark.parametrize(
    ("symbol", "version", "suggested"),
    [
        ("madeup.core:anser", "1.0", "shims matrix"),
        ("madeup.core:anser", "1.4", "shims matrix"),
        ("madeup.core:answer", "1.4", "shims diff watch --to madeup==1.4"),
    ],
)
def test_a_diff_is_suggested_where_it_shows_something(
    drift: Any, tmp_path: Path, symbol: str, version: str, suggested: str
) -> None:
    watch = tmp_path / "watch.jsonl"
    watch.write_text(json.dumps({"symbol": symbol, "how": "calls"}))
    words = (*_against(version), "--watch", str(watch), "--gap", "watch")
    done = drift("drift", *words, extra={"COLUMNS": "4000"})
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"Next: {suggested} ")
    if suggested.startswith("shims diff"):
        shown = drift("diff", "watch", "--to", "madeup==1.4", *words[2:6])
        assert shown.returncode == 1, shown.stderr


def test_of_several_that_broke_one_with_a_diff_is_suggested(
    drift: Any, tmp_path: Path
) -> None:
    watch = tmp_path / "watch.jsonl"
    watch.write_text('{"symbol": "madeup.a:b", "how": "calls", "gap": "a-first"}\n')
    words = (*_against("1.4"), "--watch", str(watch))
    done = drift("drift", *words, extra={"COLUMNS": "4000"})
    assert "Next: shims diff loud --to madeup==1.4" in done.stdout
    assert "3 broken" in done.stdout


@pytest.mark.parametrize("command", [["drift", "--gap", "zzz"], ["diff", "zzz"]])
def test_companions_and_what_is_watched_are_not_called_gaps(
    shims: Any, tmp_path: Path, command: list[str]
) -> None:
    watch = tmp_path / "watch.jsonl"
    watch.write_text(
        '{"symbol": "vllm.config:f", "how": "calls"}\n'
        '{"symbol": "vllm.config:f", "how": "calls", "gap": "kv-cache"}\n'
        '{"symbol": "vllm.config:f", "how": "calls", "gap": "mine"}\n'
    )
    words = [*command, "--offline", "--watch", str(watch)]
    done = shims(*words, extra={"ASCEND_SHIMS_REGISTRY": None})
    assert done.returncode == 2
    gaps, companions, watched = done.stderr.strip().splitlines()[-1].split("; ")[1:]
    assert gaps.startswith("there are ") and "kv-cache" in gaps
    assert not {"compile-key", "rank-agreement", "watch", "mine"} & {
        *gaps.removeprefix("there are ").split(", ")
    }
    assert companions == "companions of gaps: compile-key, rank-agreement"
    assert watched == "watched without a patch: mine, watch [usage]"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["kv-cache", "--against", "torch==2.9"],
            "kv-cache relies on nothing in torch, but on vllm and vllm_ascend",
        ),
        (["watch"], "watch relies on nothing in vllm, but on torch_npu and"),
    ],
)
def test_what_is_relied_on_elsewhere_is_not_said_to_be_nothing(
    shims: Any, words: list[str], said: str
) -> None:
    done = shims(
        "drift", "--offline", "--gap", *words, extra={"ASCEND_SHIMS_REGISTRY": None}
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "name a release of that with --against" in done.stderr


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


def test_a_release_that_no_gap_is_for_is_told(drift: Any, project: Path) -> None:
    """Nothing was checked, and whoever reads that must see why."""
    registry = project / "registry.yaml"
    text = registry.read_text()
    claimed = text.replace(
        "needs: {device: false}\n",
        'needs: {device: false}\n    versions: {madeup: ">=1.2"}\n',
    )
    assert claimed.count(">=1.2") == text.count("needs: {device: false}") > 0
    registry.write_text(claimed)
    done = drift("drift", *_against("1.1"))
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "nothing to check" in words
    for gap in ("loud", "polite"):
        assert f"{gap} is not for madeup 1.1: it is for madeup >=1.2" in words
    assert words.count("to have a gap checked there, widen `versions` in its") == 1
    assert done.stdout.splitlines()[0] == "madeup 1.1"
    done = drift("drift", *_against("1.1"), "--format", "markdown")
    assert done.stdout.splitlines()[0] == "### madeup 1.1"
    done = drift("drift", *_against("1.1"), "--json")
    assert json.loads(done.stdout)["baseline"] == "nothing"


def test_what_no_locked_release_is_for_stops_nothing(drift: Any, project: Path) -> None:
    """Of 1.0, which is locked; the others are told by what the release has."""
    rows = [
        {
            "symbol": "madeup.voice:answer",
            "how": "calls",
            "versions": {"madeup": ">1.2"},
        },
        {
            "symbol": "madeup.core:answer",
            "how": "calls",
            "versions": {"madeup": "==1.4"},
        },
    ]
    watch = project / "more.jsonl"
    watch.write_text("\n".join(map(json.dumps, rows)))
    words = (*_against("1.4"), "--watch", str(watch), "--json")
    done = drift("drift", *words)
    assert done.returncode == 1, done.stderr
    told = [
        (f["gap"], f["symbol"], f["verdict"], f["breakage"])
        for f in json.loads(done.stdout)["findings"]
    ]
    assert told[-2:] == [
        ("watch", "madeup.voice:answer", "review", "unreadable"),
        ("watch", "madeup.core:answer", "broken", "removed"),
    ]
    assert {gap for gap, *_ in told[:-2]} == {"loud", "polite"}
    assert "as in `shims lock madeup==1.4`" in done.stdout
    done = drift("matrix", "--from", "1.0", "--package", "madeup", *words[-3:])
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)["gaps"]["watch"]
    assert row == {
        "1.0": None,
        "1.1": None,
        "1.2": None,
        "1.3": "review",
        "1.4": "broken",
    }


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


@pytest.mark.parametrize("columns", ["24", "30", "80"])
def test_a_matrix_that_is_too_wide_goes_on_below(drift: Any, columns: str) -> None:
    words = ("--from", "1.0", "--package", "madeup")
    done = drift("matrix", *words, extra={"COLUMNS": columns})
    table = done.stdout.partition("\n= same")[0].splitlines()
    heads = [line.split()[1:] for line in table if line.startswith("GAP")]
    assert [release for head in heads for release in head] == list(RELEASES)
    loud = [line.split()[1:] for line in table if line.startswith("loud")]
    assert [cell for row in loud for cell in row] == ["=", "≈", "~", "~", "X"]
    assert len(heads) == {"24": 2, "30": 1, "80": 1}[columns]


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


def test_a_lock_says_what_the_release_has_not(drift: Any, project: Path) -> None:
    registry = project / "registry.yaml"
    registry.write_text(registry.read_text().replace("core:answer", "core:anser", 1))
    done = drift("lock", "madeup==1.0")
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:3] == [
        "madeup 1.0: 1 symbol",
        "madeup 1.0 has no madeup.core:anser, which loud relies on; "
        "did you mean madeup.core:answer?",
    ]


def test_a_lock_of_our_own_registry_is_not_written_from_elsewhere(
    drift: Any,
) -> None:
    done = drift("lock", "madeup==1.0", extra={"ASCEND_SHIMS_REGISTRY": None})
    assert done.returncode == 2
    assert "name yours with --registry FILE" in done.stderr


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
        (("--against", __file__), "names no source; write installed"),
        (("--against", "./nowhere"), "there is no file or folder ./nowhere"),
        (("--against", "x.tar.gz"), "there is no file or folder x.tar.gz"),
        (("--against", "madeup==1.2", "--package", "other"), "not of other"),
        (("--gap", "lou"), "did you mean loud?"),
        (("--package", "madup"), "did you mean madeup?"),
        (("madeup==9.9",), "name a release by --against madeup==9.9"),
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


# The lock as baseline -------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Upstream as a folder of its own, of which no index has a release."""
    package = tmp_path / "checkout" / "madeup"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "_version.py").write_text("__version__ = '7.0'\n")
    (package / "core.py").write_text(RELEASES["1.0"]["core"])
    (package / "user.py").write_text(USER)
    return package.parent


PASSED = {
    "core.py": "def answer(word, tone=None):\n    return word\n",
    "user.py": USER.replace("answer('tea')", "answer('tea', tone=1)"),
}
REPLACE = ("kind: wrap, replacement: shout", "kind: replace, replacement: shout")


@pytest.mark.parametrize("cache", ["kept", "lost"])
def test_a_locked_folder_is_the_baseline_of_what_it_becomes(
    drift: Any, checkout: Path, project: Path, tmp_path: Path, cache: str
) -> None:
    """Its version is on no index, and its text is not what it was."""
    registry = project / "registry.yaml"
    registry.write_text(registry.read_text().replace(*REPLACE))
    ours = project / "madeup_patches" / "loud.py"
    ours.write_text("def shout(word):\n    return word.upper()\n")
    assert drift("lock", str(checkout)).returncode == 0
    words = ("--against", str(checkout), "--package", "madeup", "--json")
    same = json.loads(drift("drift", *words).stdout)
    assert {f["verdict"] for f in same["findings"]} == {"identical"}
    for name, text in PASSED.items():
        (checkout / "madeup" / name).write_text(text)
    extra = {"ASCEND_SHIMS_CACHE": str(tmp_path / cache)} if cache == "lost" else {}
    report = json.loads(drift("drift", *words, extra=extra).stdout)
    found = {f["gap"]: (f["verdict"], f["breakage"]) for f in report["findings"]}
    assert found["loud"] == ("broken", "optional-parameter-passed")
    assert len(report["notes"]) == (cache == "lost")
    assert all("facts in the lock" in note for note in report["notes"])


def test_offline_the_lock_is_enough(
    drift: Any, shims: Any, checkout: Path, tmp_path: Path
) -> None:
    """What is here is compared with it, whatever was cached of the baseline."""
    empty = {"ASCEND_SHIMS_CACHE": str(tmp_path / "empty")}
    index = ("--index-url", "http://index.invalid/simple", "--offline")
    (checkout / "madeup" / "_version.py").write_text("__version__ = '1.3'\n")
    words = ("--against", str(checkout), "--package", "madeup", *index)
    same = shims("drift", *words, "--json", extra=empty)
    assert same.returncode == 0, same.stderr
    report = json.loads(same.stdout)
    assert [f["verdict"] for f in report["findings"]] == ["identical", "identical"]
    assert report["notes"] == []
    (checkout / "madeup" / "core.py").write_text("def other():\n    return 1\n")
    gone = shims("drift", *words, extra=empty)
    assert gone.returncode == 1, gone.stderr
    assert "2 broken" in gone.stdout
    assert "note: compared with the facts in the lock" in gone.stdout
    diff = shims("diff", "loud", "--to", str(checkout), "--package", "madeup", *index)
    assert diff.returncode == 2
    assert "name another source of it with --from" in diff.stderr


def test_an_index_with_another_build_is_not_the_baseline(
    drift: Any, checkout: Path, tmp_path: Path
) -> None:
    """The lock was written from a build of our own that has the same version."""
    (checkout / "madeup" / "_version.py").write_text("__version__ = '1.2'\n")
    (checkout / "madeup" / "core.py").write_text(
        "def answer(word, *, volume=1):\n    return word * volume\n"
    )
    assert drift("lock", str(checkout)).returncode == 0
    empty = {"ASCEND_SHIMS_CACHE": str(tmp_path / "empty")}
    report = json.loads(drift("drift", *_against("1.2"), "--json", extra=empty).stdout)
    assert {f["verdict"] for f in report["findings"]} == {"compatible"}
    (note,) = report["notes"]
    assert "madeup 1.2 differs from it in 1 of" in note


def test_an_old_lock_is_written_anew(drift: Any, project: Path) -> None:
    lock = project / "registry.lock"
    lock.write_text('{"schema": 1, "baselines": {}}')
    refused = drift("drift", *_against("1.2"))
    assert refused.returncode == 2
    assert "write it anew, as in `shims lock" in refused.stderr
    assert drift("lock", "madeup==1.0").returncode == 0
    assert json.loads(lock.read_text())["schema"] == 2


def test_a_reader_that_has_seen_enough_is_no_finding(
    project: Path, environ: dict[str, str]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "ascend_shims", "status"],
        env=environ,
        cwd=project,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_next_command_reads_the_same_registry(
    drift: Any, project: Path, tmp_path: Path
) -> None:
    watch = tmp_path / "watch.jsonl"
    watch.write_text('{"symbol": "madeup.core:anser", "how": "calls"}\n')
    words = ("--registry", str(project / "registry.yaml"), "--watch", str(watch))
    # However long the path of a temporary directory is.
    wide = {"COLUMNS": "4000"}
    done = drift("drift", *_against("1.4"), *words, extra=wide)
    said = " ".join(done.stdout.split())
    assert f"--registry {project / 'registry.yaml'}" in said
    assert f"--watch {watch}" in said
    near = drift("drift", *_against("1.2"), *words, extra=wide)
    assert "did you mean `madeup.core:answer`?" in " ".join(near.stdout.split())
