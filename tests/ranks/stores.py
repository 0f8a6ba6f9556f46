"""Stores as torch has them, without torch: keys that a rank may wait for."""

from __future__ import annotations

import threading
from datetime import timedelta

__all__ = ["MemoryStore"]


class MemoryStore:
    """Shared by the threads of a test; out of reach once it is closed."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition()
        self._closed = False

    def _open(self) -> None:
        if self._closed:
            raise RuntimeError("connection reset by peer")

    def set(self, key: str, value: str, /) -> None:
        with self._changed:
            self._open()
            self._values[key] = value.encode()
            self._changed.notify_all()

    def get(self, key: str, /) -> bytes:
        with self._changed:
            self._open()
            return self._values[key]

    def add(self, key: str, amount: int, /) -> int:
        with self._changed:
            self._open()
            value = int(self._values.get(key, b"0")) + amount
            self._values[key] = str(value).encode()
            return value

    def check(self, keys: list[str], /) -> bool:
        with self._changed:
            self._open()
            return all(key in self._values for key in keys)

    def wait(self, keys: list[str], timeout: timedelta, /) -> None:
        with self._changed:
            there = self._changed.wait_for(
                lambda: self._closed or all(key in self._values for key in keys),
                timeout.total_seconds(),
            )
            self._open()
            if not there:
                raise RuntimeError("wait timeout")

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
