"""What `import ascend_shims` takes."""

from __future__ import annotations

from collections import defaultdict

from . import rooms
from .children import Ran, run
from .figures import in_turns
from .making import Benchmark, Effort, at_most, row
from .model import Row

__all__ = ["IMPORTS"]

_MOST = 20.0
"""Milliseconds."""

_STATEMENTS = {
    "bare": "pass",
    "ours": "import ascend_shims",
    "all": "import ascend_shims.process",
    "wrapt": "import wrapt",
    "mpat": "import mpat",
}
_CODE = "import time; t = time.process_time(); {}; print(time.process_time() - t)"


def _started(name: str) -> Ran:
    # One path for all of them: how long it is matters to an import.
    path = {"PYTHONPATH": str(rooms.rivals())}
    return run(rooms.environment(), "-c", _CODE.format(_STATEMENTS[name]), env=path)


def measure(effort: Effort) -> list[Row]:
    inside, whole = defaultdict(list), defaultdict(list)
    for name in _STATEMENTS:
        _started(name)
    for order in in_turns(list(_STATEMENTS), effort.times(100, 5)):
        for name in order:
            done = _started(name)
            inside[name].append(1000 * float(done.answer()))
            whole[name].append(1000 * done.processor)
    what, everything = "import ascend_shims", "import what apply() needs"
    limit = at_most(_MOST, "ms", sorted(inside["ours"])[len(inside["ours"]) // 2])
    return [
        row(
            "import-bare",
            f"python -c '{what}'",
            "bare interpreter",
            "ms of processor",
            whole,
            "ours",
            "bare",
        ),
        row("import-wrapt", what, "import wrapt", "ms", inside, "ours", "wrapt", limit),
        row("import-mpat", what, "import mpat", "ms", inside, "ours", "mpat"),
        row("import-all", everything, "import mpat", "ms", inside, "all", "mpat"),
    ]


IMPORTS = Benchmark("import", "Importing", measure)
