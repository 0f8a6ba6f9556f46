"""One engine on the software NPU, in a process of its own.

    seen = trial(model, prompts, 16, graphs=True, switches={"ASCEND_SHIMS_DISABLE": …})

Gives the tokens, or the name of the error that the device answered with.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["GRAPHS", "SIXTEEN", "SMALL", "Trial", "trial"]

GRAPHS: dict[str, Any] = {
    "enforce_eager": False,
    "compilation_config": {
        "mode": 0,
        "cudagraph_mode": "FULL_DECODE_ONLY",
        "cudagraph_capture_sizes": [1, 2, 4, 8],
    },
}
"""Arguments of `vllm.LLM` that make decode steps replay graphs."""

SIXTEEN: dict[str, Any] = {
    **GRAPHS,
    "max_num_seqs": 16,
    "compilation_config": {
        **GRAPHS["compilation_config"],
        "cudagraph_capture_sizes": list(range(1, 17)),
    },
}
"""Arguments of `vllm.LLM` that capture sixteen sizes."""

SMALL = {"ASCEND_SHIMS_SIM_MEMORY": "40MiB"}
"""Two workspaces of the attention operator fit, and little more."""


@dataclass(frozen=True)
class Trial:
    """What came of it."""

    tokens: tuple[tuple[int, ...], ...]
    graphs: tuple[int, ...]
    """Sizes that were captured, in tokens."""
    error: str | None
    """Class of the error that ended it."""
    message: str
    states: Mapping[str, str]
    """Of every gap, in the engine's process, by its id."""


def trial(
    model: str | Path,
    prompts: Sequence[Sequence[int]],
    max_tokens: int,
    *,
    graphs: bool = False,
    settings: Mapping[str, Any] | None = None,
    switches: Mapping[str, str] | None = None,
    timeout: float = 480,
) -> Trial:
    """Run an engine with all gaps on, but for what `switches` say.

    `settings` are arguments of `vllm.LLM`. Raises `subprocess.TimeoutExpired`, and
    `RuntimeError` with the end of its log for a process that left no answer.
    """
    from .runtime import environment

    job = {
        "model": str(model),
        "prompts": [list(prompt) for prompt in prompts],
        "max_tokens": max_tokens,
        "settings": {**(GRAPHS if graphs else {}), **(settings or {})},
    }
    inherited = {
        k: v for k, v in os.environ.items() if not k.startswith("ASCEND_SHIMS")
    }
    environ = {
        **inherited,
        **environment(),
        "ASCEND_SHIMS_DEVICE": "sim",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
        **(switches or {}),
    }
    with tempfile.TemporaryDirectory(prefix="ascend-shims-") as folder:
        answer = Path(folder, "answer.json")
        done = subprocess.run(
            [sys.executable, "-m", __name__, str(answer), json.dumps(job)],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout,
            check=False,
        )
        if not answer.exists():
            end = done.stdout.decode(errors="replace")[-4000:]
            raise RuntimeError(f"the engine left no answer; it said:\n{end}")
        told = json.loads(answer.read_text(encoding="utf-8"))
    return Trial(
        tokens=tuple(map(tuple, told["tokens"])),
        graphs=tuple(told["graphs"]),
        error=told["error"],
        message=told["message"],
        states=told["states"],
    )


def _child(answer: str, job: Mapping[str, Any]) -> None:
    import ascend_shims

    from .runtime import engine, generate

    told: dict[str, Any] = {"tokens": [], "graphs": [], "error": None, "message": ""}
    told["states"] = {}
    try:
        llm = engine(job["model"], **job["settings"])
        told["tokens"] = generate(llm, job["prompts"], job["max_tokens"])
        core = llm.llm_engine.engine_core.engine_core
        manager = (
            core.model_executor.driver_worker.worker.model_runner.cudagraph_manager
        )
        told["graphs"] = sorted(desc.num_tokens for desc in manager.graphs)
    except Exception as error:  # noqa: BLE001 - the answer is which one it was
        told["error"], told["message"] = type(error).__name__, str(error)
    told["states"] = {gap.id: str(gap.state) for gap in ascend_shims.status().gaps}
    Path(answer).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    _child(sys.argv[1], json.loads(sys.argv[2]))
    sys.stdout.flush()
    # Nobody needs what is left: taking it down piece by piece takes seconds.
    os._exit(0)
