"""The slots that hold something of ours, and changing them all or not at all.

Every write to upstream goes through here. A change of several slots is made in
two steps: the new values are computed and checked first, then written and read
back; if a write fails, those before it are undone.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ..errors import ShimsError
from .aliases import Move, rebindable
from .choose import home, is_borrowed
from .layers import Layer, SlotState
from .outside import count_outside
from .references import Moved, References, Stuck
from .slot import ABSENT, Slot
from .stale import stale_references
from .wrappers import lead, mark_of, peel

__all__ = [
    "ConflictError",
    "ReadBackError",
    "RestoreError",
    "Table",
    "spec_of",
]


class ConflictError(ShimsError):
    """Two patches on one slot cannot be reconciled."""


class ReadBackError(ShimsError):
    """A slot does not hold what was written to it a moment ago."""


class RestoreError(ShimsError):
    """Some slots could not be put back; the message names them all."""


class _Change(msgspec.Struct, frozen=True):
    """One slot's next value, computed and not yet written."""

    state: SlotState
    layers: list[Layer]
    value: Any
    retire: list[Callable[[], None]]


class _Left(msgspec.Struct):
    """A wrapper of ours that has left its slot; somebody may have kept it."""

    wrapper: weakref.ref[Any]
    base: Any
    """The base of its slot at that time."""
    origin: Any
    """What it stood in front of."""
    to: Any
    """What it leads to now."""


_OURS = (SlotState, _Left, Moved, Move, References)
"""What our values are held by."""


def _kept(left: list[_Left]) -> list[tuple[_Left, Any]]:
    """Those that somebody still holds, each with the wrapper, which may be the last
    holder of another one."""
    return [(one, w) for one in left if (w := one.wrapper()) is not None]


class Table:
    """All slot states of one engine. The caller holds the engine's lock."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, str], SlotState] = {}
        self._earlier: list[SlotState] = []
        """States whose slot holds something else by now: a foreign patch on top,
        or what a reload put there."""
        self._left: dict[tuple[int, str], list[_Left]] = {}
        self.references = References()
        self.upstreams: tuple[str, ...] = ()

    def _all(self) -> list[SlotState]:
        return [*self._states.values(), *self._earlier]

    @property
    def states(self) -> list[SlotState]:
        """The slots that carry layers, as far as we know."""
        return [state for state in self._all() if state.layers]

    def states_of(self, gap: str) -> list[SlotState]:
        """The slots that carry a layer of `gap`."""
        return [s for s in self._all() if any(one.gap == gap for one in s.layers)]

    def state_at(self, slot: Slot, gap: str) -> SlotState | None:
        """What we know of this very slot, where it carries a layer of `gap`."""
        here = [s for s in self._earlier if s.slot.key == slot.key]
        if (current := self._states.get(slot.key)) is not None:
            here.insert(0, current)
        states = [s for s in here if any(one.gap == gap for one in s.layers)]
        return next((s for s in states if s.is_live), states[-1] if states else None)

    @property
    def is_dirty(self) -> bool:
        """Whether a slot does not hold, as far as we know, what it should."""
        return any(state.dirty for state in self._all())

    def aside(self, gap: str) -> Slot | None:
        """A slot where a layer of `gap` lies, inert, beneath a foreign value."""
        for state in self._all():
            if gap in state.aside and spec_of(state.slot) is state.spec:
                return None if state.is_live else state.slot
        return None

    def home(self, slot: Slot) -> Slot:
        """The slot that a patch on `slot` goes to: where its value comes from."""
        value = slot.read()
        for state in self._states.values():
            if state.visible is value and not state.is_binding and value is not ABSENT:
                return state.slot
        return home(slot, self.upstreams)

    def stale(self) -> list[str]:
        """References to unpatched values that could not be moved along."""
        # A wrapper that nobody kept leaves a note that holds its base.
        self._forget_unkept()
        states = [state for state in self._states.values() if state.is_live]
        return stale_references(states, self._outside, skip=self.references.skip)

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
        borrowed = is_borrowed(peel(value), self.upstreams)
        spec = spec_of(slot)
        return SlotState(slot, value, visible=value, spec=spec, borrowed=borrowed), []

    def _commit(self, changes: list[_Change]) -> None:
        tried: list[_Change] = []
        try:
            for change in changes:
                tried.append(change)
                self._write(change.state.slot, change.value)
        except BaseException:
            for change in reversed(tried):
                self._unwrite(change)
            raise
        for change in changes:
            self._record(change)

    def _unwrite(self, change: _Change) -> None:
        try:
            if change.state.slot.read() is change.value:
                change.state.slot.write(change.state.visible)
        except Exception:  # noqa: BLE001 - what raised first says more
            # It stays for now, as if it had been meant to, so that it is known
            # and leaves with the rest of its gap.
            self._record(change)
            return
        for retire in change.retire:
            retire()

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
        self._lead_left(state, old, change.value)
        self._queue(state, old, change.value, [*state.layers, *change.layers])
        state.layers, state.visible = change.layers, change.value
        state.checked = change.layers
        state.retire, state.dirty = change.retire, False
        state.aside.clear()
        self._place(state)

    def _place(self, state: SlotState) -> None:
        """Make `state` what we know of its slot, or forget it if it has no layers."""
        key = state.slot.key
        known = self._states.pop(key, None)
        self._earlier = [one for one in self._earlier if one is not state]
        if known is not None and known is not state:
            self._earlier.append(known)
        if state.layers:
            self._states[key] = state

    def _lead_left(self, state: SlotState, left: Any, value: Any) -> None:
        """Who kept a wrapper that was in the slot gets what is there now.

        Only while the slot's base is the one that the wrapper stood in front of:
        over another base, the way from there might lead back to the wrapper.
        """
        self._note_left(state, left)
        here = _kept(self._left.pop(state.slot.key, []))
        for one, wrapper in here:
            if one.base is state.base and callable(peel(value)):
                one.to = peel(value)
                lead(wrapper, one.to)
        if here:
            self._left[state.slot.key] = [one for one, _ in here]

    def _note_left(self, state: SlotState, left: Any) -> None:
        wrapper, stock = peel(left), peel(state.stock)
        if mark_of(left) is None or state.base is left:
            return
        here = self._left.setdefault(state.slot.key, [])
        if all(one.wrapper() is not wrapper for one in here):
            here.append(_Left(weakref.ref(wrapper), state.base, stock, stock))

    def queue_all(self) -> None:
        """Have references that have come back to a base follow, as all others do.

        One may have been beneath a foreign patch when the others moved.
        """
        for state in self._states.values():
            if state.layers:
                self._queue(state, state.base, state.visible, state.layers)

    def _queue_left(self) -> None:
        """Have references to wrappers that have left move on as well.

        One may have come from the slot just before and been bound just after the
        last look, or have come back with a foreign patch that left.
        """
        for kept in self._forget_unkept():
            self.references.queue(Move(w, o.to, o.origin) for o, w in kept)

    def _forget_unkept(self) -> list[list[tuple[_Left, Any]]]:
        """What is still held of the wrappers that have left, slot by slot."""
        found = {key: _kept(here) for key, here in self._left.items()}
        self._left = {k: [one for one, _ in kept] for k, kept in found.items() if kept}
        return list(found.values())

    def _queue(
        self, state: SlotState, old: Any, new: Any, layers: Iterable[Layer]
    ) -> None:
        """Remember that references to `old` are to become references to `new`."""
        stock = state.stock
        new = stock if new is ABSENT else new
        if old is ABSENT or new is ABSENT or any(one.is_binding for one in layers):
            return
        # A wrapper can only have come from the slot. A replacement that is taken
        # as it is may be known elsewhere, and stays there.
        everywhere = old is state.base or mark_of(old) is not None
        within = self.upstreams if state.borrowed and old is state.base else ()
        moves = [Move(old, new, stock, everywhere, within)]
        if peel(old) is not old:
            moves.append(Move(peel(old), peel(new), peel(stock), everywhere, within))
        self.references.queue(m for m in moves if rebindable(m.old))

    def remove(self, gap: str) -> None:
        """Take the layers of `gap` off every slot.

        Where the slot holds something else by now, or refuses, nothing is written:
        our layer steps aside beneath, and `tidy` finishes the job when it can.
        """
        for state in self.states_of(gap):
            layers = [one for one in state.layers if one.gap != gap]
            try:
                if not state.is_live:
                    self._step_aside(state, gap)
                    continue
                value, retire = state.fold(layers)
                self._commit([_Change(state, layers, value, retire)])
            except Exception:  # noqa: BLE001 - `tidy` tries again and tells
                self._step_aside(state, gap)

    def _step_aside(self, state: SlotState, gap: str) -> None:
        kept = [pair for pair in state.laid if pair[0].gap != gap]
        for layer, retire in state.laid:
            if layer.gap == gap:
                retire()
        if not kept:
            self._queue(state, state.visible, state.base, state.layers)
            self._note_left(state, state.visible)
        state.layers = [layer for layer, _ in kept]
        state.retire = [retire for _, retire in kept]
        state.dirty = True
        state.aside.add(gap)

    def tidy(self) -> list[str]:
        """Finish what something was in the way of, where it has left.

        A slot that holds a value of ours, with a layer in it that has stepped
        aside meanwhile, gets the value it should have. Returns the slots that
        could not be put back, one line each.
        """
        refused = []
        for state in self._all():
            try:
                if not state.is_live:
                    continue
                self._gather(state)
                if state.dirty:
                    self._refold(state)
                else:
                    self._place(state)
            except Exception as error:  # noqa: BLE001 - kept and reported
                if state.dirty:
                    said = f"{state.slot.target} could not be put back ({error})"
                    refused.append(said)
        self._earlier = [
            state
            for state in self._earlier
            if state.layers or spec_of(state.slot) is state.spec
        ]
        return refused

    def _gather(self, state: SlotState) -> None:
        """Take over the layers that lay on top of a foreign patch that has gone."""
        at = [i for i, one in enumerate(self._earlier) if one is state]
        if not at:
            return
        current = self._states.get(state.slot.key)
        for other in [*self._earlier[at[0] + 1 :], *([current] if current else [])]:
            if other.slot.key != state.slot.key or other.spec is not state.spec:
                continue
            for retire in other.retire:
                retire()
            laid = sorted([*state.laid, *other.laid], key=lambda pair: pair[0].order)
            state.layers = [layer for layer, _ in laid]
            state.retire = [retire for _, retire in laid]
            other.layers, other.retire = [], []
            state.dirty = True

    def _refold(self, state: SlotState) -> None:
        value, retire = state.fold(state.layers)
        self._commit([_Change(state, state.layers, value, retire)])

    def supersede(self, state: SlotState) -> None:
        """What lay on the slot is history, for every gap."""
        if self._states.get(state.slot.key) is state:
            del self._states[state.slot.key]
            self._earlier.append(state)
        for gap in {layer.gap for layer in state.layers}:
            self._step_aside(state, gap)

    def settle(self) -> list[Stuck]:
        """Move every reference along with the changes made since the last call.

        What could not be moved is returned, and tried again the next time.
        """
        self._carry_bases()
        self._queue_left()
        return self.references.settle(self._outside, self.upstreams)

    def _outside(self, values: list[Any], more: list[Any]) -> list[int] | None:
        """How many references to each value neither we nor `more` hold."""
        roots = [*self._all(), self._left, self.references, *more]
        return count_outside(values, roots, kinds=_OURS)

    def _carry_bases(self) -> None:
        """A binding that we patched may be a reference to another slot's value.

        Its base moves along, and its own layers, if it still has any, are laid over
        the new base.
        """
        bound = [s for s in self._all() if s.is_binding or not s.layers]
        for move in self.references.pending().values():
            for state in [s for s in bound if s.base is move.old]:
                state.base, state.checked = move.new, []
                self.references.carried(state.slot, move)
                state.dirty = True
                # What is buried, or refuses, is up to `tidy`.
                with contextlib.suppress(Exception):
                    if state.is_live:
                        self._refold(state)


def spec_of(slot: Slot) -> object:
    """The spec of the slot's module: a reload gives the module a new one."""
    return getattr(sys.modules.get(slot.module), "__spec__", None)
