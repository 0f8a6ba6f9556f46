"""Where a process's responder is found."""

from __future__ import annotations

import os
import re
import socket
import struct
import sys
from pathlib import Path

__all__ = ["ASKS_STATES", "SUPPORTED", "address", "is_trusted", "listening", "peer"]

SUPPORTED = sys.platform == "linux"
"""Abstract sockets and their peer credentials are Linux's."""

ASKS_STATES = "\0ascend-shims/states/"
"""How the name of a socket begins whose owner asks for a summary, not for the report.

It is there before the connection is, so that nobody waits for a question.
"""

_NAME = re.compile(r"@ascend-shims/(\d+)$")
_CREDENTIALS = struct.Struct("3i")


def address(pid: int) -> str:
    """The abstract socket address of a process."""
    return f"\0ascend-shims/{pid}"


def listening() -> list[int]:
    """The processes, of this network namespace, that have a responder."""
    try:
        lines = Path("/proc/net/unix").read_text().splitlines()
    except OSError:
        return []
    return sorted({int(m.group(1)) for line in lines if (m := _NAME.search(line))})


def peer(connection: socket.socket) -> tuple[int, int]:
    """Process and user id at the other end, as the kernel knows them."""
    raw = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
    )
    pid, uid, _ = _CREDENTIALS.unpack(raw)
    return pid, uid


def is_trusted(uid: int) -> bool:
    """Whether a peer of that user may be asked or answered."""
    return uid in (0, os.getuid())
