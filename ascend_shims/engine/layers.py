"""Layers: what each patch contributes to a slot, and how they fold.

A slot's visible value is its base with the layers laid over it in registry
order. Layers may come and go in any order; each time the fold is made anew, so
no layer holds on to a neighbour that is gone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import (
    FunctionType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any

import msgspec

from ..registry.model import Patch
from .contract import BrokenContractError, check_calls, check_nature
from .slot import (
    ABSENT,
    MissingTargetError,
    Slot,
    inherited,
    is_class,
    is_module,
    namespace,
)
from .wrappers import (
    Mark,
    NotWrappableError,
    Wrapper,
    calling,
    peel,
    same_descriptor,
    stand_in_front,
)

__all__ = ["Layer", "SlotState", "beneath_of"]


class Layer(msgspec.Struct, frozen=True):
    """One patch, with its replacement resolved, ready to be laid on a slot."""

    gap: str
    order: tuple[int, int]
    patch: Patch
    replacement: Any
    said: str
    """How messages name the replacement."""
    mark: Callable[[Callable[[], Any], str, str], Mark]

    @property
    def is_binding(self) -> bool:
        """Whether only this one name changes, and no other reference."""
        return self.patch.scope == "binding"

    def check(self, slot: Slot, beneath: Any) -> None:
        """Raise unless this layer can be laid over `beneath`. Writes nothing.

        Raises `MissingTargetError`, `BrokenContractError`, `NotWrappableError`
        or `ImmutableOwnerError`.
        """
        slot.check_writable()
        _check_new(slot)
        if self.patch.kind == "add":
            if beneath is not ABSENT:
                raise BrokenContractError(
                    f"{slot.target} exists upstream; `kind: add` is for what does not"
                )
            return
        if beneath is ABSENT:
            raise MissingTargetError(_why_absent(slot))
        function = peel(beneath)
        if isinstance(function, type):
            self._check_class(slot, function)
        elif callable(function) and callable(self.replacement):
            if self.patch.kind == "wrap":
                check_calls(self.replacement, function, skip=1, said=self.said)
            elif self.patch.kind == "replace":
                check_calls(self.replacement, function, skip=0, said=self.said)
                check_nature(self.replacement, function, said=self.said)
        elif callable(function):
            raise BrokenContractError(f"{self.said} is not callable, {slot.target} is")
        elif self.patch.kind != "replace":
            raise NotWrappableError(
                f"{slot.target} is of type {type(beneath).__name__}, which cannot be "
                "called; use `kind: replace`"
            )

    def _check_class(self, slot: Slot, upstream: type) -> None:
        if self.patch.kind != "replace":
            raise BrokenContractError(
                f"{slot.target} is a class, which cannot be wrapped; patch its methods"
            )
        if self.patch.swap_is_safe:
            return
        subclasses: list[type] = type.__subclasses__(upstream)
        heirs = [heir.__qualname__ for heir in subclasses]
        heard = f"; it has subclasses ({', '.join(heirs[:3])})" if heirs else ""
        raise BrokenContractError(
            f"{slot.target} is a class{heard}: a swapped class breaks isinstance, "
            "pickling and field types. Patch its methods, or say `swap_is_safe` "
            "and why"
        )

    def build(self, slot: Slot, beneath: Any) -> Wrapper:
        """This layer's raw value over the raw value `beneath`.

        Raises what the patch's own code raises when it decorates.
        """
        if self.patch.kind == "add" or not callable(peel(beneath)):
            return Wrapper(self.replacement, lambda: None)
        function = peel(beneath)
        if isinstance(function, type):
            return Wrapper(self.replacement, lambda: None)
        call: Callable[..., Any] = self.replacement
        if self.patch.kind == "wrap":
            call = functools.partial(self.replacement, function)
        elif self.patch.kind == "decorate":
            call = self.replacement(function)
            if not callable(call):
                raise BrokenContractError(
                    f"{self.said} returned {call!r}, which cannot be called; "
                    "`kind: decorate` returns the changed function"
                )
            check_calls(call, function, skip=0, said=f"what {self.said} returns")
            check_nature(call, function, said=f"what {self.said} returns")
        return stand_in_front(
            beneath,
            call,
            owner=slot.owner,
            name=slot.name,
            mark=lambda wears: self.mark(wears, self.gap, slot.target),
        )


def _check_new(slot: Slot) -> None:
    """Raise where a class gets a `__new__` that it can never get rid of."""
    if slot.name != "__new__" or not is_class(slot.owner):
        return
    if inherited(slot.owner, "__new__") is object.__new__ and slot.read() is ABSENT:
        raise BrokenContractError(
            f"{slot.target}: after its removal Python would still take the class for "
            "one with a `__new__`, and refuse arguments; patch `__init__`"
        )


def _why_absent(slot: Slot) -> str:
    if is_module(slot.owner) and "__getattr__" in namespace(slot.owner):
        return (
            f"{slot.target} is no binding of the module (its __getattr__ may serve "
            "the name); patch the place where it is defined"
        )
    return f"{slot.target} does not exist in the loaded upstream"


_FORWARDED = (
    FunctionType,
    WrapperDescriptorType,
    MethodDescriptorType,
    staticmethod,
    classmethod,
    property,
    functools.cached_property,
)
"""Kinds of members that `super()` gives just as the class itself would."""


def _forward(owner: type, name: str, raw: Any) -> Any:
    """A stand-in for an inherited member that asks the bases at each call.

    A fixed copy would go stale when a base is patched or reverted later.
    """

    def static(*args: Any, **kwargs: Any) -> Any:
        return getattr(super(owner, owner), name)(*args, **kwargs)

    def value(self: Any) -> Any:
        return getattr(super(owner, self), name)

    def method(*args: Any, **kwargs: Any) -> Any:
        self, *rest = args
        return getattr(super(owner, self), name)(*rest, **kwargs)

    forward: Callable[..., Any] = method
    if isinstance(raw, staticmethod):
        forward = static
    elif isinstance(raw, (property, functools.cached_property)):
        forward = value
    function = peel(raw)
    stand_in = calling(forward, like=function)
    functools.update_wrapper(stand_in, function)
    return same_descriptor(raw, stand_in, owner, name)


def beneath_of(slot: Slot, base: Any) -> Any:
    """What the lowest layer of a slot stands in front of.

    The slot's own value, or where a class merely inherits one, a way to it.
    """
    if base is not ABSENT or not is_class(slot.owner):
        return base
    raw = inherited(slot.owner, slot.name)
    if isinstance(raw, _FORWARDED) and callable(peel(raw)):
        return _forward(slot.owner, slot.name, raw)
    return raw


class SlotState(msgspec.Struct, eq=False):
    """A slot that we have written to: its base, its layers, what is visible.

    `base` is the value found there, stored once; it changes only when the slot
    turns out to be an alias of another slot whose value changed.
    """

    slot: Slot
    base: Any
    layers: list[Layer] = msgspec.field(default_factory=list)
    visible: Any = ABSENT
    """What we wrote last; `base` where we wrote nothing."""
    spec: object = None
    """The module's `__spec__` when we wrote: a reload gives it a new one."""
    borrowed: bool = False
    """Whether the base is not upstream's own: elsewhere it is none of our business."""
    retire: list[Callable[[], None]] = msgspec.field(default_factory=list)
    """One a layer of the present fold."""
    dirty: bool = False
    """Whether a layer in `visible` has stepped aside since it was written."""
    aside: set[str] = msgspec.field(default_factory=set)
    """The gaps whose layers have."""
    checked: list[Layer] = msgspec.field(default_factory=list)
    """The layers that are known to fit over the present base."""

    def fold(self, layers: list[Layer]) -> tuple[Any, list[Callable[[], None]]]:
        """The raw value with `layers` over the base. Changes nothing."""
        if not layers:
            return self.base, []
        value = beneath_of(self.slot, self.base)
        retire = []
        known = self.checked if self._hides_layers else []
        for layer in sorted(layers, key=lambda one: one.order):
            if not any(layer is one for one in known):
                layer.check(self.slot, value)
            wrapper = layer.build(self.slot, value)
            value = wrapper.raw
            retire.append(wrapper.retire)
        return value, retire

    @property
    def _hides_layers(self) -> bool:
        """Whether a layer sees the same whatever lies between it and the base: what
        stands in front of a function looks like it."""
        function = peel(self.base)
        return callable(function) and not isinstance(function, type)

    @property
    def laid(self) -> list[tuple[Layer, Callable[[], None]]]:
        """The layers from the bottom up, each with the way to retire it."""
        ordered = sorted(self.layers, key=lambda one: one.order)
        return list(zip(ordered, self.retire, strict=True))

    @property
    def stock(self) -> Any:
        """What the name gives without us, raw: a class may inherit it."""
        if self.base is not ABSENT or not is_class(self.slot.owner):
            return self.base
        return inherited(self.slot.owner, self.slot.name)

    @property
    def is_live(self) -> bool:
        """Whether the slot holds, right now, what we wrote last."""
        return self.slot.read() is self.visible

    @property
    def is_binding(self) -> bool:
        return any(layer.is_binding for layer in self.layers)
