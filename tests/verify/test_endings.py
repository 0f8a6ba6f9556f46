"""Gaps that kill, block or break an interpreter, and signals to the command."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ..fresh import LONG
from .conftest import Town

DYING = {
    "exits": ("os._exit(3)", "ended with exit code 3, without an answer,"),
    "is killed": ("os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
    "faults": ("os.kill(os.getpid(), 11)", "was killed by SIGSEGV"),
}


@pytest.mark.parametrize("how", DYING)
def test_the_gap_is_named_at_which_an_interpreter_dies(town: Town, how: str) -> None:
    code, says = DYING[how]
    town.gap("sound", "")
    town.gap("deadly", code)
    ended = town.verify("--json")
    assert ended.code == 2
    told = ended.told
    assert (told["schema"], told["ok"], told["proved"]) == (1, False, False)
    assert (told["gap"], told["interpreter"]) == ("deadly", "in place")
    assert says in told["error"]
    assert "when it was at: deadly: applied; it said nothing" in told["error"]
    assert ended.err.splitlines()[-1] == f"Error: {told['error']} [interpreter]"
    assert told["code"] == "interpreter"


def test_what_a_gap_said_before_it_died_is_told(town: Town) -> None:
    town.gap("deadly", "print('my last words'); os._exit(3)")
    ended = town.verify()
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[-1] == "my last words [interpreter]"


def test_a_gap_that_blocks_is_named_when_the_time_is_up(town: Town) -> None:
    town.gap("sound", "")
    town.gap(
        "blocking", "import threading; t = threading.Lock(); t.acquire(); t.acquire()"
    )
    ended = town.verify("--json", "--timeout", "6")
    assert ended.code == 2
    assert ended.told["gap"] == "blocking"
    assert (
        "gave no answer in 6 s (--timeout) and was at: blocking: applied"
        in (ended.told["error"])
    )


BREAKING = {
    "json.dumps": "import json; json.dumps = lambda *a, **k: 1",
    "builtins.__import__": "import builtins; real = builtins.__import__\n"
    "def no(*a, **k): raise ImportError('no more')\n"
    "builtins.__import__ = no",
    "os.open": "os.open = os.write = os.close = wrapper",
    "marshal.dumps": "import marshal; marshal.dumps = wrapper",
    "os.getcwd": "del os.getcwd",
}


@pytest.mark.parametrize("what", BREAKING)
def test_a_gap_that_breaks_python_is_a_finding_of_its_own(
    town: Town, what: str
) -> None:
    town.gap("sound", "")
    town.gap("breaking", BREAKING[what])
    ended = town.verify("--json")
    assert ended.code == 1, ended.err
    stages = {one["name"]: one for one in ended.told["stages"]}
    assert stages["sound"]["ok"]
    broken = stages["breaking"]
    told = [*(one["path"] for one in broken["differences"]), *broken["errors"]]
    assert told
    assert not broken["ok"]
    assert "Traceback" not in ended.err


def _as_a_terminal_has_them() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for other in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(other, signal.SIG_DFL)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_nothing_is_left_by_a_signal(town: Town, name: str) -> None:
    """No interpreter, and no file but what the next run takes away."""
    town.gap("one", "")
    town.write("up_small/targets.py", "import time; time.sleep(600)\n")
    (town.root / "tmp").mkdir()
    command = [sys.executable, "-m", "ascend_shims", "verify"]
    running = subprocess.Popen(
        [*command, "--registry", str(town.registry)],
        cwd=town.root,
        env=town.environ({"TMPDIR": str(town.root / "tmp")}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # Whoever runs the tests in the background may have them ignored.
        preexec_fn=_as_a_terminal_has_them,
    )
    wait_for(lambda: len(_children(town)) == 2)
    running.send_signal(getattr(signal, name))
    out, err = running.communicate(timeout=LONG)
    wait_for(lambda: not _children(town))
    assert running.returncode == (130 if name == "SIGINT" else -getattr(signal, name))
    assert (out, b"Traceback" in err) == (b"", False)
    left = [*(town.root / "tmp").iterdir()]
    assert len(left) == (1 if name == "SIGKILL" else 0)
    town.write("up_small/targets.py", "def t0(x): return x\n")
    assert town.verify(env={"TMPDIR": str(town.root / "tmp")}).code == 0
    assert [*(town.root / "tmp").iterdir()] == []


def wait_for(what: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def _children(town: Town) -> list[str]:
    """The interpreters that work for this town and have said what they do."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            told = (entry / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if entry.name.isdigit() and f"{town.root}/tmp/" in told:
            found.append(entry.name)
    return found
