"""How ranks tell each other what they carry, before any of them needs the others.

Through the store at which they met to form their group: who reads there waits no
longer than it wants to, and a rank that has nothing to say keeps nobody.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from ..errors import ShimsError
from .compare import RanksDifferError, compared
from .told import RankTold

__all__ = ["MeetingError", "Store", "meet"]

_PREFIX = "ascend_shims/ranks"
_FAREWELL = 10.0
"""Seconds that a rank stays for others to read why it leaves: the store may be its."""


class Store(Protocol):
    """What is needed of torch's stores."""

    def set(self, key: str, value: str, /) -> None: ...
    def get(self, key: str, /) -> bytes: ...
    def add(self, key: str, amount: int, /) -> int: ...
    def check(self, keys: list[str], /) -> bool: ...
    def wait(self, keys: list[str], timeout: timedelta, /) -> None: ...


class MeetingError(ShimsError):
    """The store at which the ranks meet is gone."""


def meet(store: Store, world_size: int, told: RankTold, patience: float) -> None:
    """Compare what this rank carries with what all others do.

    Every rank comes to the same answer. Raises `RanksDifferError`, also for ranks
    that have told nothing after `patience` seconds, and `MeetingError`.
    """
    try:
        _meet(store, world_size, told, patience)
    except RuntimeError as error:
        raise MeetingError(
            "the ranks could not be compared, for the store that they meet at does not "
            f"answer ({error}). A rank has failed, and its log says why; "
            "ASCEND_SHIMS_RANKS=off starts them without comparing"
        ) from error


def _meet(store: Store, world_size: int, told: RankTold, patience: float) -> None:
    # A store may see more than one engine of the same processes.
    number = store.add(f"{_PREFIX}/{told.rank}", 1)
    keys = [f"{_PREFIX}/{rank}/{number}" for rank in range(world_size)]
    store.set(keys[told.rank], told.as_text())
    there = _wait(store, keys, patience)
    everyone = [
        RankTold.from_text(rank, store.get(key).decode()) if key in there else None
        for rank, key in enumerate(keys)
    ]
    try:
        compared(
            [one or RankTold(rank) for rank, one in enumerate(everyone)],
            silent=f"told nothing for {patience:g} s, so that no patch of ours is in "
            "force there (the plugin was not loaded, or ASCEND_SHIMS=off)",
        )
    except RanksDifferError:
        # Who has read may leave, and take the store along.
        with contextlib.suppress(RuntimeError):
            store.set(f"{keys[told.rank]}/read", "")
            _wait(store, [f"{key}/read" for key in there], _FAREWELL)
        raise


def _wait(store: Store, keys: Sequence[str], seconds: float) -> list[str]:
    """Those of `keys` that are there within `seconds`."""
    deadline = time.monotonic() + seconds
    there = []
    for key in keys:
        left = max(deadline - time.monotonic(), 0.0)
        if _comes(store, key, left):
            there.append(key)
    return there


def _comes(store: Store, key: str, seconds: float) -> bool:
    if store.check([key]):
        return True
    try:
        store.wait([key], timedelta(seconds=max(seconds, 0.01)))
    except RuntimeError:
        # Out of time, or out of reach, which asking again tells.
        return store.check([key])
    return True
