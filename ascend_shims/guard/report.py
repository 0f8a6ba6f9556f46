"""Findings as JSON lines, one object a line, within a quota.

    {"time": "2026-01-02T03:04:05.678901+00:00", "rank": 0, "step": 7,
     "request_id": "a1", "detector": "repeated-tokens", "evidence": {…}}

Several processes may write one file: each line is one appending write. The
quota is the file's, so that an engine that is restarted again and again does
not fill a disk either; the last line says that it is used up.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import msgspec

from .config import ReportSettings

__all__ = ["Line", "Report"]

_log = logging.getLogger(__name__)

_FULL = "quota"
"""The `evidence` key of a file's last line."""
_TAIL = 4096


class Line(msgspec.Struct, frozen=True):
    """One line of a report."""

    time: str
    rank: int
    step: int
    request_id: str | None
    detector: str
    evidence: Mapping[str, Any]


class Report:
    """Appends findings to a file, or to the log where no file is named.

    Never raises: a report that cannot be written is no reason to end a step.
    """

    def __init__(self, settings: ReportSettings, *, rank: int = 0) -> None:
        self.settings = settings
        self.rank = rank
        self._logged = 0
        self._unwritable = False
        self._lines = 0
        self._counted: tuple[int, int] | None = None
        """Inode and size of the file when `_lines` and `_closed` were read off it."""
        self._closed = False

    def write(
        self,
        detector: str,
        evidence: Mapping[str, Any],
        *,
        step: int,
        request_id: str | None = None,
    ) -> None:
        """Append one line, unless the quota is used up."""
        line = _encoded(Line(_now(), self.rank, step, request_id, detector, evidence))
        path = self.settings.path
        if path is None:
            self._to_log(line)
            return
        try:
            self._to_file(path, line, step)
        except OSError as error:
            if not self._unwritable:
                self._unwritable = True
                _log.warning("guard report %s: %s; see here instead", path, error)
            self._to_log(line)

    def _to_log(self, line: bytes) -> None:
        if self._logged < self.settings.max_lines:
            _log.warning("%s", line.decode())
        elif self._logged == self.settings.max_lines:
            _log.warning("guard: %d findings logged, no more are", self._logged)
        self._logged += 1

    def _to_file(self, path: str, line: bytes, step: int) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        # Opened anew each time: findings are rare, and the file may have been
        # rotated, removed, or inherited through a fork.
        file = os.open(path, flags, 0o600)
        try:
            found = os.fstat(file)
            self._recount(file, found)
            if self._closed:
                return
            if not self._has_room(found.st_size, len(line) + 1):
                line = self._last_line(step)
                self._closed = True
            written = os.write(file, line + b"\n")
            if written <= len(line):
                raise OSError(f"{written} of {len(line) + 1} bytes were written")
            self._lines += 1
            self._counted = (found.st_ino, found.st_size + written)
        finally:
            os.close(file)

    def _has_room(self, size: int, more: int) -> bool:
        return (
            self._lines < self.settings.max_lines
            and size + more <= self.settings.max_bytes
        )

    def _recount(self, file: int, found: os.stat_result) -> None:
        """Count the lines again where somebody else wrote to the file."""
        if (found.st_ino, found.st_size) == self._counted:
            return
        if not stat.S_ISREG(found.st_mode):
            return
        self._lines, position = 0, 0
        # A longer file is beyond the quota whatever its number of lines.
        while position < min(found.st_size, self.settings.max_bytes):
            chunk = os.pread(file, 1 << 16, position)
            if not chunk:
                break
            self._lines += chunk.count(b"\n")
            position += len(chunk)
        tail = os.pread(file, _TAIL, max(0, found.st_size - _TAIL))
        self._closed = _is_closing(tail)
        self._counted = (found.st_ino, found.st_size)

    def _last_line(self, step: int) -> bytes:
        quota = {
            "max_bytes": self.settings.max_bytes,
            "max_lines": self.settings.max_lines,
        }
        return _encoded(Line(_now(), self.rank, step, None, "guard", {_FULL: quota}))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def _encoded(line: Line) -> bytes:
    try:
        return msgspec.json.encode(line, enc_hook=str)
    except (TypeError, ValueError):  # text that is not valid unicode, odd keys
        plain = {"ascii": ascii(line.evidence)}
        return msgspec.json.encode(msgspec.structs.replace(line, evidence=plain))


def _is_closing(tail: bytes) -> bool:
    """Whether the last line of `tail` is the one that closes a report."""
    last = tail.rstrip(b"\n").rpartition(b"\n")[2]
    try:
        line = msgspec.json.decode(last, type=Line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return line.detector == "guard" and _FULL in line.evidence
