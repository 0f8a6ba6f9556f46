from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

backends = pytest.importorskip("triton.backends", reason="Triton is not installed")

from ascend_shims.simnpu import triton_cpu  # noqa: E402
from ascend_shims.simnpu.triton_cpu.compiler import CPUBackend  # noqa: E402
from ascend_shims.simnpu.triton_cpu.driver import CPUDriver  # noqa: E402


class Silent:
    @staticmethod
    def is_active() -> bool:
        return False


class Active:
    @staticmethod
    def is_active() -> bool:
        return True


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    table = {"nvidia": SimpleNamespace(driver=Silent, compiler=None)}
    monkeypatch.setattr(backends, "backends", table)
    return table


def test_registers_once(table: dict[str, Any]) -> None:
    assert triton_cpu.register() is True
    entry = table["cpu"]
    assert triton_cpu.register() is True
    assert table["cpu"] is entry
    assert list(table) == ["nvidia", "cpu"]


def test_leaves_another_cpu_backend_alone(table: dict[str, Any]) -> None:
    table["cpu"] = other = SimpleNamespace(driver=Silent, compiler=None)
    assert triton_cpu.register() is True
    assert table["cpu"] is other


def test_stays_away_from_a_real_device(table: dict[str, Any]) -> None:
    table["ascend"] = SimpleNamespace(driver=Active, compiler=None)
    assert triton_cpu.register() is False
    assert "cpu" not in table


@pytest.mark.parametrize(("device", "active"), [("none", False), ("sim", True)])
def test_the_driver_is_active_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, device: str, active: bool
) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_DEVICE", device)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert CPUDriver.is_active() is active


def test_the_driver_answers() -> None:
    driver = CPUDriver()
    assert driver.get_current_target().backend == "cpu"
    assert driver.get_active_torch_device().type == "cpu"
    assert driver.get_device_interface().device_count() == 1
    assert (driver.get_current_device(), driver.get_current_stream(0)) == (0, 0)
    assert callable(driver.get_benchmarker())


def test_triton_makes_a_backend_that_compiles_nothing() -> None:
    backend = CPUBackend(CPUDriver().get_current_target())
    assert backend.hash() == "cpu-interpreted"
    assert backend.parse_options({"num_warps": 4, "other": 1}).num_warps == 4
    assert backend.get_module_map() == {}
    with pytest.raises(RuntimeError, match="TRITON_INTERPRET=1"):
        backend.add_stages({}, None, None)
    with pytest.raises(RuntimeError, match=r"'i32'.*TRITON_INTERPRET=1"):
        CPUDriver().map_python_to_cpp_type("i32")
