"""Misuse of the commands that is nobody's fault, and must not be a traceback."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ascend_shims
from ascend_shims.processes.address import address
from ascend_shims.processes.client import ask_all


@contextmanager
def _impostor(answer: bytes) -> Iterator[int]:
    """A process that listens where a process with shims would, and says `answer`."""
    script = (
        "import socket, os, sys\n"
        "from ascend_shims.processes.address import address\n"
        "s = socket.socket(socket.AF_UNIX); s.bind(address(os.getpid())); s.listen()\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    c, _ = s.accept(); c.sendall(sys.argv[1].encode()); c.close()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, answer.decode()], stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    "answer",
    [
        b"[]",
        b"not json",
        b'{"schema": 1}',
        b'{"schema": 2, "plan": "x", "process": {"pid": 1, "role": "r"}, "gaps": []}',
        b'{"schema": 1, "plan": "x", "process": {"pid": 1}, "gaps": []}',
        b'{"schema": 1, "plan": "x", "process": {"pid": 1, "role": "r"},'
        b' "gaps": [{"id": "a", "state": "odd", "status": "open", "reason": ""}]}',
    ],
)
def test_a_strange_answer_is_one_row(shims: Any, answer: bytes) -> None:
    with _impostor(answer) as pid:
        done = shims("status")
    assert "Traceback" not in done.stderr
    assert done.returncode == 0
    row = next(line for line in done.stdout.splitlines() if line.startswith(str(pid)))
    assert "its answer" in row


def test_output_that_cannot_be_encoded_or_written(shims: Any) -> None:
    done = shims("status", extra={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stderr == ""


@pytest.mark.parametrize("words", [["status"], ["status", "--json"], ["--help"]])
def test_a_full_disk_is_one_line(environ: dict[str, str], words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ascend_shims", *words],
            env=environ,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr


def test_closed_output_is_no_matter(environ: dict[str, str]) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m ascend_shims status >&-"],
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_is_quiet(
    environ: dict[str, str], project: Path, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    waits = f"import time\nopen({str(begun)!r}, 'w').close()\ntime.sleep(600)\n"
    (project / "madeup" / "core.py").write_text(waits)
    process = subprocess.Popen(
        [sys.executable, "-m", "ascend_shims", "apply-check"],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A job in the background is started with interrupts ignored, and hands that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    # Not while Python starts: what it says then is its own.
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.endswith("shims: interrupted\n")
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "banana"], "write it like 0.28.0"),
        (["--package", "nope"], "name one of madeup"),
    ],
)
def test_a_matrix_of_nothing_is_refused(
    shims: Any, words: list[str], said: str
) -> None:
    done = shims("matrix", "--package", "madeup", "--offline", *words)
    assert done.returncode == 2
    assert said in done.stderr.replace("\n", " ")


def test_run_takes_a_relative_registry_along(
    shims: Any, environ: dict[str, str], tmp_path: Path
) -> None:
    script = (
        "import os; os.chdir('/'); from madeup.core import answer; print(answer('a'))"
    )
    inner = f'cd / && {sys.executable} -c "{script}"'
    extra = {"ASCEND_SHIMS_REGISTRY": "registry.yaml"}
    done = shims("run", "--", "/bin/sh", "-c", inner, extra=extra)
    assert done.stdout == "A, please\n", done.stderr


LATER = """
  - id: later
    title: A gap that nobody has closed
    status: open
    kind: adaptation
    why: It is new.
    remove_when: Never.
    needs: {device: false}
    unpatched: somebody has to write it
"""


def test_what_is_asked_for_by_name_and_cannot_be_had(
    shims: Any, project: Path, environ: dict[str, str]
) -> None:
    registry = project / "registry.yaml"
    registry.write_text(registry.read_text() + LATER)
    only = {"ASCEND_SHIMS_ONLY": "later"}
    done = shims("apply-check", extra=only)
    assert done.returncode == 1
    assert "no patch yet" in " ".join(done.stdout.split())
    run = subprocess.run(
        [sys.executable, "-c", "import ascend_shims; ascend_shims.apply()"],
        env={**environ, **only, "ASCEND_SHIMS_STRICT": "1"},
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "UnappliedError: later: not-applicable" in run.stderr


def test_disabled_without_names_is_everything(
    project: Path, environ: dict[str, str]
) -> None:
    script = (
        "import ascend_shims, madeup.core as core; ascend_shims.apply()\n"
        "with ascend_shims.disabled(): print(core.answer('a'))\n"
        "print(core.answer('a'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[:2] == ["a", "A, please"]


def test_a_patches_module_that_exits_is_a_failed_gap(
    project: Path, environ: dict[str, str]
) -> None:
    (project / "madeup_patches" / "loud.py").write_text(
        "import sys\ndef shout(call, word): ...\nsys.exit(3)\n"
    )
    script = (
        "import madeup.core, ascend_shims\n"
        "report = ascend_shims.apply()\n"
        "print(report.state('loud'), report['loud'].reason, report.state('polite'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "failed SystemExit: 3 applied\n"


def test_asking_does_not_hang_on_one_that_never_answers() -> None:
    listener = socket.socket(socket.AF_UNIX)
    # Not this process's own address, which is never asked.
    child = os.fork()
    if child == 0:
        listener.bind(address(os.getpid()))
        listener.listen()
        time.sleep(600)
        os._exit(0)
    try:
        deadline = time.monotonic() + 60
        answers: list[Any] = []
        while not answers and time.monotonic() < deadline:
            answers = [a for a in ask_all(timeout=0.3) if a.pid == child]
        (answer,) = answers
        assert answer.problem == "no answer within 0.3 s: busy or stopped"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        listener.close()
    assert threading.active_count() >= 1
    assert ascend_shims.status().gaps
