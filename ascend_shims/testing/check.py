"""Whether one gap of a registry holds here: run in an interpreter of its own.

    python -m ascend_shims.testing.check REGISTRY GAP

Applies the gap before its upstream is imported, and once more after, takes it back
each time, and prints one line of JSON: the outcome and why.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import ascend_shims

from ..engine.slot import split
from ..errors import ShimsError
from ..plan import PlannedGap
from ..process import the_process
from ..registry import Registry, load
from ..states import State
from ..switches import read_switches
from .traces import Watch

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Print the outcome, `passed`, `skipped` or `failed`, and the reasons."""
    # Whatever upstream prints while it is imported goes to standard error.
    result = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    path, gap = arguments
    outcome, reasons = _check(Path(path), gap)
    answer = {"outcome": outcome, "reasons": list(dict.fromkeys(reasons))}
    print(json.dumps(answer), file=result, flush=True)
    # Upstream may have started threads that keep an interpreter from ending.
    os._exit(0)


def _check(path: Path, gap: str) -> tuple[str, list[str]]:
    registry = load(path)
    only = _with_needs(registry, gap)
    # Whoever has a project's tests run has its code run.
    package = [registry.package]
    switches = read_switches(os.environ).narrowed(
        only=only, strict=False, registry=path, allow=package, said_by="this test"
    )
    plan = the_process().plan(switches)
    state = plan[gap].state
    if state is not None:
        return "failed" if state.is_fault else "skipped", [
            f"{state}: {plan[gap].reason}"
        ]
    watch = Watch(registry.upstreams, path.parent)
    watch.start()
    reasons: list[str] = []
    for when in ("before", "after"):
        found = watch.look()
        ascend_shims.apply(only=only, strict=False, registry=path, allow=package)
        refused = list(_import(plan.wanted))
        said = f"applied {when} its upstream is imported"
        missed = [
            f"{said}, {one.id} is {one.state}: {one.reason}"
            for one in ascend_shims.status().gaps
            if one.id in only and one.state is not State.APPLIED
        ]
        reasons += [*missed, *(refused if missed else ())]
        try:
            ascend_shims.revert()
        except ShimsError as error:
            reasons.append(f"{said}, it cannot be taken back: {error}")
        left = watch.differences(found, watch.look())
        reasons += [
            f"{said} and taken back, it leaves {line}" for line in sorted(left.values())
        ]
        if reasons:
            break
    return "failed" if reasons else "passed", reasons


def _with_needs(registry: Registry, gap: str) -> list[str]:
    """A gap and what it needs, and what that needs."""
    found = [gap]
    for one in found:
        needs = registry[one].needs
        found += [other for other in needs.gaps + needs.patched if other not in found]
    return found


def _import(gaps: Iterable[PlannedGap]) -> Iterator[str]:
    """Import what gaps patch, wherever it may be. Yields what does not import."""
    passing = [one.patch for planned in gaps for one in planned.passing]
    modules = [split(target)[0] for patch in passing for target in patch.candidates]
    modules += [patch.waits_for for patch in passing if patch.waits_for]
    for module in dict.fromkeys(modules):
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - upstream may raise anything
            yield f"{module} cannot be imported: {type(error).__name__}: {error}"


if __name__ == "__main__":
    main(sys.argv[1:])
