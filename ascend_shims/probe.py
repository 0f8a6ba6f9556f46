"""Apply for real in this process, import what is patched, and report as JSON.

`shims apply-check` runs this in an interpreter of its own, because whether
`apply()` succeeds is best found out by calling it.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from .engine.slot import split
from .process import the_process
from .switches import read_switches

__all__ = ["main"]


def _import(modules: list[str]) -> dict[str, str]:
    """Import each; what failed, by module."""
    failed = {}
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # noqa: BLE001 - upstream may raise anything
            failed[module] = f"{type(error).__name__}: {error}"
    return failed


def main(registry: Path | None = None) -> None:
    """Print one line of JSON: the report, and the modules that do not import.

    `registry`: another one than the environment names.
    """
    # Whatever upstream prints while it is imported goes to standard error.
    result = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    process = the_process()
    process.apply(only=None, disable=(), strict=False, registry=registry)
    modules = [
        split(patch.target)[0]
        for gap in process.status().gaps
        for patch in gap.patches
        if patch.state == "pending" and " or " not in patch.target
    ]
    switches = read_switches(os.environ).narrowed(
        registry=registry, said_by="the command line"
    )
    waited_for = [
        one.patch.waits_for
        for planned in process.plan(switches).wanted
        for one in planned.passing
        if one.patch.waits_for is not None
    ]
    failed = _import(list(dict.fromkeys([*modules, *waited_for])))
    answer: dict[str, Any] = {**process.status().as_dict(), "not_importable": failed}
    print(json.dumps(answer), file=result, flush=True)
    # Upstream may have started threads that keep an interpreter from ending.
    os._exit(0)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
