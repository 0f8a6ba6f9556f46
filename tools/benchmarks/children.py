"""Interpreters that are started, timed, and asked."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from . import rooms

__all__ = ["ChildError", "Ran", "Server", "ask", "job", "rig", "run"]

_TOOLS = Path(__file__).resolve().parents[1]
_OURS = ("ASCEND_SHIMS", "VLLM_", "TRITON_", "TORCHDYNAMO_", "PYTHON")


class ChildError(RuntimeError):
    """A process that is measured failed; the message ends with what it said."""


@dataclass(frozen=True)
class Ran:
    """What a process took, and what it printed."""

    seconds: float
    processor: float
    """Seconds of processor time, its own and those of its children."""
    printed: str

    def answer(self) -> Any:
        """What its last line says. Raises `ChildError` where that is no JSON."""
        try:
            return json.loads(self.printed.splitlines()[-1])
        except (IndexError, ValueError) as error:
            raise ChildError(f"no answer in: {self.printed[-500:]!r}") from error


def rig() -> dict[str, str]:
    """Variables with which upstream runs on this machine, in one process."""
    from ascend_shims.simnpu.runtime import environment

    return {
        **environment(),
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        "VLLM_LOGGING_LEVEL": "ERROR",
    }


def _environ(extra: Mapping[str, str]) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    return {**kept, "PYTHONPATH": str(_TOOLS), **extra}


def run(
    *command: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    ends: tuple[int, ...] = (0,),
) -> Ran:
    """Run a program. Raises `ChildError` where it does not end as it should."""
    words = [str(word) for word in command]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.perf_counter()
        process = subprocess.Popen(
            words,
            env=_environ(env or {}),
            cwd=cwd or tempfile.gettempdir(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        printed, complaint = _whole(out), _whole(err)
    if process.returncode not in ends:
        name = " ".join(words[:4])
        said = _end(complaint)
        raise ChildError(f"{name} ended with {process.returncode}; it said:\n{said}")
    return Ran(seconds, used.ru_utime + used.ru_stime, printed)


def _end(complaint: str) -> str:
    """Its last lines, but for what a library says of every interpreter that ends."""
    lines = [x for x in complaint.splitlines() if "leaked" not in x[:20]]
    return "\n".join([x for x in lines if not x.startswith("nanobind")][-30:])


def _whole(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def ask(
    name: str,
    *arguments: Any,
    env: Mapping[str, str] | None = None,
    python: Path | None = None,
    above: tuple[Path, ...] = (),
) -> Any:
    """What a job answers; `above` goes before its libraries."""
    path = os.pathsep.join(map(str, (_TOOLS, *above)))
    words = job(name, *arguments, python=python)
    return run(*words, env={**(env or {}), "PYTHONPATH": path}).answer()


def job(name: str, *arguments: Any, python: Path | None = None) -> list[str]:
    """The command of a job of `benchmarks.jobs`, which `run` finds."""
    interpreter = str(python or rooms.environment())
    return [interpreter, "-m", f"benchmarks.jobs.{name}", *map(json.dumps, arguments)]


class Server:
    """A job that goes on: it answers a line with a line of JSON."""

    def __init__(self, name: str, *arguments: Any, env: Mapping[str, str]) -> None:
        self._complaint = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in `end`
        self._process = subprocess.Popen(
            job(name, *arguments),
            env=_environ(env),
            cwd=tempfile.gettempdir(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaint,
            text=True,
        )

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._complaint.close()

    def told(self) -> Any:
        """Its next line that is an answer. Raises `ChildError` where it has ended."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer "))
        said = _end(_whole(self._complaint))
        raise ChildError(f"the process ended; it said:\n{said}")

    def ask(self, what: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return self.told()
