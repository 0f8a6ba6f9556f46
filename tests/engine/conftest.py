"""The fixture `world`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .failing import Failure
from .world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An empty made-up upstream; what a test leaves behind is an error."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    meta_path = list(sys.meta_path)
    made = World(tmp_path)
    yield made
    made.close()
    assert sys.meta_path == meta_path


@pytest.fixture
def failure(monkeypatch: pytest.MonkeyPatch) -> Failure:
    return Failure(monkeypatch)
