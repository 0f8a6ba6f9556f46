"""Runs one function or script in an interpreter of its own, on real MRV2.

    with Harness() as harness:
        tokens = harness.run(job, model, log=tmp_path / "job.log")

`job` is a function at the top of a file (it is found again by file and name) or
the path of a script. Arguments and result travel as JSON: a function returns
its result, a script writes it to the file that `REAL_RESULT` names.

Most of what an engine's start takes goes into importing libraries. A function runs
in a fork of a process that has imported those, and neither upstream nor us, unless it
wants a fresh interpreter or other variables than those libraries have read.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import FunctionType
from typing import Any

__all__ = ["Harness", "answers", "memory", "objects"]

HERE = Path(__file__)
_TAIL = 120
_OURS = ("ASCEND_SHIMS", "VLLM_", "TRITON_", "TORCHDYNAMO_")

_LIBRARIES = (
    "torch._dynamo",
    "torch._inductor.lowering",
    "transformers.models.auto",
    "openai",
    "fastapi",
    "compressed_tensors",
    "xgrammar",
    "cv2",
    "opentelemetry.sdk.trace",
)
"""What upstream imports of others, by what takes longest."""

_READ_LATER = ("ASCEND_SHIMS", "VLLM_", "REAL_RESULT", "PYTHONPATH", "PYTEST_")
"""Variables that those libraries do not read when they are imported."""


class Harness:
    """Starts the interpreters, one after the other."""

    def __init__(self) -> None:
        self._stem: _Stem | None = None

    def __enter__(self) -> Harness:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stem is not None:
            self._stem.close()

    def run(
        self,
        job: Callable[..., Any] | Path,
        *arguments: Any,
        log: Path,
        env: Mapping[str, str | None] | None = None,
        timeout: float = 480,
        fresh: bool = False,
    ) -> Any:
        """What `job` gives; an AssertionError that ends with its log if it fails.

        The process sees the rig's environment and `env` on top (None removes a
        variable), and nothing that concerns vLLM or us from this one. Whatever it
        leaves running is killed. `fresh`: nothing has been imported in it.
        """
        script, name = _located(job)
        with tempfile.TemporaryDirectory() as folder:
            result = Path(folder, "result.json")
            environ = _environment({"REAL_RESULT": str(result), **(env or {})}, script)
            words = [str(script), *map(str, arguments)]
            if name is not None:
                words = [__file__, str(script), name, json.dumps(arguments)]
            start = time.monotonic()
            if name is None or fresh or not self._can_fork(environ):
                code = _call([sys.executable, *words], environ, log, timeout)
            else:
                self._stem = self._stem or _Stem()
                code = self._stem.call(words, environ, log, timeout)
            seconds = time.monotonic() - start
            if code == 0 and result.exists():
                return json.loads(result.read_text(encoding="utf-8"))
        what = f"{script.name}:{name}" if name else script.name
        why = {None: "did not end", 0: "left no result"}.get(code, f"ended with {code}")
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        tail = "\n".join(lines[-_TAIL:])
        raise AssertionError(f"{what} {why} after {seconds:.0f} s; {log} says:\n{tail}")

    def _can_fork(self, environ: Mapping[str, str]) -> bool:
        return _read_at_once(environ) == _read_at_once(_environment({}, HERE))


def _located(job: Callable[..., Any] | Path) -> tuple[Path, str | None]:
    if isinstance(job, Path):
        return job.resolve(), None
    if "." in job.__qualname__:
        raise TypeError(f"{job.__qualname__} is not at the top of its file")
    return Path(inspect.getfile(job)).resolve(), job.__name__


def _environment(extra: Mapping[str, str | None], script: Path) -> dict[str, str]:
    from ascend_shims.simnpu.runtime import environment

    inherited = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
    # Processes that vLLM spawns find the functions of the file by its name.
    path = [str(script.parent), *filter(None, [inherited.get("PYTHONPATH")])]
    rig = {**environment(), "PYTHONPATH": os.pathsep.join(path)}
    wanted = {**inherited, **rig, **extra}
    return {name: value for name, value in wanted.items() if value is not None}


def _read_at_once(environ: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in environ.items() if not k.startswith(_READ_LATER)}


def _call(
    command: list[str], environ: dict[str, str], log: Path, timeout: float
) -> int | None:
    """The exit code of a new interpreter, or None where it was out of time."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _kill_session(process.pid)
            process.wait()


def _kill_session(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


class _Stem:
    """The process that has imported the libraries, seen from here."""

    def __init__(self) -> None:
        self._orders, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                env=_environment({}, HERE),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def call(
        self, words: list[str], environ: dict[str, str], log: Path, timeout: float
    ) -> int | None:
        """As `_call`, in a fork."""
        self._orders.send((words, environ, str(log)))
        leader = self._orders.recv()
        try:
            code = self._orders.recv() if self._orders.poll(timeout) else None
        finally:
            _kill_session(leader)
        if code is None:
            self._orders.recv()
        return code

    def close(self) -> None:
        self._orders.close()
        self._process.wait()


# The other side.


def answers() -> list[Any]:
    """What the other processes of this session say that carry shims.

    Others may be running on the machine, and one that has answered may have ended.
    """
    from ascend_shims.processes.client import ask_all

    def session(pid: int) -> int | None:
        try:
            return os.getsid(pid)
        except ProcessLookupError:
            return None

    found = ask_all(timeout=30)
    return [a for a in found if a.report and session(a.pid) == session(0)]


def memory() -> int:
    """KiB of memory that this process holds, once what is free was given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0])


def objects() -> dict[str, int]:
    """How many objects of each kind live, of those that can be in cycles.

    Functions that stand in front of others are a kind of their own.
    """
    for _ in range(2):
        gc.collect()
    found = Counter[str]()
    for one in gc.get_objects():
        kind = type(one)
        wrapper = kind is FunctionType and "__ascend_shims__" in one.__dict__
        found["ascend_shims wrapper" if wrapper else f"{kind.__module__}.{kind}"] += 1
    return dict(found)


def _serve(orders: Connection) -> bool:
    """Fork for each order. Returns whether this is a fork, that is to go on."""
    for name in _LIBRARIES:
        # Which ones there are depends on the release.
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # A fork has no other threads, nor what they would have done.
    assert len([*Path("/proc/self/task").iterdir()]) == 1
    while True:
        try:
            words, environ, log = orders.recv()
        except EOFError:
            return False
        pid = os.fork()
        if not pid:
            orders.close()
            _settle(words, environ, log)
            return True
        orders.send(pid)
        orders.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def _settle(words: list[str], environ: dict[str, str], log: str) -> None:
    """Make this fork what a new interpreter would be."""
    os.setsid()
    with Path(log).open("wb") as output:
        for number in (1, 2):
            os.dup2(output.fileno(), number)
    sys.argv[:] = words
    os.environ.clear()
    os.environ.update(environ)
    sys.path[1:1] = environ["PYTHONPATH"].split(os.pathsep)


def _child(script: str, name: str, arguments: str) -> None:
    """The other side of `run`, for a function."""
    path = Path(script)
    sys.path.insert(0, str(path.parent))
    job = getattr(importlib.import_module(path.stem), name)
    value = json.dumps(job(*json.loads(arguments)))
    Path(os.environ["REAL_RESULT"]).write_text(value, encoding="utf-8")


def _leave() -> None:
    """End as `multiprocessing` does: taking all apart takes as long as a start."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        _child(*sys.argv[1:])
    elif _serve(Connection(int(sys.argv[1]))):
        _child(*sys.argv[1:])
        _leave()
