"""What every test of the software NPU leaves as it found it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

pytest.importorskip("torch")

import torch._dynamo  # noqa: F401 - torch imports it on the first dispatch mode
from torch.utils import _python_dispatch as dispatch

from ascend_shims.simnpu import npu
from ascend_shims.simnpu.npu import capturing, launches, watched


@pytest.fixture(scope="session", autouse=True)
def old_objects_are_left_alone() -> Iterator[None]:
    """Each test collects garbage twice; torch's modules need not be looked through."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    gc.collect()
    before = npu.memory_allocated(), npu.device_memory().reserved
    yield
    assert dispatch._get_current_dispatch_mode_stack() == []
    assert capturing.active() is None
    assert launches._hooks == []
    assert watched.watchers == []
    assert npu.current_stream() == npu.default_stream()
    npu.synchronize()
    gc.collect()
    assert (npu.memory_allocated(), npu.device_memory().reserved) == before
