"""What `drift` and `matrix` cost: imports, memory, and what they say of it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .test_drift import RELEASES, drift, index

__all__ = ["drift", "index"]

_DRIFT = ("drift", "--against", "madeup==1.4", "--package", "madeup", "--json")
_MATRIX = ("matrix", "--from", "1.0", "--package", "madeup", "--json")
_MOST_MEGABYTES = 300


def _imported(stderr: str) -> set[str]:
    """Modules in the interpreter's own account of its imports."""
    lines = [line for line in stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.parametrize("words", [_DRIFT, _MATRIX], ids=["drift", "matrix"])
def test_neither_upstream_nor_torch_is_imported(
    drift: Any, words: tuple[str, ...]
) -> None:
    done = drift(*words, extra={"PYTHONPROFILEIMPORTTIME": "1"})
    loaded = _imported(done.stderr)
    assert "ascend_shims.upstream.judgement" in loaded
    tops = {name.partition(".")[0] for name in loaded}
    assert tops.isdisjoint({"torch", "vllm", "torch_npu", "numpy", "madeup"})
    assert "rich" not in tops, "JSON needs no table library"


@pytest.mark.parametrize("words", [_DRIFT, _MATRIX], ids=["drift", "matrix"])
def test_a_warm_check_costs_nothing_and_says_the_same(
    drift: Any, words: tuple[str, ...]
) -> None:
    cold, warm = (json.loads(drift(*words).stdout) for _ in "ab")
    costs = [report.pop("costs") for report in (cold, warm)]
    assert cold == warm
    for one in costs:
        assert one.keys() == {"bytes", "requests", "cached", "seconds"}
        assert (one["bytes"], one["requests"]) == (0, 0)


def test_verdicts_are_kept_unless_the_cache_is_off(drift: Any, tmp_path: Path) -> None:
    def kept() -> list[Path]:
        return list((tmp_path / "cache").rglob("verdicts/*/*"))

    words = ("drift", "--against", "madeup==1.2", "--package", "madeup", "--json")
    drift(*words, extra={"ASCEND_SHIMS_CACHE": "off"})
    assert kept() == []
    first = json.loads(drift(*words).stdout)["findings"]
    (entry,) = kept()
    entry.write_bytes(entry.read_bytes()[:-7])
    assert json.loads(drift(*words).stdout)["findings"] == first
    entry.write_bytes(b"")
    assert json.loads(drift(*words).stdout)["findings"] == first
    assert {finding["verdict"] for finding in first} == {"compatible"}


def test_a_directory_is_judged_by_what_it_holds_now(drift: Any, tmp_path: Path) -> None:
    package = tmp_path / "tree" / "madeup"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    verdicts = []
    for text in ("def answer(word):", "def reply(word):", "def answer(word):"):
        (package / "core.py").write_text(f"{text}\n    return word\n\n\nanswer('x')\n")
        done = drift("drift", "--against", str(package.parent), *_DRIFT[3:])
        report = json.loads(done.stdout)
        verdicts.append({f["verdict"] for f in report["findings"]})
    assert verdicts == [{"identical"}, {"broken"}, {"identical"}]


# Asked of the process itself: what its parent is told counts the parent's own, too.
_MEASURED = """
import atexit, pathlib, runpy, sys
status = pathlib.Path("/proc/self/status")
atexit.register(lambda: print(status.read_text(), file=sys.stderr))
runpy.run_module("ascend_shims", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("words", [_DRIFT, _MATRIX], ids=["drift", "matrix"])
def test_the_memory_of_a_check(
    drift: Any, environ: dict[str, str], index: str, tmp_path: Path, words: Any
) -> None:
    env = {
        **environ,
        "ASCEND_SHIMS_CACHE": str(tmp_path / "cache"),
        "PIP_CONFIG_FILE": os.devnull,
    }
    command = [sys.executable, "-c", _MEASURED, *words, "--index-url", index]
    done = subprocess.run(
        command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stderr)
    assert 5 < int(peak) / 1024 < _MOST_MEGABYTES


def test_matrix_takes_pre_releases_on_request(drift: Any) -> None:
    plain = json.loads(drift(*_MATRIX).stdout)
    assert plain["releases"] == list(RELEASES)
    pre = json.loads(drift(*_MATRIX, "--pre").stdout)
    assert pre["releases"] == list(RELEASES)
    assert pre["gaps"] == plain["gaps"]


def test_the_bar_is_for_terminals_alone(
    drift: Any, environ: dict[str, str], index: str, tmp_path: Path
) -> None:
    assert drift(*_MATRIX).stderr == ""
    ours, theirs = pty.openpty()
    env = {
        **environ,
        "ASCEND_SHIMS_CACHE": str(tmp_path / "cache"),
        "PIP_CONFIG_FILE": os.devnull,
        "TERM": "xterm",
    }
    done = subprocess.run(
        [sys.executable, "-m", "ascend_shims", *_MATRIX, "--index-url", index],
        env=env,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=theirs,
        timeout=60,
        check=False,
    )
    os.close(theirs)
    shown = b""
    while chunk := _read(ours):
        shown += chunk
    os.close(ours)
    assert json.loads(done.stdout)["releases"] == list(RELEASES)
    assert f"0/{len(RELEASES)}" in shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:
        # The other end is closed.
        return b""


@pytest.mark.parametrize("words", [("--offline",), ()], ids=["offline", "no network"])
def test_without_cache_and_network_it_is_one_line(
    drift: Any, shims: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    extra = {
        "ASCEND_SHIMS_CACHE": str(tmp_path / "empty"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_EXTRA_INDEX_URL": None,
        "PIP_FIND_LINKS": None,
    }
    url = ("--index-url", "http://127.0.0.1:9/simple")
    done = shims(*_DRIFT, *words, *url, extra=extra)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "127.0.0.1:9" in line
    assert done.stdout == ""
