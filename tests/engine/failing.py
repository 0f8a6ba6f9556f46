"""Slots that refuse to be read or written, on demand."""

from __future__ import annotations

from typing import Any

import pytest

from ascend_shims.engine.slot import Slot

__all__ = ["Failure", "InjectedError"]


class InjectedError(Exception):
    """What a read or write of a slot was told to raise."""


class Failure:
    """Makes reads and writes of slots fail, and counts those that happen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: set[str] = set()
        """Names whose writes fail."""
        self.at: int | None = None
        """The access, counted from now, that fails; then all go well again."""
        self.error: type[BaseException] = InjectedError
        """What that access raises."""
        self.accesses = 0
        self.writes: list[str] = []
        read, write = Slot.read, Slot.write

        def read_or_fail(slot: Slot) -> Any:
            self._count(slot, "read")
            return read(slot)

        def write_or_fail(slot: Slot, value: Any) -> None:
            self._count(slot, "write")
            if slot.name in self.names:
                raise InjectedError(f"no write to {slot.name}")
            self.writes.append(slot.target)
            write(slot, value)

        monkeypatch.setattr(Slot, "read", read_or_fail)
        monkeypatch.setattr(Slot, "write", write_or_fail)

    def count(self) -> None:
        """Count accesses from here on."""
        self.accesses = 0

    def _count(self, slot: Slot, what: str) -> None:
        self.accesses += 1
        if self.accesses == self.at:
            self.at = None
            raise self.error(f"{what} of {slot.name}")
