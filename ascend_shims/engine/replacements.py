"""From the names in a registry to the objects in the patches package."""

from __future__ import annotations

import contextlib
import functools
import importlib
from types import ModuleType
from typing import Any

from ..plan import Plan, PlannedGap, PlannedPatch
from .choose import choose
from .contract import BrokenContractError
from .slot import Slot
from .versions import version_of

__all__ = ["import_patches", "replacement_of"]


def _module(plan: Plan, planned: PlannedGap, one: PlannedPatch) -> ModuleType:
    home = one.companion or planned.gap
    package = plan.registry.package_of(home)
    return importlib.import_module(f"{package}.{home.module}")


def replacement_of(
    plan: Plan, planned: PlannedGap, one: PlannedPatch
) -> tuple[Any, str]:
    """The replacement of a patch, and how messages name it.

    A companion's is given the gap that it is laid for, and that gap's version.
    Raises `BrokenContractError` where its module lacks it, and whatever importing
    that module raises.
    """
    module = _module(plan, planned, one)
    name = one.patch.replacement
    try:
        replacement = vars(module)[name]
    except KeyError:
        raise BrokenContractError(
            f"{module.__name__} has no {name}, which the registry names as "
            f"the replacement for {one.patch.candidates[-1]}"
        ) from None
    if one.companion is not None and callable(replacement):
        version = version_of(planned.gap, plan.registry.package_of(planned.gap))
        replacement = functools.partial(replacement, planned.gap.id, version)
    return replacement, f"{module.__name__}.{name}"


def import_patches(plan: Plan) -> None:
    """Import what reaching `plan` would import now.

    Whoever is about to take a lock calls this first: a thread that holds an
    import lock may be waiting for that lock. What fails here fails again, and is
    reported, when the plan is reached.
    """
    for planned in plan.wanted:
        for one in planned.passing:
            with contextlib.suppress(Exception, SystemExit):
                if isinstance(choose(one.patch, frozenset()), Slot):
                    _module(plan, planned, one)
