"""From the names in a registry to the objects in the patches package."""

from __future__ import annotations

import contextlib
import importlib
from types import ModuleType
from typing import Any

from ..plan import Plan, PlannedGap
from ..registry.model import Patch
from .choose import choose
from .contract import BrokenContractError
from .slot import Slot

__all__ = ["import_patches", "replacement_of"]


def _module(plan: Plan, planned: PlannedGap) -> ModuleType:
    return importlib.import_module(f"{plan.registry.package}.{planned.gap.module}")


def replacement_of(plan: Plan, planned: PlannedGap, patch: Patch) -> tuple[Any, str]:
    """The replacement of a patch, and how messages name it.

    Raises `BrokenContractError` where its module lacks it, and whatever importing
    that module raises.
    """
    module = _module(plan, planned)
    name = patch.replacement
    try:
        return vars(module)[name], f"{module.__name__}.{name}"
    except KeyError:
        raise BrokenContractError(
            f"{module.__name__} has no {name}, which the registry names as "
            f"the replacement for {patch.candidates[-1]}"
        ) from None


def import_patches(plan: Plan) -> None:
    """Import what reaching `plan` would import now.

    Whoever is about to take a lock calls this first: a thread that holds an
    import lock may be waiting for that lock. What fails here fails again, and is
    reported, when the plan is reached.
    """
    for planned in plan.wanted:
        with contextlib.suppress(Exception, SystemExit):
            chosen = (choose(one.patch, frozenset()) for one in planned.passing)
            if any(isinstance(one, Slot) for one in chosen):
                _module(plan, planned)
