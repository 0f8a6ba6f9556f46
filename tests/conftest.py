"""What concerns the tests as a whole."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent

_ASK_THE_MACHINE = (
    "cli",
    "test_packaging.py",
    "test_process.py",
    "test_public_reports.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that look at all processes of the machine run one after the other."""
    for item in items:
        first = item.path.relative_to(HERE).parts[0]
        if first in _ASK_THE_MACHINE:
            item.add_marker(pytest.mark.xdist_group("machine"))
