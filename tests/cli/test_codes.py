"""Errors end with their codes, so that a person can have them explained."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import click
import pytest

from ascend_shims.cli import app, apply_check, main
from ascend_shims.errors import ShimsError
from ascend_shims.explain import all_pages
from ascend_shims.verify.interpreters import InterpreterError

CODES = {page.code for group in all_pages() for page in group.pages}


@pytest.mark.parametrize(
    ("words", "extra", "code"),
    [
        (["status"], {"ASCEND_SHIMS_DISBLE": "x"}, "switch"),
        (["show", "loud"], {"ASCEND_SHIMS_ALLOW": None}, "not-allowed"),
        (["status", "--registry", "madeup/core.py"], {}, "registry"),
        (["drift", "--against", "x", "--package", "madeup"], {}, "bad-source"),
        (["drift", "--registry", "madeup"], {}, "discovery"),
        (["drift", "--watch", "madeup/core.py"], {}, "reliance"),
        (["scan", "madeup", "--registry-out", "x.yaml"], {}, "nothing-to-draft"),
        (["audit", "madeup", "--python", "/nowhere/python"], {}, "audit"),
        (["doctor", "--report", "madeup"], {}, "bundle"),
        (["lock"], {}, "no-baseline"),
        (["run", "--", "no-such-program"], {}, "switch"),
    ],
)
def test_each_line_ends_with_the_code(
    shims: Any, words: list[str], extra: dict[str, Any], code: str
) -> None:
    done = shims(*words, extra=extra)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert lines
    for line in lines:
        assert line.startswith("shims: ")
        assert line.endswith(f" [{code}]")
    assert code in CODES


def test_every_mistake_has_a_line_with_the_code(shims: Any, project: Path) -> None:
    registry = project / "registry.yaml"
    registry.write_text(registry.read_text().replace("title:", "titel:"))
    done = shims("status")
    lines = done.stderr.splitlines()
    assert len(lines) >= 3
    assert all("registry.yaml:" in one for one in lines)
    assert all(one.endswith(" [registry]") for one in lines)


@pytest.mark.parametrize(
    ("words", "command", "said"),
    [
        (
            ["show", "lod"],
            "shims show",
            "Error: Invalid value for 'GAP': no gap is called 'lod'; did you mean "
            "loud? [usage]",
        ),
        (
            ["status", "--gap"],
            "shims status",
            "Error: Option '--gap' requires an argument. [usage]",
        ),
        (
            ["status", "--gap"],
            "shims status",
            "错误：选项 '--gap' 需要一个值。 [usage]",
        ),
        (
            ["show"],
            "shims show",
            "Error: Missing argument 'GAP'. shims status --all lists the gaps [usage]",
        ),
        (["--registry"], "shims", "Error: No such option"),
        (["statu"], "shims", "Error: No such command 'statu'. Did you mean 'status'?"),
    ],
)
def test_usage_errors_say_how_to_call_and_have_a_code(
    shims: Any, words: list[str], command: str, said: str
) -> None:
    chinese = said.startswith("错误")
    extra = {"ASCEND_SHIMS_LANG": "zh_CN" if chinese else "en", "COLUMNS": "400"}
    done = shims(*words, extra={**extra, "PYTHONIOENCODING": "utf-8"})
    assert (done.returncode, done.stdout) == (2, "")
    usage, help_, empty, *message = done.stderr.splitlines()
    assert usage.startswith(f"{'用法：' if chinese else 'Usage: '}{command} ")
    assert f"'{command} -h'" in help_ and not empty
    assert len(message) == 1 and message[0].startswith(said)
    assert message[0].endswith(" [usage]")
    assert "usage" in CODES


def test_what_the_system_refuses_has_a_code(shims: Any, project: Path) -> None:
    done = shims("scan", ".", "--registry-out", "nowhere/x.yaml")
    assert done.returncode in (1, 2)
    with Path("/dev/full").open("w") as full:
        script = "import sys; from ascend_shims.cli import main; sys.exit(main())"
        import subprocess

        done = subprocess.run(
            [sys.executable, "-c", script, "explain"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr.startswith("shims: cannot go on: ")
    assert done.stderr.endswith(" [cannot-go-on]\n")
    assert done.returncode == 2


class OtherError(ShimsError):
    """Raised by nothing else."""


def _raises(error: Exception, cause: Exception | None = None) -> Any:
    def callback() -> None:
        raise error from cause

    return click.Command("status", callback=callback)


@pytest.mark.parametrize(
    ("error", "cause", "said", "code"),
    [
        (
            OtherError("one\ntwo"),
            None,
            "shims: one [other]\nshims: two [other]",
            1,
        ),
        (
            click.ClickException("no answer"),
            InterpreterError("no answer"),
            "Error: no answer [interpreter]",
            1,
        ),
        (click.ClickException("plain"), None, "Error: plain", 1),
        (click.ClickException("plain"), OSError("plain"), "Error: plain", 1),
    ],
)
def test_whatever_is_ours_is_one_message(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    cause: Exception | None,
    said: str,
    code: int,
) -> None:
    command = _raises(error, cause)
    monkeypatch.setattr(app._Lazy, "get_command", lambda *_: command)
    assert main(["status"]) == code
    assert capsys.readouterr().err == f"{said}\n"


def test_a_probe_that_does_not_answer_has_a_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = CompletedProcess([], 3, "", "out of memory")
    monkeypatch.setattr(apply_check.subprocess, "run", lambda *_, **__: dead)
    with pytest.raises(click.ClickException) as error:
        apply_check._probe(None)
    capsys.readouterr()
    command = _raises(error.value, error.value.__cause__)
    monkeypatch.setattr(app._Lazy, "get_command", lambda *_: command)
    assert main(["apply-check"]) == 1
    assert capsys.readouterr().err == (
        "Error: the probe ended with 3:\nout of memory [interpreter]\n"
    )
