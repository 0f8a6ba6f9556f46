"""Runs one function or script in an interpreter of its own, on real MRV2.

    tokens = run(job, model, log=tmp_path / "job.log")

`job` is a function at the top of a file (it is found again by file and name) or
the path of a script. Arguments and result travel as JSON: a function returns
its result, a script writes it to the file that `REAL_RESULT` names.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["run"]

_TAIL = 120
_OURS = ("ASCEND_SHIMS", "VLLM_", "TRITON_", "TORCHDYNAMO_")


def run(
    job: Callable[..., Any] | Path,
    *arguments: Any,
    log: Path,
    env: Mapping[str, str | None] | None = None,
    python: str | Path = sys.executable,
    timeout: float = 240,
) -> Any:
    """What `job` gives; an AssertionError that ends with its log if it fails.

    The process sees the rig's environment and `env` on top (None removes a
    variable), and nothing that concerns vLLM or us from this one. Whatever it
    leaves running is killed.
    """
    script, name = _located(job)
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        environ = _environment({"REAL_RESULT": str(result), **(env or {})}, script)
        command = [str(python), str(script), *map(str, arguments)]
        if name is not None:
            command = [str(python), __file__, str(script), name, json.dumps(arguments)]
        code, seconds = _call(command, environ, log, timeout)
        if code == 0 and result.exists():
            return json.loads(result.read_text(encoding="utf-8"))
    what = f"{script.name}:{name}" if name else script.name
    why = {None: "did not end", 0: "left no result"}.get(code, f"ended with {code}")
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    tail = "\n".join(lines[-_TAIL:])
    raise AssertionError(f"{what} {why} after {seconds:.0f} s; {log} says:\n{tail}")


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


def _call(
    command: list[str], environ: dict[str, str], log: Path, timeout: float
) -> tuple[int | None, float]:
    start = time.monotonic()
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
            code: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return code, time.monotonic() - start


def _child(script: str, name: str, arguments: str) -> None:
    """The other side of `run`, for a function."""
    path = Path(script)
    sys.path.insert(0, str(path.parent))
    job = getattr(importlib.import_module(path.stem), name)
    value = json.dumps(job(*json.loads(arguments)))
    Path(os.environ["REAL_RESULT"]).write_text(value, encoding="utf-8")


if __name__ == "__main__":
    _child(*sys.argv[1:])
