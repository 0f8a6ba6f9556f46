"""`shims diff`: upstream's change of what a gap relies on, and what is to be ported."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REGISTRY = """
schema: 1
upstreams: [madeup, other]
package: differing_patches
gaps:
  - id: replaced
    title: T
    status: open
    kind: workaround
    why: W
    remove_when: R
    removal_probe:
      - says: upstream answers in a tone
        all: [{symbol: "madeup.core:answer", takes: tone}]
    patches:
      - {target: "madeup.core:answer", kind: replace, replacement: our_answer}
  - id: copied
    title: T
    status: open
    kind: workaround
    why: W
    remove_when: R
    patches:
      - target: "madeup.core:greet"
        kind: wrap
        replacement: politely
        relies_on: [{symbol: "madeup.core:Desk.sort", how: calls, copy: our_sort}]
  - id: swapped
    title: T
    status: open
    kind: workaround
    why: W
    remove_when: R
    patches:
      - target: "madeup.core:Desk"
        kind: replace
        replacement: OurDesk
        swap_is_safe: nobody keeps one
  - id: empty
    title: T
    status: open
    kind: adaptation
    why: W
    remove_when: R
    unpatched: >-
      Nothing was
      written yet.
  - id: elsewhere
    title: T
    status: open
    kind: adaptation
    why: W
    remove_when: R
    patches:
      - {target: "other.core:f", kind: wrap, replacement: politely}
"""

OLD = """
def answer(word):
    said = word
    said = said.strip()
    return said

def greet(name):
    return answer(name)

class Desk:
    def sort(self, papers):
        papers = list(papers)
        return sorted(papers)

def work():
    return greet("x"), Desk().sort([1]), answer("y")
"""
NEW = (
    OLD.replace("def answer(word):", "def answer(word, tone=None):")
    .replace("said = word", "said = word or 'nothing'")
    .replace("    return said\n", "    said = said.lower()\n    return said\n")
    .replace("return sorted(papers)", "return sorted(papers, reverse=True)")
)
PATCHES = """
raise RuntimeError("a patches module was imported")

def our_answer(word):
    said = npu(word)
    said = said.strip()
    said = said.lower()
    return said

def politely(call, *args, **kwargs):
    return call(*args, **kwargs)

def our_sort(desk, papers):
    papers = list(papers)
    return sorted(papers)

class OurDesk:
    def sort(self, papers):
        papers = list(papers)
        return sorted(papers)
"""


@pytest.fixture
def differing(tmp_path: Path) -> Path:
    """Three releases as directories, a registry and its patches."""
    files = {
        "1/madeup/__init__.py": "",
        "1/madeup/core.py": OLD,
        "2/madeup/__init__.py": "",
        "2/madeup/core.py": NEW,
        "3/madeup/__init__.py": "",
        "3/madeup/core.py": "from madeup.voice import greet, Desk, work\n",
        "3/madeup/voice.py": OLD,
        "differing_patches/__init__.py": "",
        "registry.yaml": REGISTRY,
    }
    for module in ("replaced", "copied", "swapped", "elsewhere"):
        files[f"differing_patches/{module}.py"] = PATCHES
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return tmp_path


@pytest.fixture
def command(differing: Path) -> tuple[list[str], dict[str, str]]:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("ASCEND_SHIMS")}
    environ |= {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), str(differing)]),
        "ASCEND_SHIMS_CACHE": str(differing / "cache"),
        "COLUMNS": "100",
    }
    words = [sys.executable, "-m", "ascend_shims", "diff", "--package", "madeup"]
    return [*words, "--registry", str(differing / "registry.yaml")], environ


Diff = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def diff(differing: Path, command: tuple[list[str], dict[str, str]]) -> Diff:
    words, environ = command

    def run(*more: str, old: str = "1", new: str = "2") -> Any:
        sources = ["--from", str(differing / old), "--to", str(differing / new)]
        return subprocess.run(
            [*words, *sources, *more],
            env=environ,
            cwd=differing,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_a_replaced_body_is_shown_three_ways(diff: Diff) -> None:
    done = diff("replaced")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    # The probe first: what need not be ported at all.
    assert "no longer needs `replaced`: upstream answers in a tone" in lines[0]
    assert "\x1b" not in done.stdout
    assert [line for line in lines if line.startswith("@@")] == [
        "@@ 1 of 2: ours differs here: port it by hand @@",
        "@@ 2 of 2: ours already has this @@",
    ]
    start = lines.index("@@ 1 of 2: ours differs here: port it by hand @@")
    assert lines[start + 1 : start + 5] == [
        "-def answer(word):",
        "-    said = word",
        "+def answer(word, tone=None):",
        "+    said = word or 'nothing'",
    ]
    number = PATCHES.splitlines().index("def our_answer(word):") + 1
    assert lines[start + 5 : start + 7] == [
        f"={number:5} def our_answer(word):",
        f"={number + 1:5}     said = npu(word)",
    ]


def test_a_declared_copy_has_its_change_to_port(diff: Diff) -> None:
    done = diff("copied")
    assert done.returncode == 1, done.stderr
    assert "madeup.core:Desk.sort  (calls)" in done.stdout
    assert "@@ 1 of 1: ours still has the old lines: port it @@" in done.stdout
    assert "review: the body of `madeup.core:Desk.sort` changed" in done.stdout
    # What is only wrapped is not ours to port.
    assert "madeup.core:greet" not in done.stdout


def test_a_swapped_class_is_shown_three_ways(diff: Diff) -> None:
    report = json.loads(diff("swapped", "--json").stdout)
    (change,) = report["changes"]
    assert change["how"] == "replaces_class_binding"
    assert change["ours"]["name"] == "OurDesk"
    (hunk,) = change["hunks"]
    assert hunk["standing"] == "to-port"
    assert hunk["old"] == ["        return sorted(papers)"]
    assert hunk["new"] == ["        return sorted(papers, reverse=True)"]
    ours = PATCHES.splitlines()
    assert ours[hunk["line"] - 1] == hunk["ours"][0]


def test_json_has_all_of_it(diff: Diff, differing: Path) -> None:
    done = diff("replaced", "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["schema"] == 1
    assert report["gap"] == "replaced"
    assert [one["verdict"] for one in report["probe"]] == ["fixed-upstream"]
    (change,) = report["changes"]
    assert change["symbol"] == "madeup.core:answer"
    assert change["verdict"] == "review"
    assert change["old"]["text"].startswith("def answer(word):")
    assert change["new"]["text"].startswith("def answer(word, tone=None):")
    assert "+def answer(word, tone=None):" in change["diff"]
    assert change["ours"]["path"] == str(differing / "differing_patches/replaced.py")
    assert [hunk["standing"] for hunk in change["hunks"]] == ["by-hand", "ported"]


def test_in_a_terminal_it_is_coloured(
    differing: Path, command: tuple[list[str], dict[str, str]]
) -> None:
    words, environ = command
    parent, child = pty.openpty()
    sources = ["--from", str(differing / "1"), "--to", str(differing / "2")]
    done = subprocess.run(
        [*words, *sources, "replaced"],
        env=environ,
        stdout=child,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(child)
    said = b""
    try:
        while chunk := os.read(parent, 65536):
            said += chunk
    except OSError:  # the other end is closed
        pass
    os.close(parent)
    assert done.returncode == 1, done.stderr
    assert b"\x1b[31m-def answer(word):\x1b[0m" in said
    assert b"\x1b[32m+def answer(word, tone=None):\x1b[0m" in said


def test_a_target_that_is_gone_is_said_to_be_gone(diff: Diff) -> None:
    done = diff("replaced", new="3")
    assert done.returncode == 1, done.stderr
    assert "\nbroken: " in done.stdout
    assert "madeup.core:answer" in done.stdout
    assert "now madeup.voice:answer" in done.stdout
    assert "not there" in done.stdout
    assert "-def answer(word):" in done.stdout
    assert "whether" in done.stdout.splitlines()[0]  # the probe has no answer


def test_nothing_changed(diff: Diff) -> None:
    done = diff("copied", new="1")
    assert done.returncode == 0
    assert done.stdout.startswith("Nothing that copied relies on differs between")


def test_a_gap_without_patches(diff: Diff) -> None:
    done = diff("empty")
    assert (done.returncode, done.stdout) == (
        0,
        "empty relies on nothing upstream: Nothing was written yet.\n",
    )
    report = json.loads(diff("empty", "--json").stdout)
    assert (report["changes"], report["unpatched"]) == ([], "Nothing was written yet.")


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        ("replacd", "no gap is called 'replacd'; did you mean replaced?"),
        ("zzz", "there are copied, elsewhere, empty, replaced, swapped"),
        ("elsewhere", "elsewhere relies on nothing in madeup, but on other: name"),
    ],
)
def test_misuse_is_said_plainly(gap: str, said: str, diff: Diff) -> None:
    done = diff(gap)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_show_prints_the_probe_and_its_answer(
    differing: Path, command: tuple[list[str], dict[str, str]]
) -> None:
    _, environ = command
    environ = {
        **environ,
        "ASCEND_SHIMS_REGISTRY": str(differing / "registry.yaml"),
        "ASCEND_SHIMS_ALLOW": "differing_patches",
    }
    words = [sys.executable, "-m", "ascend_shims", "show", "replaced"]

    def show(path: str, *more: str) -> str:
        paths = os.pathsep.join([environ["PYTHONPATH"], path])
        done = subprocess.run(
            [*words, *more],
            env={**environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    nowhere = show("")
    assert "No longer needed when\n  upstream answers in a tone\n" in nowhere
    assert "madeup is not installed here" in nowhere
    assert "Drift" not in nowhere
    old = show(str(differing / "1"))
    assert "not seen in madeup" in old
    assert "- `madeup.core:answer` takes no `tone`" in old
    assert "\nDrift\n" in old
    assert "shims lock" in old
    (sign,) = json.loads(show(str(differing / "2"), "--json"))["probe"]
    assert (sign["says"], sign["seen"]) == ("upstream answers in a tone", "yes")
    assert [one["at"] for one in sign["told"]] == ["madeup/core.py:2"]


def test_show_says_what_drift_says_of_what_is_installed(
    differing: Path, command: tuple[list[str], dict[str, str]]
) -> None:
    _, environ = command
    environ = {**environ, "ASCEND_SHIMS_ALLOW": "differing_patches"}
    registry = str(differing / "registry.yaml")

    def run(path: str, *words: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join([environ["PYTHONPATH"], str(differing / path)])
        return subprocess.run(
            [sys.executable, "-m", "ascend_shims", *words, "--registry", registry],
            env={**environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    for path in ("1", "2"):
        said = f'__version__ = "{path}.0"\n'
        (differing / path / "madeup" / "_version.py").write_text(said)
    locked = run("1", "lock", str(differing / "1"))
    assert locked.returncode == 0, locked.stderr
    same = json.loads(run("1", "show", "replaced", "--json").stdout)["drift"]
    assert [(one["package"], one["verdicts"]) for one in same] == [
        ("madeup", {"identical": 2})
    ]
    (other,) = json.loads(run("2", "show", "replaced", "--json").stdout)["drift"]
    assert sum(other["verdicts"].values()) == 2
    assert other["says"]
    counted = ", ".join(f"{n} {kind}" for kind, n in other["verdicts"].items())
    assert "identical" not in counted.partition(",")[0]
    told = run("2", "show", "replaced").stdout
    assert f"\nDrift\n  {counted}\n" in told
    words = " ".join(told.split())
    assert all(" ".join(one.split()) in words for one in other["says"])
