"""The processes of one deployment, as far as they carry shims."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from ..processes.address import listening
from ..processes.client import ask_states
from ..processes.role import parent_pid
from .multiprocess import MULTIPROCESS
from .summary import Summary

__all__ = ["summaries"]

_PATIENCE = 0.25
"""Seconds. vLLM makes the page of metrics in the thread that serves requests."""


def summaries() -> tuple[list[Summary], int]:
    """What the others say, read from their bindings now, and how many say nothing."""
    answers = ask_states(_others(), timeout=_PATIENCE)
    told = []
    for answer in answers:
        try:
            told.append(msgspec.json.decode(answer or b"", type=Summary))
        except msgspec.MsgspecError:
            # Silent, of another version, or no process of ours at all.
            continue
    return told, len(answers) - len(told)


def _others() -> list[int]:
    """Processes beneath this one; where several share a page, beneath their parent."""
    shared = MULTIPROCESS in os.environ
    root = (parent_pid() if shared else None) or os.getpid()
    pids = (pid for pid in listening() if pid != os.getpid())
    return [pid for pid in pids if pid == root or root in _ancestors(pid)]


def _ancestors(pid: int) -> list[int]:
    found: list[int] = []
    while pid > 1 and pid not in found:
        found.append(pid)
        try:
            told = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            break
        # The name, in parentheses, may hold anything.
        pid = int(told.rpartition(")")[2].split()[1])
    return found[1:]
