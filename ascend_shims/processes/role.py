"""What part a process plays in a vLLM deployment, as far as it shows."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

__all__ = ["own_role", "parent_pid"]

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
    started = _multiprocessing()
    own = started.current_process().name if started else ""
    title = _title()
    for name in (title.lower(), own.lower()):
        for part, role in _ROLES:
            if part in name:
                rank = _rank(title or own)
                return f"{role} {rank}" if rank else role
    if parent_pid() is not None:
        return own
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else ""
    return "cli" if program == "shims" else "front-end"


def parent_pid() -> int | None:
    """The process by whose `multiprocessing` this one was started, if it was."""
    started = _multiprocessing()
    parent = started.parent_process() if started else None
    return parent.pid if parent else None


def _multiprocessing() -> Any:
    """The module, where it is loaded: what it started has it, and it is too large to
    be loaded for asking."""
    return sys.modules.get("multiprocessing.process")


def _rank(name: str) -> str:
    """The part of a name that tells ranks apart: `Worker_TP1` has `TP1`."""
    tail = name.replace("-", "_").partition("_")[2]
    return tail if any(ch.isdigit() for ch in tail) else ""
