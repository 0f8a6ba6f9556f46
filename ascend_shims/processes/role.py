"""What part a process plays in a vLLM deployment, as far as it shows."""

from __future__ import annotations

import multiprocessing
import os
import sys
from pathlib import Path

__all__ = ["own_role"]

_ROLES = (
    ("enginecore", "engine-core"),
    ("dpcoordinator", "dp-coordinator"),
    ("apiserver", "api-server"),
    ("api_server", "api-server"),
    ("worker", "worker"),
)
"""A part of vLLM's name for a process, and the role it stands for."""


def _title() -> str:
    """The process's title as `ps` shows it: vLLM sets one where it can."""
    try:
        raw = Path(f"/proc/{os.getpid()}/cmdline").read_bytes()
    except OSError:
        return ""
    title = raw.replace(b"\0", b" ").decode(errors="replace").strip()
    return title if title.startswith(("VLLM::", "ray::")) else ""


def own_role() -> str:
    """`engine-core`, `worker`, `api-server`, …, or `front-end` for a main program."""
    process = multiprocessing.current_process()
    title = _title()
    for name in (title.lower(), process.name.lower()):
        for part, role in _ROLES:
            if part in name:
                rank = _rank(title or process.name)
                return f"{role} {rank}" if rank else role
    if multiprocessing.parent_process() is not None:
        return process.name
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else ""
    return "cli" if program == "shims" else "front-end"


def _rank(name: str) -> str:
    """The part of a name that tells ranks apart: `Worker_TP1` has `TP1`."""
    tail = name.replace("-", "_").partition("_")[2]
    return tail if any(ch.isdigit() for ch in tail) else ""
