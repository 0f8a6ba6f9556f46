"""Upstream, loaded with all that is patched, and what there is to look through."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ascend_shims.engine.slot import ABSENT, is_class, is_module, namespace, resolve
from ascend_shims.registry import load
from ascend_shims.report import Report

__all__ = ["Place", "load_upstream", "namespaces", "places", "synthetic"]

_WIDTH = 100
"""Names of a made-up module."""


def load_upstream() -> None:
    """Import vLLM, its runner, and every module that a patch lands in."""
    registry = load(None)
    patches = [patch for gap in registry.gaps for patch in gap.patches]
    patches += [patch for one in registry.companions for patch in one.patches]
    importlib.import_module("vllm.v1.worker.cpu.model_runner")
    importlib.import_module("vllm.entrypoints.llm")
    for target in [c for patch in patches for c in patch.candidates]:
        # Candidates of other releases are not there.
        with contextlib.suppress(ImportError):
            importlib.import_module(target.partition(":")[0])


@dataclass(frozen=True)
class Place:
    """One binding that `apply()` changes.

    What it holds is not kept: the engine looks through the heap for whoever holds a
    value of its own or of upstream's, and would find us.
    """

    owner: Any
    name: str

    def read(self) -> Any:
        return namespace(self.owner).get(self.name, ABSENT)


def places(report: Report) -> list[Place]:
    """All that is changed: the slots of applied patches, and references elsewhere."""
    patches = [patch for gap in report.gaps for patch in gap.patches]
    targets = [one.target for one in patches if one.state.value == "applied"]
    slots = [resolve(target) for target in dict.fromkeys((*targets, *report.rebound))]
    return list({slot.key: Place(slot.owner, slot.name) for slot in slots}.values())


def namespaces() -> list[dict[str, Any]]:
    """Of every loaded module, and of every class that one leads to."""
    found: list[dict[str, Any]] = []
    seen: set[int] = set()
    waiting: list[ModuleType | type] = [
        module
        for name, module in list(sys.modules.items())
        if is_module(module) and name.partition(".")[0] != "ascend_shims"
    ]
    while waiting:
        owner = waiting.pop()
        if id(owner) in seen:
            continue
        seen.add(id(owner))
        values = namespace(owner)
        found.append(values)
        waiting += [value for value in values.values() if is_class(value)]
    return found


def synthetic(count: int) -> Iterator[ModuleType]:
    """Made-up modules: functions, numbers, strings, and classes' worth of names."""
    source = "def function_{0}(): return {0}\n"
    space: dict[str, Any] = {}
    for number in range(_WIDTH // 2):
        exec(source.format(number), space)
    functions = [value for name, value in space.items() if name != "__builtins__"]
    for number in range(count):
        module = ModuleType(f"made_up_{number}")
        values = vars(module)
        for at, function in enumerate(functions):
            values[f"function_{at}"] = function
            values[f"number_{at}"] = at
        yield module
