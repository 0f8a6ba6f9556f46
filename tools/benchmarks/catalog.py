"""All benchmarks, in the order in which they are run and shown."""

from __future__ import annotations

from .alike import ALIKE
from .applying import APPLYING
from .calling import CALLING
from .drift import DRIFT, FETCHING, MATRIX
from .engines import STARTING, TOKENS
from .imports import IMPORTS
from .making import Benchmark
from .memory import MEMORY
from .sources import SCAN, VERIFY

__all__ = ["BENCHMARKS"]

_ALL = (
    IMPORTS,
    APPLYING,
    CALLING,
    TOKENS,
    STARTING,
    DRIFT,
    FETCHING,
    MATRIX,
    ALIKE,
    SCAN,
    VERIFY,
    MEMORY,
)

BENCHMARKS: dict[str, Benchmark] = {one.name: one for one in _ALL}
