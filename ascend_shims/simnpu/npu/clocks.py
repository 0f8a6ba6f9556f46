"""Vector clocks: what each stream can be sure has happened on the others."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["Clock", "Clocks"]

Clock = Mapping[int, int]
"""For each stream, how many of its steps are known to be done."""


class Clocks:
    """One clock a stream, of which the host may be one."""

    def __init__(self) -> None:
        self._clocks: dict[int, dict[int, int]] = {}

    def of(self, stream: int) -> Clock:
        """What holds after all that was put on the stream; do not keep, `record` it."""
        return self._clocks.setdefault(stream, {})

    def streams(self) -> list[int]:
        return list(self._clocks)

    def tick(self, stream: int) -> int:
        """One more step on a stream; its number."""
        clock = self._clocks.setdefault(stream, {})
        clock[stream] = clock.get(stream, 0) + 1
        return clock[stream]

    def record(self, stream: int) -> Clock:
        """The stream's clock as it is now, for others to join."""
        return dict(self.of(stream))

    def join(self, stream: int, clock: Clock) -> None:
        """All that `clock` covers is done before whatever comes next on the stream."""
        own = self._clocks.setdefault(stream, {})
        for other, steps in clock.items():
            if steps > own.get(other, 0):
                own[other] = steps

    def covers(self, stream: int, other: int, step: int) -> bool:
        """Whether a stream waits for step `step` of another one."""
        return stream == other or self.of(stream).get(other, 0) >= step
