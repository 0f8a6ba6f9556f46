"""A process of a made-up upstream that takes little time to plan and to report."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import pytest

from ascend_shims.engine import aliases
from ascend_shims.environment import Device, Distribution, Environment
from ascend_shims.plan import Plan, make_plan
from ascend_shims.process import Process
from ascend_shims.report import Report, make_report
from ascend_shims.switches import Switches

from .world import World

__all__ = ["QuickProcess", "narrow"]


def narrow(
    context: pytest.MonkeyPatch, modules: Callable[[], Iterable[ModuleType]]
) -> None:
    """Have references looked for in `modules` and their classes only: nothing else can
    hold what is patched there."""

    def classes() -> list[type]:
        found: list[type] = []
        spaces: list[Any] = [*modules()]
        for space in spaces:
            inside = [one for one in list(vars(space).values()) if type(one) is type]
            fresh = [one for one in inside if all(one is not old for old in found)]
            found += fresh
            spaces += fresh
        return found

    heirs = aliases._heirs
    context.setattr(aliases, "_modules", lambda among=None: modules())
    context.setattr(
        aliases, "_heirs", lambda root: classes() if root is object else heirs(root)
    )


class QuickProcess(Process):
    """A process whose plan needs no file, and whose report no look at the heap."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def plan(self, switches: Switches) -> Plan:
        up = self.world.up
        found = {up: Distribution(up, "0.28.0", origin="assumed")}
        here = Environment(sys.executable, found, Device("sim", "a test"))
        return make_plan(self.world.registry, here, switches)

    def report_on(self, plan: Plan) -> Report:
        standings = [self._engine.standing(planned) for planned in plan.gaps]
        return make_report(
            plan, standings, process={"pid": 1, "role": "main"}, rebound=[], stale=[]
        )
