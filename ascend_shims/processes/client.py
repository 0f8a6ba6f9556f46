"""Asking every process on this machine that carries shims how its gaps stand."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from typing import Any

from ..states import State
from .address import address, is_trusted, listening, peer

__all__ = ["Answer", "ask_all"]

_STATES = frozenset(state.value for state in State)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one process said."""

    pid: int
    report: dict[str, Any] | None
    """Its report, schema 1, or None where it did not give one."""
    problem: str = ""


def _ask(pid: int, timeout: float) -> Answer | None:
    """The answer of one process; None where it is gone or not ours to ask."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(address(pid))
            actual, uid = peer(connection)
            if actual != pid or not is_trusted(uid):
                return None
            parts = []
            while part := connection.recv(1 << 16):
                parts.append(part)
        except TimeoutError:
            return Answer(pid, None, f"no answer within {timeout:g} s: busy or stopped")
        except OSError:
            return None
    if not parts:
        return None
    try:
        report = json.loads(b"".join(parts))
    except ValueError:
        # It ended in the middle of its answer, or is no process of ours.
        gone = pid not in listening()
        return None if gone else Answer(pid, None, "its answer cannot be read")
    if isinstance(report, dict) and isinstance(report.get("error"), str):
        return Answer(pid, None, report["error"])
    if not _is_report(report):
        return Answer(pid, None, "its answer is of another version of the toolkit")
    return Answer(pid, report)


def _is_report(value: Any) -> bool:
    """Whether an answer has all that is read of it: anything may listen there."""
    if not isinstance(value, dict) or value.get("schema") != 1:
        return False
    process, gaps = value.get("process"), value.get("gaps")
    wanted = {"id", "state", "status", "reason"}
    return (
        isinstance(value.get("plan"), str)
        and isinstance(process, dict)
        and {"pid", "role"} <= process.keys()
        and isinstance(gaps, list)
        and all(isinstance(gap, dict) and wanted <= gap.keys() for gap in gaps)
        and all(gap["state"] in _STATES for gap in gaps)
    )


def ask_all(timeout: float = 2.0) -> list[Answer]:
    """Every other process of this user that carries shims, by process id."""
    pids = [pid for pid in listening() if pid != os.getpid()]
    if not pids:
        return []
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(16, len(pids))) as pool:
        answers = list(pool.map(lambda pid: _ask(pid, timeout), pids))
    return [answer for answer in answers if answer is not None]
