"""Where a rope operator finds the cos and sin of the step.

The `cos-sin` gap keeps the tables, one set a runner, and says here how to find
those of a rotary module; operators of the rig ask. Those of the downstream plugin
read tables of their own, which `operators` has functions for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torch import nn

from ascend_shims.device.rope import RopeTable

__all__ = ["Lookup", "provide", "table_for"]

Lookup: TypeAlias = Callable[[nn.Module], RopeTable | None]

_lookups: list[Lookup] = []


def provide(lookup: Lookup) -> None:
    """Ask `lookup` from now on, in place of an earlier one."""
    _lookups[:] = [lookup]


def table_for(rope: nn.Module) -> RopeTable | None:
    """The table with the rows that `rope` is to rotate the step by, if any."""
    return _lookups[0](rope) if _lookups else None
