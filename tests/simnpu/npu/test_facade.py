from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

from ascend_shims.device import npu as facade
from ascend_shims.simnpu import npu as rig


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    facade._torch_npu.cache_clear()
    yield
    facade._torch_npu.cache_clear()


@pytest.fixture
def no_torch_npu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_npu", None)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.delenv("ASCEND_SHIMS_DEVICE", raising=False)


def test_the_rig_if_asked_for(
    no_torch_npu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_DEVICE", "sim")
    assert facade.npu() is rig
    tensor = torch.zeros(2)
    assert facade.weak_ref_tensor(tensor).data_ptr() == tensor.data_ptr()
    assert facade.weak_ref_tensors([tensor])[0].data_ptr() == tensor.data_ptr()


def test_neither(no_torch_npu: None) -> None:
    with pytest.raises(facade.NoNpuError, match="ASCEND_SHIMS_DEVICE=sim") as caught:
        facade.npu()
    assert "torch_npu does not import (ModuleNotFoundError" in str(caught.value)


def test_the_device_where_torch_npu_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    device, plugin = ModuleType("torch.npu"), ModuleType("vllm_ascend.utils")
    plugin.weak_ref_tensor = lambda tensor: ("weak", tensor)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch_npu", ModuleType("torch_npu"))
    monkeypatch.setattr(torch, "npu", device, raising=False)
    assert facade.npu() is device
    monkeypatch.setitem(sys.modules, "vllm_ascend", ModuleType("vllm_ascend"))
    monkeypatch.setitem(sys.modules, "vllm_ascend.utils", plugin)
    assert facade.weak_ref_tensor(1) == ("weak", 1)
    monkeypatch.setitem(sys.modules, "vllm_ascend.utils", None)
    with pytest.raises(facade.NoNpuError, match="comes from vllm-ascend"):
        facade.weak_ref_tensor(1)


def test_nothing_is_imported_that_is_not_used() -> None:
    code = """
import sys, ascend_shims, ascend_shims.device.npu
print([name for name in sys.modules if "simnpu" in name or name == "torch"])
"""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("ASCEND_SHIMS_DEVICE", "TRITON_INTERPRET")
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
