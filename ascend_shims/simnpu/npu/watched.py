"""What streams and events tell whoever watches the order of work.

Nobody, as a rule: then each of these is one look at an empty list. `hazards` enters
itself here, so that what is watched need not import it.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from .clocks import Clock

if TYPE_CHECKING:
    from .hazards import Hazard
    from .streams import Stream

__all__ = [
    "Watcher",
    "VARIABLE",
    "arrive",
    "found_in_process",
    "recorded",
    "reached",
    "synchronized",
    "waited",
    "waited_too_early",
    "watch_if_asked",
    "watchers",
    "watching_here",
]


VARIABLE = "ASCEND_SHIMS_SIM_HAZARDS"


class Watcher(Protocol):
    """Keeps clocks of streams. One at a time does."""

    def recorded(self, stream: Stream) -> Clock: ...
    def waited(self, stream: Stream, clock: Clock) -> None: ...
    def waited_too_early(self, event: object, stream: Stream) -> None: ...
    def reached(self, clock: Clock) -> None: ...
    def synchronized(self, stream: Stream | None) -> None: ...
    def arrive(self) -> None: ...
    def here(self) -> AbstractContextManager[object]: ...


watchers: list[Watcher] = []


def recorded(stream: Stream) -> Clock:
    """An event was recorded; its clock."""
    return watchers[-1].recorded(stream) if watchers else {}


def waited(stream: Stream, clock: Clock) -> None:
    """A stream waits for an event with this clock."""
    if watchers:
        watchers[-1].waited(stream, clock)


def waited_too_early(event: object, stream: Stream) -> None:
    if watchers:
        watchers[-1].waited_too_early(event, stream)


def reached(clock: Clock) -> None:
    """The host has waited for an event with this clock."""
    if watchers:
        watchers[-1].reached(clock)


def synchronized(stream: Stream | None) -> None:
    """The host has waited for a stream, or for all of them."""
    if watchers:
        watchers[-1].synchronized(stream)


def arrive() -> None:
    """A thread has begun to use streams."""
    if watchers:
        watchers[-1].arrive()


def watching_here() -> AbstractContextManager[object]:
    """Operators of this thread are watched inside, if any are."""
    return watchers[-1].here() if watchers else nullcontext()


_found: list[Hazard] = []


def watch_if_asked() -> None:
    """Watch this process for good if `ASCEND_SHIMS_SIM_HAZARDS=1` says so."""
    global _found
    if os.environ.get(VARIABLE, "").strip().lower() in ("1", "true", "yes", "on"):
        from .hazards import watch_process

        _found = watch_process()


def found_in_process() -> list[Hazard]:
    """The hazards that this process met, where it watches itself."""
    return list(_found)
