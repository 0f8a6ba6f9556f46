"""Starting interpreters for jobs, and waiting for what they answer."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ..errors import ShimsError
from .jobs import Order

__all__ = ["Interpreter", "InterpreterError"]

_INVENTORY = Path(__file__).parent / "inventory"

_BOOT = """
import importlib.util, sys
init, job = sys.argv[1:]
spec = importlib.util.spec_from_file_location(
    "shims_inventory", init, submodule_search_locations=[init.rpartition("/")[0]])
module = importlib.util.module_from_spec(spec)
sys.modules["shims_inventory"] = module
spec.loader.exec_module(module)
del sys.argv[1:]
importlib.import_module("shims_inventory.child").main(job)
"""
"""Loads the inventory by its path, under a name of its own: the toolkit around it is
not imported."""

_TIMEOUT = 900
"""Seconds. A minute is what it takes; a machine may have much else to do."""


class InterpreterError(ShimsError):
    """An interpreter came to no answer."""


class Interpreter:
    """One that has been started for a job."""

    def __init__(self, order: Order, folder: Path, name: str, mode: str) -> None:
        self.name = name
        folder.mkdir()
        # Each calls its log the same but for a number, or they would differ in that.
        self._log = folder / "log"
        self._answer = folder / "answer.json"
        job = folder / "job.json"
        told = order.job(mode=mode, folder=str(folder), answer=str(self._answer))
        job.write_text(json.dumps(told), encoding="utf-8")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    _BOOT,
                    str(_INVENTORY / "__init__.py"),
                    str(job),
                ],
                env=dict(order.environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._deadline = time.monotonic() + _TIMEOUT

    def answer(self) -> dict[str, Any]:
        """Waits for the answer. Raises `InterpreterError`."""
        try:
            code = self._process.wait(max(0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.stop()
            raise InterpreterError(
                f"the interpreter for {self.name!r} gave no answer in {_TIMEOUT} s; "
                f"it said:\n{self._end()}"
            ) from None
        if not self._answer.exists():
            raise InterpreterError(
                f"the interpreter for {self.name!r} ended with {code}; it said:\n"
                f"{self._end()}"
            )
        answer: dict[str, Any] = json.loads(self._answer.read_text(encoding="utf-8"))
        return answer

    def stop(self) -> None:
        """Kill it, and all that it has started."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _end(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]
