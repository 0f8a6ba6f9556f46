"""The harness itself: results come back, failures show the log, nothing stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.any_release

SCRIPT = """
import json, os, pathlib, sys
pathlib.Path(os.environ["REAL_RESULT"]).write_text(json.dumps(sys.argv[1:]))
"""


def test_a_function_gets_arguments_and_gives_a_result(
    run_real: Callable[..., Any], tmp_path: Path
) -> None:
    assert run_real(echo, [1, None], tmp_path) == [[1, None], str(tmp_path)]


def test_a_script(run_real: Callable[..., Any], tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    assert run_real(script, "a", 2) == ["a", "2"]


def test_the_environment_is_the_rigs_and_nobody_elses(
    run_real: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_PLUGINS", "")
    monkeypatch.setenv("ASCEND_SHIMS", "off")
    told = run_real(environ, env={"HF_HUB_OFFLINE": None, "ASCEND_SHIMS_ONLY": "a"})
    assert told["TRITON_INTERPRET"] == "1"
    assert told["ASCEND_SHIMS_ONLY"] == "a"
    assert not {"VLLM_PLUGINS", "ASCEND_SHIMS", "HF_HUB_OFFLINE"} & set(told)


def test_a_fork_has_the_libraries_and_nothing_of_upstream_or_us(
    run_real: Callable[..., Any],
) -> None:
    assert run_real(loaded) == ["torch", "transformers", "triton"]
    assert run_real(loaded, env={"ASCEND_SHIMS_DEVICE": "sim"}) == run_real(loaded)


@pytest.mark.parametrize(
    "options", [{"fresh": True}, {"env": {"TORCHDYNAMO_DISABLE": None}}]
)
def test_a_fresh_interpreter_has_nothing(
    run_real: Callable[..., Any], options: dict[str, Any]
) -> None:
    """Nor one with other variables than the libraries have read."""
    assert run_real(loaded, **options) == []


def test_a_failure_shows_the_log(run_real: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError, match=r"fail ended with 1(?s:.*)out of order"):
        run_real(fail, "out of order")


def test_no_result_is_a_failure(run_real: Callable[..., Any], tmp_path: Path) -> None:
    script = tmp_path / "quiet.py"
    script.write_text("print('nothing to say')")
    with pytest.raises(AssertionError, match=r"left no result(?s:.*)nothing to say"):
        run_real(script)


def test_a_hang_ends_with_all_it_started(
    run_real: Callable[..., Any], tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    # Long enough for it to start a child, however busy the machine is.
    for timeout in (3, 10, 30, 90):
        with pytest.raises(AssertionError, match="hang did not end after"):
            run_real(hang, note, timeout=timeout)
        if note.exists():
            break
    child = int(note.read_text())
    deadline = time.monotonic() + 60
    while _runs(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_function_inside_another_is_refused(run_real: Callable[..., Any]) -> None:
    def inner() -> None: ...

    with pytest.raises(TypeError, match="not at the top of its file"):
        run_real(inner)


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


# What runs in the interpreter of a test.


def echo(*arguments: Any) -> list[Any]:
    return list(arguments)


def environ() -> dict[str, str]:
    return dict(os.environ)


def loaded() -> list[str]:
    wanted = {"ascend_shims", "torch", "transformers", "triton", "vllm"}
    return sorted(wanted & set(sys.modules))


def fail(message: str) -> None:
    raise RuntimeError(message)


def hang(note: str) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = subprocess.Popen(command)
    ready = Path(f"{note}.ready")
    ready.write_text(str(child.pid))
    ready.rename(note)
    child.wait()
