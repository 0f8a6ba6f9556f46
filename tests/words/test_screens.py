"""What a person sees: every screen in Chinese, and what is for machines as it was."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from ascend_shims.cli import main
from ascend_shims.cli.app import shims as root
from ascend_shims.doctor.switched import (
    FoundSeen,
    RegistrySeen,
    SwitchesSeen,
    judge_switches,
)
from ascend_shims.words import said as translated
from ascend_shims.words import speaking
from ascend_shims.words.folding import columns

from ..cli.conftest import environ, project, shims

__all__ = ["environ", "project", "shims"]

CHINESE = re.compile(r"[\u4e00-\u9fff]")
ENGLISH = {"LC_ALL": None, "LC_MESSAGES": None, "LANGUAGE": None, "LANG": "C.UTF-8"}
WANTED = {**ENGLISH, "LANG": "zh_CN.UTF-8", "PYTHONIOENCODING": "utf-8"}
STATUS = ["status", "--assume", "madeup=1.2.0"]
"""Asks no running process: there is no telling who else runs some."""
NEW_GAP = ["new-gap", "--registry", "registry.yaml"]
COMMANDS = root.list_commands(click.Context(root))

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def said(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    environ: dict[str, str],
    project: Path,
) -> Said:
    """Run a command in this process, in a language; code, output and messages."""
    monkeypatch.syspath_prepend(str(project))
    monkeypatch.chdir(project)

    def run(*words: str, **variables: str) -> tuple[int, str, str]:
        for name in [n for n in os.environ if n.startswith(("LC_", "LANG"))]:
            monkeypatch.delenv(name)
        for name in ("ASCEND_SHIMS_REGISTRY", "ASCEND_SHIMS_ALLOW", "COLUMNS"):
            monkeypatch.setenv(name, environ[name])
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        code = main(list(words))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


# Help -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_is_in_chinese_and_as_wide_as_a_terminal(said: Said, name: str) -> None:
    code, out, _ = said(*filter(None, [name]), "--help", LANG="zh_CN.UTF-8")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("用法：shims")
    assert "选项：" in lines
    assert max(map(columns, lines)) <= 80
    left = [line for line in lines if _is_english(line)]
    assert left == []


def _is_english(line: str) -> bool:
    """Whether a line says something, and nothing of it in Chinese."""
    bare = re.sub(r"--?[a-z-]+( [A-Z=,…]+| \[.*?\])?", "", line).strip()
    typed = re.match(r"(shims|eval|~/|bash|zsh|fish)\b|~/", bare)
    return not (typed or CHINESE.search(line)) and bool(
        re.search(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}", bare)
    )


def test_columns_of_help_are_beneath_each_other(said: Said) -> None:
    _, out, _ = said("--help", LANG="zh_CN.UTF-8")
    rows = [
        line for line in out.splitlines() if re.match(r"  [a-z][a-z-]+ {2,}\S", line)
    ]
    starts = {len(row) - len(re.sub(r"^  [a-z-]+ +", "", row)) for row in rows}
    assert len(rows) == len(COMMANDS)
    assert starts == {15}


def test_examples_are_typed_as_ever(said: Said) -> None:
    _, english, _ = said("status", "--help")
    _, chinese, _ = said("status", "--help", LANG="zh_CN.UTF-8")

    def calls(text: str) -> list[str]:
        lines = [line.strip() for line in text.splitlines()]
        return [re.split(r" {2,}", one)[0] for one in lines if one.startswith("shims ")]

    assert len(calls(english)) == 3
    assert calls(chinese) == calls(english)


def test_english_help_is_clicks_own(said: Said) -> None:
    _, out, _ = said("status", "--help")
    assert out.startswith("Usage: shims status [OPTIONS]\n\n  What is open, and what")
    assert not CHINESE.search(out)


# Screens --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (STATUS, ["新进程", "原因", "导入上游时应用", "下一步：shims apply-check"]),
        # What its registry says stays as it is.
        (
            [*STATUS, "--gap", "gone"],
            ["upstream answers by itself", "没有运行中的进程带有 shims"],
        ),
        (
            ["show", "loud"],
            ["为什么", "何时移除", "补丁", "关闭它：ASCEND_SHIMS_DISABLE"],
        ),
        (["explain"], ["状态", "下一步：shims explain"]),
        (["explain", "lost"], ["怎么会这样", "怎么办", "示例"]),
        (["scan", "madeup_patches"], ["个文件", "下一步："]),
    ],
)
def test_a_screen_is_in_chinese(
    said: Said, words: list[str], expected: list[str]
) -> None:
    code, out, _ = said(*words, LANG="zh_CN.UTF-8")
    assert code == 0
    for text in expected:
        assert text in out
    assert max(map(columns, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (
            ["show", "lod"],
            2,
            "错误：'GAP' 的值无效：没有这个 gap：'lod'；是不是 loud？",
        ),
        (["show"], 2, "错误：缺少参数 'GAP'。"),
        (["status", "--stat", "x"], 2, "是不是"),
        (["status", "--sort", "x"], 2, "'--sort' 的值无效：'x' 不是"),
        (["status", "--watch", "x"], 2, "'--watch' 的值无效：'x' 不是秒数；请写"),
        (["nothing"], 2, "错误：没有命令 'nothing'。"),
        (["explain", "zzzzzz"], 2, "没有这个代码：'zzzzzz'；全部列表：shims explain"),
        (["drift", "--against", "x", "--package", "madeup"], 2, "'x' 不是来源；请写"),
        (["scan", "nowhere"], 2, "不存在"),
        (["lock"], 2, "还没有 lock；请给出一个版本"),
        (["doctor", "--force"], 2, "错误：--force 要与 --report FILE 一起用"),
        (["run", "--", "no-such-program"], 2, "PATH 上没有命令 'no-such-program'"),
        (["status", "--registry", "madeup/core.py"], 2, "[registry]"),
        (["schema", "statu"], 2, "没有 'statu' 的 schema；是不是 status？"),
        (["new-gap", "Two_Pools"], 2, "'Two_Pools' 不是 id；请用小写字母"),
        ([*NEW_GAP, "loud"], 2, "已有 gap loud；请换一个 id"),
        (
            [*NEW_GAP, "quiet", "--target", "madeup.core:anser"],
            2,
            "中没有 madeup.core:anser；是不是 madeup.core:answer？",
        ),
        (
            [*NEW_GAP, "quiet", "--target", "madeup.cor:answer"],
            2,
            "中没有 madeup.cor:answer：它没有模块 madeup.cor",
        ),
    ],
)
def test_a_mistake_is_answered_in_chinese(
    said: Said, words: list[str], status: int, expected: str
) -> None:
    code, _, err = said(*words, LANG="zh_CN.UTF-8")
    assert code == status
    assert expected in err
    assert CHINESE.search(err)
    _, _, english = said(*words, LANG="C.UTF-8")
    assert not CHINESE.search(english)
    # Each line is found by its code, whatever the language.
    assert re.findall(r"\[[a-z-]+\]$", err) == re.findall(r"\[[a-z-]+\]$", english)


def test_a_new_gap_is_told_in_chinese(said: Said, project: Path) -> None:
    words = [*NEW_GAP, "quiet", "--target", "madeup.core:answer"]
    code, out, err = said(*words, LANG="zh_CN.UTF-8")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert "已创建   madeup_patches/quiet.py" in lines
    assert "已改动   registry.yaml" in lines
    told = next(line for line in lines if line.startswith("quiet "))
    assert told == (
        "quiet 作用于 madeup.core:answer，以 madeup 1.2.0（已安装）中的为准。"
    )
    assert "请在条目中写明原因，并把你的代码放入补丁模块。下一步：" in lines
    assert "  shims apply-check --registry registry.yaml" in lines
    # What is written is read by everybody who works on the project.
    assert not CHINESE.search((project / "registry.yaml").read_text("utf-8"))


def test_columns_of_a_table_are_beneath_each_other(said: Said) -> None:
    _, out, _ = said(*STATUS, LANG="zh_CN.UTF-8")
    lines = out.splitlines()
    head = next(line for line in lines if line.startswith("GAP "))
    row = next(line for line in lines if line.startswith("loud "))
    assert columns(head[: head.index("原因")]) == columns(row[: row.index("导入")])
    assert columns(head[: head.index("在新进程中")]) == row.index("pending")


@pytest.mark.parametrize(
    "words",
    [
        [*STATUS, "--json"],
        [*STATUS, "--markdown"],
        ["explain", "--json"],
        ["scan", "madeup_patches", "--format", "json"],
        ["completion", "bash"],
    ],
)
def test_what_machines_and_tickets_get_is_the_same(
    said: Said, words: list[str]
) -> None:
    _, english, _ = said(*words, LANG="C.UTF-8")
    _, chinese, _ = said(*words, LANG="zh_CN.UTF-8")
    assert len(english) > 100
    assert chinese == english


def test_json_has_the_same_keys_codes_and_states(said: Said) -> None:
    _, english, _ = said("explain", "--json", LANG="C.UTF-8")
    _, chinese, _ = said("explain", "--json", LANG="zh_CN.UTF-8")
    there, here = json.loads(english)["codes"], json.loads(chinese)["codes"]
    assert len(there) > 150
    assert [list(one) for one in here] == [list(one) for one in there]
    assert [one["code"] for one in here] == [one["code"] for one in there]


@pytest.mark.parametrize("gaps", [1, 2])
def test_what_a_plugin_brings_has_the_marks_of_the_language(gaps: int) -> None:
    brought = FoundSeen("acme", "acme-npu 1.0", "/p/gap_registry.yaml", gaps)
    registry = RegistrySeen("/r.yaml", "of this toolkit", "ab", 12, found=(brought,))
    *_, finding = judge_switches(SwitchesSeen(()), registry)
    with speaking("zh_CN"):
        told = translated(finding.seen)
    assert told == f"acme 的 {gaps} 个 gap，/p/gap_registry.yaml（acme-npu 1.0）"


# Processes ------------------------------------------------------------------------


@pytest.mark.parametrize("words", [STATUS, ["show", "lod"], ["explain", "lost"]])
def test_what_cannot_be_written_is_said_in_english(
    shims: Run, words: list[str]
) -> None:
    done = shims(*words, extra={**WANTED, "PYTHONIOENCODING": "ascii"})
    plain = shims(*words, extra={**ENGLISH, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == plain.returncode
    assert "Traceback" not in done.stderr
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)
    assert len(done.stdout + done.stderr) > 50


def test_a_pipe_gets_chinese_with_lines_as_long_as_what_they_say(shims: Run) -> None:
    done = shims("explain", "version-skipped", extra={**WANTED, "COLUMNS": None})
    assert done.returncode == 0
    assert max(map(columns, done.stdout.splitlines())) > 150
    assert "\x1b" not in done.stdout


_LOADED = """
import sys
from ascend_shims.cli import main
main(sys.argv[1:])
print(*(name for name in sys.modules if name.startswith("ascend_shims.words")))
"""


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (ENGLISH, {"ascend_shims.words", "ascend_shims.words.language"}),
        (
            WANTED,
            {
                "ascend_shims.words",
                "ascend_shims.words.catalogue",
                "ascend_shims.words.folding",
                "ascend_shims.words.language",
            },
        ),
    ],
)
def test_english_loads_no_catalogue(
    environ: dict[str, str], variables: Mapping[str, Any], expected: set[str]
) -> None:
    merged = {**environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, "--help"],
        env={name: value for name, value in merged.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert set(done.stdout.splitlines()[-1].split()) == expected


def test_a_language_is_over_when_a_command_is(said: Said) -> None:
    assert "用法：" in said("--help", LANG="zh_CN.UTF-8")[1]
    assert "Usage:" in said("--help", LANG="C.UTF-8")[1]
    assert "用法：" in said("--help", LC_ALL="zh_CN.UTF-8")[1]


def test_our_variable_is_one_of_ours_and_wins(said: Said) -> None:
    code, out, err = said(*STATUS, ASCEND_SHIMS_LANG="zh_CN")
    assert (code, err) == (0, "")
    assert "导入上游时应用" in out
    code, out, err = said(*STATUS, ASCEND_SHIMS_LANG="en", LANG="zh_CN.UTF-8")
    assert (code, err) == (0, "")
    assert "applies when upstream is imported" in out


def test_our_variable_decides_over_the_locale(said: Said) -> None:
    assert "用法：" in said("--help", ASCEND_SHIMS_LANG="zh_CN")[1]
    assert "Usage:" in said("--help", ASCEND_SHIMS_LANG="en", LANG="zh_CN.UTF-8")[1]
