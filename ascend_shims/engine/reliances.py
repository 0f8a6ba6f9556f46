"""Whether what a patch relies on besides its target is there."""

from __future__ import annotations

import sys

from ..plan import PlannedGap
from .choose import exists
from .contract import BrokenContractError
from .slot import MissingTargetError, is_initialising, is_module, resolve, split

__all__ = ["check_reliances"]


def check_reliances(planned: PlannedGap, executed: frozenset[str]) -> None:
    """Raise `BrokenContractError` for a relied-on symbol that a loaded module lacks."""
    for one in planned.passing:
        for reliance in one.patch.relies_on:
            module = sys.modules.get(split(reliance.symbol)[0])
            # Attributes may be set by instances only; source tells, not we.
            unknowable = reliance.how == "reads_attribute" or reliance.versions
            if unknowable or not is_module(module):
                continue
            if is_initialising(module) and module.__name__ not in executed:
                continue
            try:
                found = exists(resolve(reliance.symbol))
            except MissingTargetError:
                found = False
            if not found:
                raise BrokenContractError(
                    f"{one.patch.replacement} relies on {reliance.symbol} "
                    f"({reliance.how}), which is gone"
                )
