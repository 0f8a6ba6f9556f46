from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from ascend_shims.simnpu import runtime


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """The garbage collector stays as it is for the other tests."""
    enabled, frozen = gc.isenabled(), gc.get_freeze_count()
    yield
    if not frozen:
        gc.unfreeze()
    (gc.enable if enabled else gc.disable)()


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_what_is_imported_is_not_looked_through_again(
    enabled: bool, fails: bool
) -> None:
    (gc.enable if enabled else gc.disable)()
    made: list[list[int]] = []
    name = "no_such_module" if fails else "json"
    expected: Any = pytest.raises(ImportError) if fails else nullcontext()
    with expected, runtime._imports():
        assert not gc.isenabled()
        made += [[n] for n in range(2000)]
        importlib.import_module(name)
    assert gc.isenabled() is enabled
    assert gc.get_freeze_count() >= 2000
    later = [[n] for n in range(10)]
    tracked = {id(one) for one in gc.get_objects()}
    assert {id(one) for one in later} <= tracked
    assert tracked.isdisjoint(id(one) for one in made)
