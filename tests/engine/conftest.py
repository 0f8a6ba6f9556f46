"""The fixture `world`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import ascend_shims
from ascend_shims import process

from .failing import Failure
from .world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An empty made-up upstream; what a test leaves behind is an error."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    meta_path = list(sys.meta_path)
    # A look through the heap takes as long as there are objects in it. What was there
    # before cannot hold what this test makes, so it is left out from here on.
    gc.collect()
    gc.freeze()
    made = World(tmp_path)
    yield made
    made.close()
    assert sys.meta_path == meta_path


@pytest.fixture
def own_process(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """`world`, whose registry is that of this process; nothing applied."""
    for name in _variables():
        monkeypatch.delenv(name)
    monkeypatch.setenv("ASCEND_SHIMS_REGISTRY", str(world.root / "registry.yaml"))
    monkeypatch.setenv("ASCEND_SHIMS_ALLOW", world.package)
    monkeypatch.setattr(process, "_process", None)
    yield world
    if world.gaps:
        monkeypatch.setenv("ASCEND_SHIMS_REGISTRY", str(world.registry_file()))
        monkeypatch.setenv("ASCEND_SHIMS_ALLOW", world.package)
        ascend_shims.revert()
    for name in _variables():
        del os.environ[name]


def _variables() -> list[str]:
    return [name for name in os.environ if name.startswith(("ASCEND_SHIMS", "VLLM_"))]


@pytest.fixture
def failure(monkeypatch: pytest.MonkeyPatch) -> Failure:
    return Failure(monkeypatch)
