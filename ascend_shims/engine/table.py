"""The slots that hold something of ours, and changing them all or not at all.

Every write to upstream goes through here. A change of several slots is made in
two steps: the new values are computed and checked first, then written and read
back; if a write fails, those before it are undone.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import ShimsError
from .aliases import Alias, Move, find, rebindable
from .layers import Layer, SlotState
from .slot import ABSENT, Slot
from .stale import stale_references
from .wrappers import peel

__all__ = ["ConflictError", "ReadBackError", "RestoreError", "Table", "spec_of"]


class ConflictError(ShimsError):
    """Two patches on one slot cannot be reconciled."""


class ReadBackError(ShimsError):
    """A slot does not hold what was written to it a moment ago."""


class RestoreError(ShimsError):
    """Some slots could not be put back; the message names them all."""


@dataclass(frozen=True)
class _Change:
    """One slot's next value, computed and not yet written."""

    state: SlotState
    layers: list[Layer]
    value: Any
    retire: list[Callable[[], None]]


@dataclass
class _Rebound:
    """A reference elsewhere that we moved, and what it held before us."""

    slot: Slot
    original: Any


class Table:
    """All slot states of one engine. The caller holds the engine's lock."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, str], SlotState] = {}
        self._earlier: list[SlotState] = []
        """States whose slot holds something else by now: a foreign patch on top,
        or what a reload put there."""
        self._rebound: dict[tuple[int, str], _Rebound] = {}
        self._moves: list[Move] = []
        self.skip: tuple[str, ...] = ()
        """Top-level packages whose references are left alone: the patches' own."""

    def _all(self) -> list[SlotState]:
        return [*self._states.values(), *self._earlier]

    def states_of(self, gap: str) -> list[SlotState]:
        """The slots that carry a layer of `gap`."""
        return [s for s in self._all() if any(one.gap == gap for one in s.layers)]

    def state_at(self, slot: Slot, gap: str) -> SlotState | None:
        """What we know of this very slot, where it carries a layer of `gap`."""
        states = [s for s in self.states_of(gap) if s.slot.key == slot.key]
        return next((s for s in states if s.is_live), states[-1] if states else None)

    @property
    def rebound(self) -> list[str]:
        """The references that hold a value of ours by our doing, `module:name`."""
        return sorted(str(entry.slot.target) for entry in self._rebound.values())

    def stale(self) -> list[str]:
        """References to unpatched values that could not be moved along."""
        states = [state for state in self._states.values() if state.is_live]
        return stale_references(states, (e.original for e in self._rebound.values()))

    def add(self, additions: Iterable[tuple[Slot, Layer]]) -> None:
        """Lay each layer on its slot: all of them, or none and raise.

        A layer that is already there is left as it is.
        """
        layers: dict[tuple[int, str], tuple[SlotState, list[Layer]]] = {}
        for slot, layer in additions:
            state, present = layers.get(slot.key) or self._present(slot)
            if all(one.order != layer.order for one in present):
                layers[slot.key] = state, [*present, layer]
        changes = []
        for state, wanted in layers.values():
            if len({one.is_binding for one in wanted}) > 1:
                raise ConflictError(
                    f"{state.slot.target} carries patches of both scopes, "
                    "`everywhere` and `binding`; give them one scope"
                )
            value, retire = state.fold(wanted)
            changes.append(_Change(state, wanted, value, retire))
        self._commit(changes)

    def _present(self, slot: Slot) -> tuple[SlotState, list[Layer]]:
        """The state to build on: what we know, where the slot still holds it."""
        state = self._states.get(slot.key)
        if state is not None and state.is_live:
            return state, state.layers
        value = slot.read()
        return SlotState(slot, value, visible=value, spec=spec_of(slot)), []

    def _commit(self, changes: list[_Change]) -> None:
        tried: list[_Change] = []
        try:
            for change in changes:
                tried.append(change)
                self._write(change.state.slot, change.value)
        except BaseException:
            for change in reversed(tried):
                with contextlib.suppress(Exception):
                    if not change.state.is_live:
                        change.state.slot.write(change.state.visible)
            raise
        for change in changes:
            self._record(change)

    @staticmethod
    def _write(slot: Slot, value: Any) -> None:
        slot.write(value)
        if slot.read() is not value:
            raise ReadBackError(
                f"{slot.target} does not hold what was written to it; its owner "
                "changes what is assigned, so it cannot be patched in place"
            )

    def _record(self, change: _Change) -> None:
        state, old = change.state, change.state.visible
        for retire in state.retire:
            retire()
        self._queue(old, change.value, [*state.layers, *change.layers])
        state.layers, state.visible = change.layers, change.value
        state.retire, state.dirty = change.retire, False
        known = self._states.get(state.slot.key)
        if known is not None and known is not state:
            self._earlier.append(known)
        if change.layers:
            self._states[state.slot.key] = state
        elif known is state:
            del self._states[state.slot.key]

    def _queue(self, old: Any, new: Any, layers: Iterable[Layer]) -> None:
        """Remember that references to `old` are to become references to `new`."""
        if old is ABSENT or new is ABSENT or any(one.is_binding for one in layers):
            return
        pairs = [(old, new)]
        if peel(old) is not old:
            pairs.append((peel(old), peel(new)))
        self._moves += [Move(a, b) for a, b in pairs if a is not b and rebindable(a)]

    def remove(self, gap: str) -> None:
        """Take the layers of `gap` off every slot.

        Where the slot holds something else by now nothing is written: our layer
        steps aside beneath. Goes on past errors and raises them all as one
        `RestoreError`.
        """
        errors: list[str] = []
        for state in self.states_of(gap):
            if not state.is_live:
                self._step_aside(state, gap)
                continue
            layers = [one for one in state.layers if one.gap != gap]
            try:
                value, retire = state.fold(layers)
                self._write(state.slot, value)
            except Exception as error:  # noqa: BLE001 - kept and reported
                errors.append(f"{state.slot.target} ({error})")
                self._step_aside(state, gap)
                continue
            self._record(_Change(state, layers, value, retire))
        if errors:
            raise RestoreError(f"{gap} could not be put back at {'; '.join(errors)}")

    def _step_aside(self, state: SlotState, gap: str) -> None:
        ordered = sorted(state.layers, key=lambda one: one.order)
        kept = []
        for layer, retire in zip(ordered, state.retire, strict=True):
            if layer.gap == gap:
                retire()
            else:
                kept.append((layer, retire))
        if not kept:
            self._queue(state.visible, state.base, state.layers)
        state.layers = [layer for layer, _ in kept]
        state.retire = [retire for _, retire in kept]
        state.dirty = True

    def tidy(self) -> None:
        """Finish what a foreign patch was in the way of, where it has left.

        A slot that holds a value of ours again, with a layer in it that has
        stepped aside meanwhile, gets the value it should have.
        """
        for state in [s for s in self._all() if s.dirty and s.is_live]:
            value, retire = state.fold(state.layers)
            self._write(state.slot, value)
            layers = state.layers
            if state in self._earlier:
                self._earlier.remove(state)
                self._states[state.slot.key] = state
            self._record(_Change(state, layers, value, retire))

    def supersede(self, gap: str, state: SlotState) -> None:
        """The slot's module was executed anew: what lay there is history."""
        if self._states.get(state.slot.key) is state:
            del self._states[state.slot.key]
            self._earlier.append(state)
        self._step_aside(state, gap)

    def settle(self) -> list[str]:
        """Move every reference along with the changes made since the last call.

        Returns what could not be moved, one line each.
        """
        self._carry_bases()
        moves = self._compressed()
        self._moves = []
        if not moves:
            return []
        stuck = []
        for alias in find(moves.values(), skip=self.skip):
            try:
                self._follow(alias)
            except Exception as error:  # noqa: BLE001 - kept and reported
                stuck.append(f"{alias} ({error})")
        return stuck

    def _carry_bases(self) -> None:
        """A binding that we patched may be a reference to another slot's value.

        Its base moves along, and its own layers are laid over the new base.
        """
        bound = [s for s in self._states.values() if s.is_binding]
        for move in self._compressed().values():
            for state in [s for s in bound if s.base is move.old and s.is_live]:
                state.base = move.new
                value, retire = state.fold(state.layers)
                self._write(state.slot, value)
                self._rebound.pop(state.slot.key, None)
                self._record(_Change(state, state.layers, value, retire))

    def _compressed(self) -> dict[int, Move]:
        """Old value to final value: a value may have moved on several times."""
        final: dict[int, Move] = {}
        for move in self._moves:
            for key, earlier in list(final.items()):
                if earlier.new is move.old:
                    final[key] = Move(earlier.old, move.new)
            final[id(move.old)] = move
        return {key: m for key, m in final.items() if m.old is not m.new}

    def _follow(self, alias: Alias) -> None:
        entry = self._rebound.pop(alias.key, None)
        original = alias.held if entry is None else entry.original
        value = alias.follow()
        if getattr(original, "__func__", None) is getattr(value, "__func__", ABSENT):
            # Back to a bound method that was there: the very same object.
            value = original
        slot = Slot(alias.owner, alias.name, str(alias))
        slot.write(value)
        if value is not original:
            self._rebound[alias.key] = _Rebound(slot, original)


def spec_of(slot: Slot) -> object:
    """The spec of the slot's module: a reload gives the module a new one."""
    return getattr(sys.modules.get(slot.module), "__spec__", None)
