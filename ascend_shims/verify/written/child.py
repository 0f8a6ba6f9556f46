"""The job inside the interpreter that is looked at."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Iterable
from typing import Any

from .live import audited, has_source

__all__ = ["main"]


def _import(names: Iterable[str]) -> dict[str, str]:
    """Import them; why not, of those that cannot be."""
    problems = {}
    for name in names:
        try:
            importlib.import_module(name)
        # Whatever the module does wrong is its own; the others are looked at.
        except BaseException as error:  # noqa: BLE001
            last = traceback.format_exception_only(type(error), error)[-1].strip()
            problems[name] = last
    return problems


def _plugins() -> dict[str, str]:
    """What every process of vLLM does first."""
    try:
        importlib.import_module("vllm.plugins").load_general_plugins()
    except BaseException as error:  # noqa: BLE001
        return {"vllm.plugins": f"{type(error).__name__}: {error}"}
    return {}


def main(job: str) -> None:
    """Do what the JSON text says and write the answer where it says."""
    told: dict[str, Any] = json.loads(job)
    problems = _plugins() if told["plugins"] else {}
    problems |= _import([*told["first"], *told["modules"]])
    roots = {name.partition(".")[0] for name in told["modules"]}
    loaded = [
        name
        for name in sorted(sys.modules)
        if (told["everything"] and name.partition(".")[0] in roots)
        or any(name == one or name.startswith(f"{one}.") for one in told["modules"])
    ]
    modules = [name for name in loaded if has_source(name)]
    rows = [row._asdict() for name in modules for row in audited(name)]
    answer = {
        "python": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "modules": modules,
        "without_source": sorted(set(loaded) - set(modules)),
        "rows": rows,
        "problems": problems,
    }
    with open(told["answer"], "w", encoding="utf-8") as file:  # noqa: PTH123
        json.dump(answer, file)
