"""Asking every process on this machine that carries shims how its gaps stand."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from ..states import State
from .address import ASKS_STATES, address, is_trusted, listening, peer

__all__ = ["Answer", "ask_all", "ask_states"]

_T = TypeVar("_T")

_STATES = frozenset(state.value for state in State)


class Answer(msgspec.Struct, frozen=True):
    """What one process said."""

    pid: int
    report: dict[str, Any] | None
    """Its report, schema 1, or None where it did not give one."""
    problem: str = ""


def _received(pid: int, timeout: float, name: str | None = None) -> bytes | None:
    """What a process sends; None where it is gone or not ours to ask.

    Raises `TimeoutError`. `name` is the asker's own, which says what is asked for.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            if name is not None:
                connection.bind(name)
            connection.connect(address(pid))
            actual, uid = peer(connection)
            if actual != pid or not is_trusted(uid):
                return None
            parts = []
            while part := connection.recv(1 << 16):
                parts.append(part)
        except TimeoutError:
            raise
        except OSError:
            return None
    return b"".join(parts)


def _ask(pid: int, timeout: float) -> Answer | None:
    """The answer of one process; None where it is gone or not ours to ask."""
    try:
        received = _received(pid, timeout)
    except TimeoutError:
        return Answer(pid, None, f"no answer within {timeout:g} s: busy or stopped")
    if not received:
        return None
    try:
        report = json.loads(received)
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
    answers = _each(pids, lambda pid: _ask(pid, timeout))
    return [answer for answer in answers if answer is not None]


def ask_states(pids: Iterable[int], *, timeout: float) -> list[bytes | None]:
    """How many gaps of each process are in which state: JSON, for who asks often.

    None for one that says nothing in time; those that have ended are left out.
    """

    def ask(pid: int) -> bytes | None:
        try:
            return _received(pid, timeout, ASKS_STATES + os.urandom(8).hex())
        except TimeoutError:
            return b""

    answers = _each(list(pids), ask)
    return [answer or None for answer in answers if answer is not None]


def _each(pids: list[int], ask: Callable[[int], _T]) -> list[_T]:
    """Ask all at once."""
    if not pids:
        return []
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=min(16, len(pids))) as pool:
        return list(pool.map(ask, pids))
