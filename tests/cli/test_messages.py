"""What a person is told: what to do next, how many, and lines that fit a terminal."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from ascend_shims.cli import main
from ascend_shims.cli.here import lacks_npu
from ascend_shims.cli.near import nearest
from ascend_shims.cli.render import ShimsConsole, table
from ascend_shims.registry import load
from ascend_shims.words.catalogue import load as load_words
from ascend_shims.words.counting import counted
from ascend_shims.words.folding import columns
from ascend_shims.words.language import unspoken

from .test_drift import drift, index

__all__ = ["drift", "index"]

OURS = {"ASCEND_SHIMS_REGISTRY": None}
UNREACHABLE = "https://localhost:9/simple"


# What to do next ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["show"],
            "Error: Missing argument 'GAP'. shims status --all lists the gaps [usage]",
        ),
        (
            ["diff"],
            "Error: Missing argument 'GAP'. shims status --all lists the gaps [usage]",
        ),
        (
            ["audit"],
            "Error: Missing argument 'MODULE…'. For example: "
            "shims audit vllm.v1.worker.gpu --plugins [usage]",
        ),
        (
            ["run"],
            "Error: Missing argument 'COMMAND…'. For example: "
            "shims run -- vllm serve MODEL [usage]",
        ),
        (
            ["new-gap"],
            "Error: Missing argument 'ID'. For example: "
            "shims new-gap two-pools --target vllm.v1.core.block_pool:BlockPool.touch "
            "[usage]",
        ),
        (
            ["status", "--watch", "abc"],
            "Error: Invalid value for '--watch': 'abc' is no number of seconds; write "
            "one, as 2.5 [usage]",
        ),
        (
            ["verify", "--timeout", "1h"],
            "Error: Invalid value for '--timeout': '1h' is no number of seconds; write "
            "one, as 2.5 [usage]",
        ),
        (
            ["audit", "madeup.nothing"],
            "Error: Invalid value: nothing could be imported: madeup.nothing: "
            "ModuleNotFoundError: No module named 'madeup.nothing'; name a module that "
            "is installed there, or another interpreter with --python [usage]",
        ),
        (
            ["run", "--", "no-such-command"],
            "shims: there is no command 'no-such-command' on PATH; correct it, or "
            "write its path [switch]",
        ),
        (
            ["explain", "nope"],
            "Error: Invalid value: no code is called 'nope'; see them all with: "
            "shims explain [usage]",
        ),
        (
            ["doctor", "--force"],
            "Error: --force is for --report FILE: name FILE, or leave out --force "
            "[usage]",
        ),
        (
            ["scan", ".", "--against", "madeup==1.0", "--from", "1.0"],
            "Error: Invalid value: --against names one release, --from and --to "
            "several: leave out either [usage]",
        ),
        (
            ["bisect", "zzzzzz", "--repo", ".", "--good", "x"],
            None,
        ),
    ],
)
def test_a_mistake_is_told_with_what_to_do(
    shims: Any, words: list[str], said: str | None
) -> None:
    done = shims(*words)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    if said is None:
        assert re.search(r"; (write|name|did|shims) |not a git", last), last
    else:
        assert last == said


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (
            ("drift", "--against", "madeup==9.9", "--package", "madeup"),
            "; try another index with --index-url, the cache with --offline, or a "
            "wheel or a folder with --against [index-unreachable]",
        ),
        (
            ("matrix", "--package", "madeup", "--from", "1.0"),
            "; try another index with --index-url, or the cache with --offline "
            "[index-unreachable]",
        ),
    ],
)
@pytest.mark.usefixtures("drift")
def test_an_index_that_does_not_answer(
    shims: Any, tmp_path: Path, words: tuple[str, ...], hint: str
) -> None:
    # Another cache than that in which what was locked lies.
    cache = {"ASCEND_SHIMS_CACHE": str(tmp_path / "empty"), "NO_PROXY": "*"}
    done = shims(*words, "--index-url", UNREACHABLE, extra=cache)
    (line,) = [one for one in done.stderr.splitlines() if "cannot reach" in one]
    assert done.returncode == 2
    assert line.startswith("shims: cannot reach ")
    assert line.endswith(hint)
    assert line.count("--index-url") == 1


def test_a_release_that_there_is_not(drift: Any) -> None:
    done = drift("matrix", "--package", "madeup", "--from", "9.0")
    assert done.stderr.splitlines()[-1] == (
        "Error: Invalid value: madeup has no release from 9.0 on; name an older one "
        "with --from [usage]"
    )


@pytest.mark.parametrize(
    ("reason", "kind", "amiss"),
    [
        ("ASCEND_SHIMS_DEVICE=npu, but torch_npu is not installed", "npu", True),
        ("torch_npu and /dev/davinci0", "npu", False),
        ("ASCEND_SHIMS_DEVICE=sim", "sim", False),
        ("torch_npu is not installed", "none", False),
    ],
)
def test_an_npu_that_is_asked_for_is_looked_for(
    reason: str, kind: str, amiss: bool
) -> None:
    assert lacks_npu(kind, reason) is amiss


@pytest.mark.skipif(bool(list(Path("/dev").glob("davinci[0-9]*"))), reason="an NPU")
def test_status_of_an_npu_that_is_not_there_sends_to_the_doctor(shims: Any) -> None:
    done = shims("status", extra={"ASCEND_SHIMS_DEVICE": "npu"})
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == (
        "Next: shims doctor   (the NPU that is asked for is not here)"
    )


# Near names -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("nope", None),
        ("foo", None),
        ("test", None),
        ("", None),
        ("aplied", "applied"),
        ("PENDIG", "pending"),
        ("skipped", "version-skipped"),
        ("nods", "nodes"),
        ("bar", None),
    ],
)
def test_only_what_is_near_is_suggested(word: str, near: str | None) -> None:
    known = ["applied", "pending", "nodes", "off", "version-skipped", "lost"]
    assert nearest(word, known) == near


def test_a_part_of_several_names_tells_none() -> None:
    assert nearest("target", ["missing-the-target", "a-target-is-gone"]) is None


# Numbers of things ----------------------------------------------------------------


def test_one_thing_is_not_several() -> None:
    told = [counted(n, "1 file", "{number} files") for n in (0, 1, 2)]
    assert told == ["0 files", "1 file", "2 files"]
    chinese = load_words("zh_CN")
    assert [chinese.said(one) for one in told] == ["0 个文件", "1 个文件", "2 个文件"]


@pytest.mark.parametrize(
    "text", ["Revert two commits", "Cut long files", "Two modules", "four releases"]
)
def test_what_is_no_number_stays_as_it_is(text: str) -> None:
    assert load_words("zh_CN").said(text) == text


@pytest.mark.parametrize(
    ("language", "first"),
    [
        (
            "en",
            "1 file · 1 patch in 1 · 1 subclass · 0 private names",
        ),
        ("zh_CN", "1 个文件 · 1 个文件中 1 个补丁 · 1 个子类 · 0 个私有名字"),
    ],
)
def test_a_scan_of_one_file(
    shims: Any, tmp_path: Path, language: str, first: str
) -> None:
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    (plugin / "one.py").write_text(
        "import vllm.core as core\nfrom vllm.core import Base\n\n\n"
        "class Mine(Base): ...\n\n\ncore.answer = None\n"
    )
    extra = {"ASCEND_SHIMS_LANG": language, "PYTHONIOENCODING": "utf-8"}
    lines = shims("scan", str(plugin), extra=extra).stdout.splitlines()
    (found,) = [one for one in lines if " · " in one and one[0].isdigit()]
    # Which methods are overrides is told where upstream is installed.
    assert re.sub(r" · \d+ (overrides?|个重写)", "", found) == first


def test_a_single_test_is_left_out(shims: Any, tmp_path: Path) -> None:
    (tmp_path / "plugin" / "tests").mkdir(parents=True)
    (tmp_path / "plugin" / "tests" / "test_a.py").write_text("")
    done = shims("scan", "plugin")
    assert "; 1 file of tests is left out, --tests takes it in" in done.stderr
    (tmp_path / "plugin" / "a.py").write_text("")
    done = shims("scan", "plugin")
    assert "1 test file left out; --tests takes it in" in done.stdout


# Lines ----------------------------------------------------------------------------


_TABLES = [
    ("status",),
    ("status", "--all"),
    ("status", "--assume", "madeup=1.2.0"),
    ("show", "loud"),
    ("apply-check",),
    ("explain",),
    ("explain", "lost"),
    ("doctor",),
    ("scan", "madeup_patches"),
    ("scan", "madeup_patches", "--all"),
    ("schema",),
]


def _blank(text: str) -> list[str]:
    return [line for line in text.splitlines() if line != line.rstrip()]


@pytest.mark.parametrize("words", _TABLES, ids=" ".join)
@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_no_line_ends_with_a_blank(
    shims: Any, words: tuple[str, ...], language: str
) -> None:
    extra = {"ASCEND_SHIMS_LANG": language, "PYTHONIOENCODING": "utf-8"}
    done = shims(*words, extra=extra)
    assert done.returncode in (0, 1), done.stderr
    assert len(done.stdout) > 20
    assert _blank(done.stdout) == []


@pytest.mark.parametrize(
    "words",
    [
        ("drift", "--against", "madeup==1.4", "--package", "madeup"),
        ("drift", "--against", "madeup==1.4", "--package", "madeup", "--all"),
        ("matrix", "--package", "madeup", "--from", "1.0"),
        ("diff", "loud", "--to", "madeup==1.4"),
    ],
    ids=" ".join,
)
def test_no_line_about_releases_ends_with_a_blank(
    drift: Any, words: tuple[str, ...]
) -> None:
    done = drift(*words)
    assert done.returncode in (0, 1), done.stderr
    told = [
        line for line in _blank(done.stdout) if not line.startswith((" ", "+", "-"))
    ]
    assert told == []
    assert len(done.stdout) > 20


def test_neither_does_one_in_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = ShimsConsole()
    out._file, out._force_terminal = io.StringIO(), True
    out._color_system = out._detect_color_system() or out._color_system
    rows = table("GAP", "WHY")
    rows.add_row("a", Text("red and long", "red"))
    rows.add_row("a-long-id", "b")
    out.print(rows)
    out.print(" ".join(["a sentence that is folded"] * 4), style="dim")
    assert isinstance(out._file, io.StringIO)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out._file.getvalue())
    assert plain.count("\n") > 4
    assert _blank(plain) == []


@pytest.fixture
def said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run a command in this process, as wide as a terminal of so many columns."""
    for name in [
        n for n in os.environ if n.startswith(("LC_", "LANG", "ASCEND_SHIMS"))
    ]:
        monkeypatch.delenv(name)

    def run(*words: str, width: int, language: str) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("ASCEND_SHIMS_LANG", language)
        assert main(list(words)) in (0, 1)
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("language", ["en", "zh_CN"])
@pytest.mark.parametrize("width", [50, 80, 100])
def test_no_line_about_a_gap_is_wider_than_the_terminal(
    said: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    language: str,
) -> None:
    # Neither who is running nor what its gaps rely on in a release is asked each time.
    monkeypatch.setattr("ascend_shims.cli.show.ask_all", list)
    monkeypatch.setattr("ascend_shims.cli.show.drifted", lambda *_: [])
    monkeypatch.setattr("ascend_shims.cli.show._probed", lambda _: [])
    for gap in load().gaps:
        for line in said("show", gap.id, width=width, language=language).splitlines():
            # What is copied is not broken: it stands alone, but for its indent.
            is_copied = len(line.split()) == 1
            assert is_copied or columns(line) <= width, (gap.id, line)


# The language ---------------------------------------------------------------------


def _stream(encoding: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding)


@pytest.mark.parametrize(
    ("environ", "encoding", "expected"),
    [
        ({"ASCEND_SHIMS_LANG": "zh_CN"}, "ascii", "ascii"),
        ({"LANG": "zh_CN.UTF-8"}, "latin-1", "latin-1"),
        ({"ASCEND_SHIMS_LANG": "zh_CN"}, "utf-8", None),
        ({"ASCEND_SHIMS_LANG": "en", "LANG": "zh_CN.UTF-8"}, "ascii", None),
        ({"LANG": "de_DE.UTF-8"}, "ascii", None),
        ({}, "ascii", None),
    ],
)
def test_who_cannot_be_answered_in_chinese(
    environ: dict[str, str], encoding: str, expected: str | None
) -> None:
    fine, asked = _stream("utf-8"), _stream(encoding)
    assert unspoken(environ, fine, asked) == expected
    assert unspoken(environ, None) is None


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_the_doctor_says_why_english_is_spoken(
    shims_json: Any, shims: Any, encoding: str
) -> None:
    extra = {"ASCEND_SHIMS_LANG": "zh_CN", "PYTHONIOENCODING": encoding}
    findings = {
        one["code"]: one for one in shims_json("doctor", extra=extra)["findings"]
    }
    if encoding == "utf-8":
        assert "language-unwritable" not in findings
        return
    assert findings["language-unwritable"] == {
        "code": "language-unwritable",
        "area": "switches",
        "verdict": "notice",
        "seen": "Chinese is wanted, and English is spoken: ascii, the encoding of the "
        "output, cannot write it",
        "fix": "export PYTHONIOENCODING=utf-8",
    }
    text = shims("doctor", extra=extra).stdout
    assert "Fix: export PYTHONIOENCODING=utf-8" in text
