"""What a process needs for the engine and the registry, and a matrix at its most."""

from __future__ import annotations

import tempfile
from collections import defaultdict

from .children import ask
from .figures import in_turns, overhead, spread
from .making import Benchmark, Effort, at_most, row
from .model import Row
from .releases import matrix_words

__all__ = ["MEMORY"]

_MOST_PROCESS, _MOST_MATRIX = 15.0, 300.0


def measure(effort: Effort) -> list[Row]:
    held: dict[str, list[float]] = defaultdict(list)
    env = {"ASCEND_SHIMS_DEVICE": "sim"}
    for order in in_turns(["engine", "bare"], effort.times(15, 2)):
        for name in order:
            held[name].append(ask("resident", name == "engine", env=env))
    more = overhead(held["engine"], held["bare"])
    peaks = []
    for _ in range(effort.times(3, 1)):
        with tempfile.TemporaryDirectory(prefix="bench-") as cache:
            words, env = matrix_words(), {"ASCEND_SHIMS_CACHE": cache}
            peaks.append(ask("peaking", *words, env=env))
    return [
        row(
            "memory-process",
            "a process with engine and registry, all gaps waiting",
            "bare interpreter",
            "MB",
            held,
            "engine",
            "bare",
            at_most(_MOST_PROCESS, "MB more", more),
        ),
        Row(
            name="memory-matrix",
            what="shims matrix of ten releases, nothing cached, at its most",
            unit="MB",
            ours=spread(peaks),
            limits=(at_most(_MOST_MATRIX, "MB", max(peaks)),),
        ),
    ]


MEMORY = Benchmark("memory", "Memory", measure)
