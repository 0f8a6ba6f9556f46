"""A plugin of pytest's for tools/mutation: the quick tests first.

Most changes are noticed by the first test that there is, and which one that is
decides how long it takes. `MUTATION_SECONDS` leaves out the slowest, so that one that
nobody notices does not take half a minute.
"""

from __future__ import annotations

import json
import os
from itertools import accumulate
from pathlib import Path

import pytest

_TIMED = Path("mutmut-stats.json")
"""Where mutmut, which starts the tests in its own folder, writes how long each took."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not _TIMED.exists():
        return
    seconds = json.loads(_TIMED.read_text(encoding="utf-8"))["duration_by_test"]
    items.sort(key=lambda item: seconds.get(item.nodeid, 0.0))
    most = float(os.environ.get("MUTATION_SECONDS", "inf"))
    sums = accumulate(seconds.get(item.nodeid, 0.0) for item in items)
    quick = [item for item, sum_ in zip(items, sums, strict=True) if sum_ <= most]
    items[:] = quick or items[:1]
