"""Trying to import torch_npu where that harms nobody: in a child, with a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

from ..torches import Attempt

__all__ = ["Trial", "attempt_of"]

_PATIENCE = 60
"""Seconds. torch alone takes three where it has not been read lately."""
_MARK = "ascend-shims doctor:"

_TRY = f"""
import sys
sys.path[:] = sys.argv[1:]
del sys.argv[1:]
import json, os
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
try:
    import torch_npu
except BaseException as error:
    said = f"{{type(error).__name__}}: {{error}}"
else:
    said = None
print("\\n{_MARK}", json.dumps(said), flush=True)
os._exit(0)
"""
"""Imports from where this process does, and not from the working directory, whosever
that is. Ends at once: what an NPU has to tidy up takes seconds."""

_LIBRARY = re.compile(r"(\S+): cannot open shared object file")


class Trial:
    """One that has been started; it goes on while other things are looked at."""

    def __init__(self, code: str = _TRY, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `stop`
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, *sys.path],
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def result(self) -> Attempt:
        """Waits for the end, or makes one."""
        try:
            code = self._process.wait(self._patience)
            self._said.seek(0)
            return attempt_of(code, self._said.read().decode(errors="replace"))
        except subprocess.TimeoutExpired:
            return Attempt(timed_out=True)
        finally:
            self.stop()

    def stop(self) -> None:
        """Kill it, and all that it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._said.close()


def attempt_of(code: int, said: str) -> Attempt:
    """What the end of the child, and its last words, mean."""
    if code < 0:
        return Attempt(signal=-code)
    marked = [line for line in said.splitlines() if line.startswith(_MARK)]
    if not marked:
        return Attempt(error=f"the process ended with exit code {code}")
    error: str | None = json.loads(marked[-1].removeprefix(_MARK))
    if error is None:
        return Attempt()
    found = _LIBRARY.search(error)
    first = error.strip().splitlines()[0]
    return Attempt(error=first, library=found.group(1) if found else None)
