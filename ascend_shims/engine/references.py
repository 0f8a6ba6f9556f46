"""Moving other references along with the slots, and back.

What a reference held before is remembered for as long as it holds a value of
ours, so that it gets the very object back. A reference that somebody else has
changed in the meantime is left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from types import MethodType
from typing import Any

import msgspec

from .aliases import Alias, Move, find, unfound
from .slot import ABSENT, Slot
from .wrappers import mark_of

__all__ = ["Moved", "Outside", "References", "Stuck"]


Outside = Callable[[list[Any], list[Any]], list[int] | None]
"""Values, and what of ours holds them for the moment, to how many references there are
besides; None where that cannot be told."""


class Moved(msgspec.Struct):
    """A reference that we changed."""

    slot: Slot
    original: Any
    value: Any
    """What we wrote last."""


class Stuck(msgspec.Struct, frozen=True):
    """A reference that could not be moved along."""

    text: str
    ours: bool
    """Whether it holds a value of ours that should be gone."""


class References:
    """The references elsewhere to the values of our slots."""

    def __init__(self) -> None:
        self._moved: dict[tuple[int, str], Moved] = {}
        self._moves: list[Move] = []
        self.skip: tuple[str, ...] = ()
        """Top-level packages whose references are left alone: the patches' own."""

    def __len__(self) -> int:
        return len(self._moved)

    @property
    def names(self) -> list[str]:
        """The references that hold a value of ours by our doing, `module:name`."""
        now = [one for one in self._moved.values() if one.slot.read() is one.value]
        return sorted(one.slot.target for one in now)

    def has_moved(self, slot: Slot) -> bool:
        """Whether the slot is a reference that we moved along with another slot."""
        return slot.key in self._moved

    def queue(self, moves: Iterable[Move]) -> None:
        """Have every reference to an old value become one to the new, in `settle`."""
        self._moves += moves

    def pending(self) -> dict[int, Move]:
        """Old value to final value, by identity of the old one."""
        final: dict[int, Move] = {}
        leading: dict[int, set[int]] = {}
        """By a new value, the old ones that become it."""
        for move in self._moves:
            for key in leading.pop(id(move.old), ()):
                final[key] = msgspec.structs.replace(final[key], new=move.new)
                leading.setdefault(id(move.new), set()).add(key)
            key = id(move.old)
            if key in final:
                leading[id(final[key].new)].discard(key)
            final[key] = move
            leading.setdefault(id(move.new), set()).add(key)
        return {key: m for key, m in final.items() if m.old is not m.new}

    def settle(self, outside: Outside, near: tuple[str, ...] = ()) -> list[Stuck]:
        """Do what is queued. What cannot be done is returned, and tried again.

        Args:
            outside: counts the references to values that are not ours, given what
                else of ours holds them.
            near: top-level packages that are likely to hold them all, first to last.
        """
        moves, queued = list(self.pending().values()), self._moves
        self._moves = []
        stuck: list[Stuck] = []
        if not moves:
            return stuck
        try:
            counts = _counted(moves, outside, [moves, queued])
            for among in _looks(near):
                if counts is not None:
                    moves = [move for move in moves if id(move.old) in counts]
                if not moves:
                    break
                stuck, moved = self._move(moves, among, counts)
                counts = None if counts is None else unfound(counts, moved)
        except BaseException:
            # Those that moved hold no old value any more, and are not found again.
            self._moves = queued
            raise
        return stuck

    def _move(
        self,
        moves: list[Move],
        among: tuple[str, ...] | None,
        counts: Mapping[int, int] | None,
    ) -> tuple[list[Stuck], list[Alias]]:
        """Have the references found there follow. Returns what could not, and what
        did."""
        owners = [one.slot.owner for one in self._moved.values()]
        stuck: list[Stuck] = []
        moved: list[Alias] = []
        found = find(moves, skip=self.skip, among=among, also=owners, counts=counts)
        for alias in found:
            slot = Slot(alias.owner, alias.name, str(alias))
            if alias.move.everywhere or self.has_moved(slot):
                failed = self._follow(slot, alias)
                stuck += failed
                moved += [] if failed else [alias]
        return stuck, moved

    def _follow(self, slot: Slot, alias: Alias) -> list[Stuck]:
        known = self._known(slot, alias.held)
        original = _origin(alias.held, alias.move) if known is None else known.original
        value = _moved_value(alias.held, alias.move, original)
        try:
            slot.write(value)
        except Exception as error:  # noqa: BLE001 - kept and reported
            self._moves.append(alias.move)
            ours = known is not None or mark_of(alias.move.old) is not None
            return [Stuck(f"{slot.target} ({error})", ours)]
        self._remember(slot, original, value)
        return []

    def carried(self, slot: Slot, move: Move) -> None:
        """Note that a slot of ours is a reference that has moved along."""
        known = self._known(slot, move.old)
        original = _origin(move.old, move) if known is None else known.original
        self._remember(slot, original, move.new)

    def _known(self, slot: Slot, held: Any) -> Moved | None:
        """What we know of a reference, if it is still the one that we moved."""
        known = self._moved.get(slot.key)
        if known is not None and known.value is not held:
            # It has been bound anew since.
            del self._moved[slot.key]
            return None
        return known

    def _remember(self, slot: Slot, original: Any, value: Any) -> None:
        self._moved.pop(slot.key, None)
        if value is not original:
            self._moved[slot.key] = Moved(slot, original, value)


_MANY = 1000
"""Modules. In a process with fewer a look everywhere costs no more than one nearby."""


def _looks(near: tuple[str, ...]) -> list[tuple[str, ...] | None]:
    """Where to look, one place after the other; None is everywhere."""
    few = len(sys.modules) < _MANY
    return [None] if few else [*((package,) for package in near), None]


def _counted(
    moves: list[Move], outside: Outside, ours: list[Any]
) -> dict[int, int] | None:
    """How many references somebody else has to the old value of each move, by its id,
    where there are any; None where that cannot be told."""
    counts = outside([move.old for move in moves], ours)
    if counts is None:
        return None
    pairs = zip(moves, counts, strict=True)
    return {id(move.old): count for move, count in pairs if count > 0}


def _origin(held: Any, move: Move) -> Any:
    """What a reference would hold without us that was found to hold `held`."""
    if move.old is move.origin:
        return held
    return move.origin if held is move.old else MethodType(move.origin, held.__self__)


def _moved_value(held: Any, move: Move, original: Any) -> Any:
    """What a reference to `move.old`, or to a method bound to it, becomes."""
    if held is move.old:
        return move.new
    if getattr(original, "__func__", ABSENT) is move.new:
        # Back to the bound method that was there: the very same object.
        return original
    return MethodType(move.new, held.__self__)
