"""Which of a patch's candidates is its target, as far as can be told now."""

from __future__ import annotations

import sys
from types import BuiltinFunctionType, FunctionType
from typing import Any

import msgspec

from ..environment.modules import binds, find_module
from ..registry.model import Patch
from .slot import (
    ABSENT,
    MissingTargetError,
    Slot,
    inherited,
    is_class,
    is_initialising,
    is_module,
    resolve,
    split,
)

__all__ = ["Missing", "Waiting", "choose", "exists", "home", "is_borrowed"]


class Waiting(msgspec.Struct, frozen=True):
    """The target lies in a module that is not loaded, or not finished, yet."""

    target: str
    reason: str


class Missing(msgspec.Struct, frozen=True):
    """No candidate exists upstream."""

    reason: str


def exists(slot: Slot) -> bool:
    """Whether the slot holds a value, its own or an inherited one."""
    if slot.read() is not ABSENT:
        return True
    owner = slot.owner
    return is_class(owner) and inherited(owner, slot.name) is not ABSENT


def _definition(value: Any) -> Slot | None:
    """Where a function or class was defined, if that is still where it is bound."""
    if type(value) not in (FunctionType, BuiltinFunctionType) and not is_class(value):
        return None
    try:
        defined = resolve(f"{value.__module__}:{value.__qualname__}")
    except MissingTargetError:
        return None
    return defined if defined.read() is value else None


def is_borrowed(value: Any, upstreams: tuple[str, ...]) -> bool:
    """Whether `value` was defined elsewhere and upstream merely uses it.

    It may come from another package, or from somebody else's patch.
    """
    defined = _definition(value)
    return defined is not None and defined.module.partition(".")[0] not in upstreams


def home(slot: Slot, upstreams: tuple[str, ...]) -> Slot:
    """The slot where the value of `slot` is defined, if that is upstream's, too.

    A patch on an imported name that is meant for every reference belongs there:
    two patches on two names of one object then meet in one slot.
    """
    if not is_module(slot.owner):
        return slot
    value = slot.read()
    defined = _definition(value)
    return slot if defined is None or is_borrowed(value, upstreams) else defined


def _loaded(target: str, patch: Patch) -> Slot | str:
    try:
        slot = resolve(target)
    except MissingTargetError as error:
        return str(error)
    if patch.kind == "add" or exists(slot) or target == patch.candidates[-1]:
        # The last candidate is handed on as it is: laying a layer on it says
        # precisely what is wrong.
        return slot
    return f"{target} does not exist"


def is_finished(module_name: str, executed: frozenset[str]) -> bool:
    """Whether a module has been imported to its end."""
    module = sys.modules.get(module_name)
    return is_module(module) and (
        module_name in executed or not is_initialising(module)
    )


def choose(patch: Patch, executed: frozenset[str]) -> Slot | Waiting | Missing:
    """The slot to patch, the module to wait for, or why there is neither.

    `executed` names modules that are known to have finished although the import
    system does not say so yet. Candidates are taken in order; one that lies in
    an unloaded module is passed over where its source does not bind the name.
    """
    first = patch.waits_for
    if first is not None and not is_finished(first, executed):
        return Waiting(patch.candidates[0], f"{first} is not imported yet")
    reasons = []
    for target in patch.candidates:
        module_name, qualname = split(target)
        module = sys.modules.get(module_name)
        if is_module(module):
            if is_initialising(module) and module_name not in executed:
                return Waiting(target, f"{module_name} is still being imported")
            found = _loaded(target, patch)
            if isinstance(found, Slot):
                return found
            reasons.append(found)
            continue
        spec = find_module(module_name)
        if spec is None:
            reasons.append(f"there is no module {module_name}")
            continue
        only = target == patch.candidates[-1]
        if not only and binds(spec, qualname.partition(".")[0]) is False:
            reasons.append(f"{module_name} does not define {qualname}")
            continue
        return Waiting(target, f"{module_name} is not imported yet")
    return Missing("; ".join(reasons))
