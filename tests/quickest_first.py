"""A plugin of pytest's for tools/mutation: the quick tests first.

Most changes are noticed by the first test that there is, and which one that is
decides how long it takes.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

_TIMED = Path("mutmut-stats.json")
"""Where mutmut, which starts the tests in its own folder, writes how long each took."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if _TIMED.exists():
        seconds = json.loads(_TIMED.read_text(encoding="utf-8"))["duration_by_test"]
        items.sort(key=lambda item: seconds.get(item.nodeid, 0.0))
