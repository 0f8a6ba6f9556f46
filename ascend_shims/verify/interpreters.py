"""Starting interpreters for jobs, and waiting for what they answer."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import marshal
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..errors import ShimsError
from .jobs import Order

__all__ = ["TIMEOUT", "Interpreter", "InterpreterError", "work_folder"]

_INVENTORY = Path(__file__).parent / "inventory"

_BOOT = """
import importlib, os, sys
folder, job = sys.argv[1:]
if not os.path.isdir(folder):
    from importlib.metadata import distributions
    while not os.path.isfile(folder):
        folder = os.path.dirname(folder)
    list(distributions(path=[folder]))
    folder = sys.argv[1]
package = sys.modules["shims_inventory"] = type(sys)("shims_inventory")
package.__path__ = [folder]
del sys.argv[1:]
importlib.import_module("shims_inventory.child").main(job)
"""
"""Loads the inventory from its folder, which may be in a zip, under a name of its own:
the toolkit around it is not imported.

Python keeps a zip open once it has been asked for the distributions in it, as whoever
looks for plugins does. This way it is open in every interpreter, and no difference."""

TIMEOUT = 900.0
"""Seconds. A minute is what it takes; a machine may have much else to do."""

_PATIENCE = 60.0
"""Seconds after which it is said what is being waited for, again and again."""

_STEP = 0.05


class InterpreterError(ShimsError):
    """An interpreter came to no answer."""

    def __init__(self, said: str, interpreter: str = "", gap: str = "") -> None:
        super().__init__(said)
        self.interpreter = interpreter
        self.gap = gap
        """Whose turn it was, where that is known."""


class Interpreter:
    """One that has been started for a job."""

    def __init__(
        self, order: Order, folder: Path, name: str, mode: str, timeout: float
    ) -> None:
        self.name = name
        folder.mkdir()
        # Each calls its log the same but for a number, or they would differ in that.
        self._log = folder / "log"
        self._answer = folder / "answer"
        self._progress = folder / "progress"
        job = folder / "job"
        told = order.job(
            mode=mode,
            folder=str(folder),
            answer=str(self._answer),
            progress=str(self._progress),
        )
        job.write_bytes(marshal.dumps(told))
        command = [sys.executable, "-u", "-c", _BOOT, str(_INVENTORY), str(job)]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                env=dict(order.environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        self._timeout = timeout
        self._started = time.monotonic()

    def answer(self, say: Callable[[str], None]) -> dict[str, Any]:
        """Waits for the answer, and says so. Raises `InterpreterError`."""
        code = self._wait(say)
        if not self._answer.exists():
            what, gap = self._turn()
            raise InterpreterError(
                f"the interpreter for {self.name!r} {_ended(code)} when it was at: "
                f"{what}; {self._end()}",
                self.name,
                gap,
            )
        answer: dict[str, Any] = marshal.loads(self._answer.read_bytes())
        return answer

    def _wait(self, say: Callable[[str], None]) -> int:
        said = time.monotonic()
        while (code := self._process.poll()) is None:
            now = time.monotonic()
            if now > self._started + self._timeout:
                self.stop()
                what, gap = self._turn()
                raise InterpreterError(
                    f"the interpreter for {self.name!r} gave no answer in "
                    f"{self._timeout:g} s (--timeout) and was at: {what}; "
                    f"{self._end()}",
                    self.name,
                    gap,
                )
            if now > said + _PATIENCE:
                said = now
                passed = now - self._started
                what = self._turn()[0]
                say(f"Waiting for {self.name!r} for {passed:.0f} s; it is at: {what}")
            time.sleep(_STEP)
        return code

    def _turn(self) -> tuple[str, str]:
        """What it was doing when last it said so, and for which gap."""
        try:
            told = self._progress.read_text(encoding="utf-8")
        except OSError:
            return "its start", ""
        gap, _, what = told.partition("\n")
        return what or "its start", gap

    def stop(self) -> None:
        """Kill it, and all that it has started."""
        # The group may outlive its leader: a child that a gap has left, say.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _end(self) -> str:
        log = self._log.read_text(encoding="utf-8", errors="replace").strip()
        return f"it said:\n{log[-2000:]}" if log else "it said nothing"


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}, without an answer,"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"was killed by {name}"


_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """In the child, before it becomes Python: have Linux kill it with its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@contextlib.contextmanager
def work_folder() -> Iterator[Path]:
    """A folder for the interpreters' files, gone in the end.

    Those of runs that were killed are taken away as well: nobody has them locked.
    """
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{_PREFIX}*"):
        if left.lstat().st_uid == os.getuid() and left.is_dir():
            with _locked(left, make=False) as free:
                if free:
                    shutil.rmtree(left, ignore_errors=True)
    with (
        tempfile.TemporaryDirectory(prefix=_PREFIX) as folder,
        _locked(Path(folder), make=True),
    ):
        yield Path(folder)


_PREFIX = "ascend-shims-verify-"


@contextlib.contextmanager
def _locked(folder: Path, *, make: bool) -> Iterator[bool]:
    """Whether a folder could be locked; one without a lock is just being made."""
    flags = os.O_RDWR | os.O_NOFOLLOW | (os.O_CREAT if make else 0)
    try:
        file = os.open(folder / "lock", flags, 0o600)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if make else fcntl.LOCK_NB))
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(file)
