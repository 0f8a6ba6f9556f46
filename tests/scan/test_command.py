"""`shims scan` as a command, against an index on disk."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any
from xml.etree import ElementTree

import pytest

from ascend_shims.cli.scanned import _filled
from ascend_shims.registry import load

RELEASES = {
    "1.0": "def answer(word): return word\ndef gone(): ...\ndef _hidden(): ...\n",
    "1.1": "def answer(word): return word\ndef gone(): ...\ndef _hidden(): ...\n",
    "1.2": "def answer(word, tone): return word\ndef ask(): return answer(1, 2)\n",
}
PLUGIN = """
    import madeup.core as core
    from madeup.core import _hidden
    from .utils import madeup_version_is

    # They answer too softly.
    def answer(word): ...
    core.answer = answer
    core.gone = lambda: None
    core.answr = answer
    try:
        core.never = answer
    finally:
        pass
"""


@pytest.fixture
def shims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run `shims scan` in a folder with a plugin and an index."""
    page = tmp_path / "index" / "madeup"
    page.mkdir(parents=True)
    for version, core in RELEASES.items():
        files = {
            "PKG-INFO": f"Name: madeup\nVersion: {version}\n",
            "madeup/__init__.py": "",
            "madeup/core.py": core,
        }
        with tarfile.open(page / f"madeup-{version}.tar.gz", "w:gz") as archive:
            for path, text in files.items():
                member = tarfile.TarInfo(f"madeup-{version}/{path}")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
    links = [f'<a href="madeup-{v}.tar.gz">madeup-{v}.tar.gz</a>' for v in RELEASES]
    (page / "index.html").write_text("\n".join(links))
    plug = tmp_path / "plug"
    plug.mkdir()
    (plug / "__init__.py").write_text("")
    (plug / "patch.py").write_text(dedent(PLUGIN))
    (plug / "old.py").write_text("print 'two'\n")
    (plug / "test_it.py").write_text("")

    def run(*words: str, command: str = "scan", index: bool = True) -> Any:
        environ = {
            **os.environ,
            "ASCEND_SHIMS_CACHE": str(tmp_path / "cache"),
            "PIP_CONFIG_FILE": "/dev/null",
            "COLUMNS": "80",
        }
        for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
            environ.pop(name, None)
        where = ("--index-url", (tmp_path / "index").as_uri()) if index else ()
        return subprocess.run(
            [sys.executable, "-m", "ascend_shims", command, *words, *where],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


AGAINST = ("plug", "--upstream", "madeup", "--against", "madeup==1.2")


def test_an_inventory_needs_no_release(shims: Any) -> None:
    done = shims("plug", "--upstream", "madeup", "--offline")
    assert done.returncode == 0, done.stderr
    assert "madeup.core:answer" in done.stdout
    assert "not scanned: plug/old.py: is Python 2" in done.stdout
    assert "1 test file left out; --tests takes it in" in done.stdout
    assert "2 files · 4 patches in 1 · 0 subclasses" in done.stdout
    assert done.stdout.splitlines()[-1].endswith(
        " --offline --against vllm@latest   (what it breaks; --all shows the rest here)"
    )


def test_a_release_gives_verdicts_questions_and_an_exit_code(shims: Any) -> None:
    done = shims(*AGAINST)
    assert done.returncode == 1, done.stderr
    text = " ".join(done.stdout.split())
    assert "8 broken madeup.core:answer replaces it" in text
    assert "9 broken madeup.core:gone" in text
    assert "10 nowhere madeup.core:answr" in text
    assert "3 broken madeup.core:_hidden imports it, though it is private" in text
    assert "madeup 1.2 against madeup 1.1: 3 broken" in text
    assert "questions: 2 exists-nowhere" in text
    # But for the last one, which is copied.
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--fail-on", "broken"), 1),
        (("--fail-on", "never"), 0),
        (("--against", "madeup==1.1", "--fail-on", "broken"), 0),
        (("--against", "madeup==1.1", "--fail-on", "review"), 1),
        # Its own calls do not fit the replacement, whatever was before.
        (("--baseline", "madeup==1.2", "--fail-on", "broken"), 1),
    ],
)
def test_what_fails(shims: Any, words: tuple[str, ...], code: int) -> None:
    done = shims(*AGAINST, *words)
    assert done.returncode == code, done.stdout + done.stderr


def test_json_has_everything(shims: Any) -> None:
    done = shims(*AGAINST, "--json")
    told = json.loads(done.stdout)
    assert (told["schema"], told["files"], told["tests_left_out"]) == (1, 2, 1)
    assert told["releases"] == ["madeup 1.2"]
    assert told["baseline"] == "madeup 1.1"
    assert told["skipped"] == [{"file": "plug/old.py", "reason": "is Python 2"}]
    rows = {row["target"]: row for row in told["found"]}
    answer = rows["madeup.core:answer"]
    assert (answer["line"], answer["form"], answer["is_patch"]) == (
        8,
        "assignment",
        True,
    )
    assert answer["comment"] == "They answer too softly."
    (verdict,) = answer["verdicts"]
    assert (verdict["verdict"], verdict["breakage"]) == (
        "broken",
        "required-parameter-added",
    )
    assert [q["target"] for q in told["questions"]] == [
        "madeup.core:answr",
        "madeup.core:never",
    ]
    # What is nowhere has no verdict.
    assert rows["madeup.core:answr"]["verdicts"] == []


def test_a_range_says_since_when(shims: Any) -> None:
    words = ("plug", "--upstream", "madeup", "--baseline", "madeup==1.0")
    done = shims(*words, "--from", "1.0", "--json")
    told = json.loads(done.stdout)
    assert told["releases"] == ["madeup 1.0", "madeup 1.1", "madeup 1.2"]
    rows = {row["target"]: row for row in told["found"]}
    kinds = [v["verdict"] for v in rows["madeup.core:gone"]["verdicts"]]
    assert kinds == ["identical", "identical", "broken"]
    gone = [q for q in told["questions"] if q["kind"] == "reason-gone"]
    assert [q["target"] for q in gone] == ["madeup.core:gone"]

    text = " ".join(shims(*words, "--from", "1.0").stdout.split())
    assert "since madeup 1.2: madeup 1.2 has no `gone`" in text
    assert "madeup 1.1 against madeup 1.0: 3 identical" in text


def test_a_range_ends_where_it_is_told(shims: Any) -> None:
    words = ("plug", "--upstream", "madeup", "--baseline", "madeup==1.0", "--json")
    told = json.loads(shims(*words, "--from", "1.0", "--to", "1.1").stdout)
    assert told["releases"] == ["madeup 1.0", "madeup 1.1"]


def test_sarif_points_at_the_plugin(shims: Any) -> None:
    log = json.loads(shims(*AGAINST, "--format", "sarif").stdout)
    (run,) = log["runs"]
    found = {
        (
            result["ruleId"],
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            result["locations"][0]["physicalLocation"]["region"]["startLine"],
        )
        for result in run["results"]
    }
    assert ("broken/required-parameter-added", "plug/patch.py", 8) in found
    assert ("review/exists-nowhere", "plug/patch.py", 10) in found
    prints = [result["partialFingerprints"] for result in run["results"]]
    assert len({json.dumps(one) for one in prints}) == len(prints) == 5


def test_the_other_formats(shims: Any) -> None:
    suite = ElementTree.fromstring(shims(*AGAINST, "--format", "junit").stdout)
    assert (suite.get("tests"), suite.get("failures")) == ("5", "5")
    assert "| broken | patch |" in shims(*AGAINST, "--format", "markdown").stdout
    said = shims(*AGAINST, "--format", "github").stdout
    assert "::error file=plug/patch.py,line=8,title=patch%3A broken::" in said


def test_the_draft_is_written_and_valid(shims: Any, tmp_path: Path) -> None:
    done = shims(
        "plug", "--upstream", "madeup", "--offline", "--registry-out", "r.yaml"
    )
    assert done.returncode == 0, done.stderr
    assert "wrote r.yaml" in done.stderr
    registry = load(tmp_path / "r.yaml")
    assert [gap.id for gap in registry.gaps] == ["patch"]
    assert registry["patch"].why == "They answer too softly."
    assert registry.upstreams == ("madeup",)


def test_a_draft_takes_no_files_place(shims: Any, tmp_path: Path) -> None:
    words = ("plug", "--upstream", "madeup", "--offline", "--registry-out", "r.yaml")
    (tmp_path / "r.yaml").write_text("precious")
    done = shims(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "r.yaml is there already" in done.stderr
    assert "--registry-out r.yaml --force" in done.stderr
    assert (tmp_path / "r.yaml").read_text() == "precious"
    assert shims(*words, "--force").returncode == 0
    assert load(tmp_path / "r.yaml").gaps[0].id == "patch"
    # A link that leads nowhere is no place to write to either.
    (tmp_path / "l.yaml").symlink_to("elsewhere.yaml")
    assert shims(*words[:-1], "l.yaml").returncode == 2
    assert not (tmp_path / "elsewhere.yaml").exists()


def test_a_draft_that_cannot_be_written_leaves_nothing(
    shims: Any, tmp_path: Path
) -> None:
    (tmp_path / "r.yaml").write_text("precious")
    words = ("plug/test_it.py", "--tests", "--registry-out", "r.yaml", "--force")
    done = shims(*words)
    assert done.returncode == 2
    assert (tmp_path / "r.yaml").read_text() == "precious"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".r")] == []


def test_the_commands_that_are_named_next_work(shims: Any, tmp_path: Path) -> None:
    """Of a draft that has no lock yet; what is gated to other releases is told."""
    patch = tmp_path / "plug" / "patch.py"
    gated = "import madeup\nif madeup.__version__ == '1.2':\n    core.ask = answer\n"
    patch.write_text(patch.read_text() + gated)
    against = ("--against", "madeup==1.1", "--baseline", "madeup==1.0")
    done = shims("plug", "--upstream", "madeup", *against, "--registry-out", "r.yaml")
    said = [one for one in done.stderr.splitlines() if ": shims " in one]
    assert len(said) == 2
    first, then = (shlex.split(one.partition(": shims ")[2]) for one in said)
    assert first[:4] == ["lock", "madeup==1.0", "--registry", "r.yaml"]
    assert then[:3] == ["drift", "--against", "madeup@latest"]
    done = shims(*then[1:], command=then[0], index=False)
    assert done.returncode == 2
    assert "has no baseline" in done.stderr
    assert shims(*first[1:], command=first[0], index=False).returncode == 0
    done = shims(*then[1:], "--json", command=then[0], index=False)
    assert done.returncode == 1, done.stderr
    found = {f["symbol"]: f for f in json.loads(done.stdout)["findings"]}
    assert found["madeup.core:gone"]["breakage"] == "removed"
    ask = found["madeup.core:ask"]
    assert (ask["verdict"], ask["breakage"]) == ("review", "unreadable")
    assert "as in `shims lock madeup==1.2`" in ask["sentence"]


def test_the_table_lists_what_it_counts(shims: Any, tmp_path: Path) -> None:
    (tmp_path / "plug" / "sub.py").write_text(
        "from madeup.core import Engine\n\n\nclass Ours(Engine):\n"
        "    def step(self):\n        ...\n"
    )
    words = ("plug", "--upstream", "madeup", "--offline")
    plain, full = shims(*words).stdout, shims(*words, "--all").stdout
    assert "1 subclass · " in plain
    assert "1 private name" in " ".join(plain.split())
    assert "madeup.core:Engine" not in plain
    assert "\nNext: shims scan plug --upstream madeup --index-url " in plain
    assert "4  madeup.core:Engine\n" in full
    assert "3  madeup.core:_hidden\n" in full
    full = shims(*AGAINST, "--all").stdout
    told = json.loads(shims(*AGAINST, "--json").stdout)
    for row in told["found"]:
        assert f"{row['line']:>5}  " in full
        assert row["target"] in full


def test_markdown_says_where_a_thing_is_now(shims: Any) -> None:
    text = shims(*AGAINST, "--format", "markdown").stdout
    said = " ".join(text.split())
    assert "`madeup/core.py:1` |" in said
    assert "has no `gone` in `madeup.core`, without a successor | gone |" in said
    assert text.count("unless it is a name of your own |  |") == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere",), "'nowhere' does not exist"),
        ((), "Missing argument"),
        (("plug", "--against", "a==1", "--from", "1"), "--from and --to several"),
        (("plug", "--from", "x", "--baseline", "madeup==1.0"), "'x' is no version"),
        (("plug", "--to", "1.1", "--baseline", "madeup==1.0"), "--to needs --from"),
        (
            ("plug", "--from", "9", "--baseline", "madeup==1.0"),
            "madeup has no release from 9 to now",
        ),
        (("plug", "--against", "madeup==7"), "7"),
        (("plug/test_it.py", "--registry-out", "r.yaml"), "no patch was found"),
        (("plug", "--registry-out", "no/such/r.yaml"), "cannot be written"),
    ],
)
def test_misuse(shims: Any, words: tuple[str, ...], said: str) -> None:
    done = shims(*words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_nothing_of_upstream_or_the_plugin_is_imported(
    shims: Any, tmp_path: Path
) -> None:
    (tmp_path / "plug" / "boom.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "plug" / "__init__.py").write_text("raise SystemExit('imported')\n")
    assert shims(*AGAINST, "--fail-on", "never").returncode == 0


def test_a_project_without_patches_has_none_in_nothing(
    shims: Any, tmp_path: Path
) -> None:
    """Its registry is another command's, which is told."""
    (tmp_path / "plain folder" / "acme").mkdir(parents=True)
    (tmp_path / "plain folder" / "acme" / "a.py").write_text("")
    (tmp_path / "plain folder" / "acme" / "gap_registry.yaml").write_text("")
    done = shims("plain folder", "--offline")
    first, *_, registry, after = done.stdout.splitlines()
    assert first.startswith("1 file · 0 patches · 0 subclasses · ")
    path = "plain folder/acme/gap_registry.yaml"
    assert registry == (
        f"The gaps of {path} are checked by: shims drift --registry '{path}'"
    )
    assert after.startswith("Next: shims scan 'plain folder' --index-url ")
    assert after.endswith(" --offline --against vllm@latest   (what it breaks)")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("there is no `a.b.c.d` now", ["there is no", "`a.b.c.d` now"]),
        ("no `long.names.here.go`", ["no", "`long.names.", "here.go`"]),
    ],
)
def test_a_name_is_broken_only_where_no_line_holds_it(
    text: str, lines: list[str]
) -> None:
    assert list(_filled(text, 14)) == lines
