"""The device that a plan goes by, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..environment import Device
from .finding import Finding, notice, ok, problem

__all__ = ["DeviceSeen", "judge_device"]

_AREA = "device"


@dataclass(frozen=True, slots=True)
class DeviceSeen:
    """The decision, and what it was made of."""

    device: Device
    asked: bool
    """Whether `ASCEND_SHIMS_DEVICE` says it."""
    nodes: int = 0
    has_torch_npu: bool = False
    interprets: bool = False
    """Whether `TRITON_INTERPRET` asks for what the rig brings."""
    platforms: tuple[str, ...] = ()
    """Other plugins that name a platform to vLLM."""


def judge_device(seen: DeviceSeen) -> Iterator[Finding]:
    match seen.device.kind:
        case "sim":
            yield from _sim(seen)
        case "npu":
            yield _npu(seen)
        case "none":
            yield _none(seen)
    if seen.interprets and seen.device.kind != "sim":
        yield ok(_AREA, "rig-triton", "TRITON_INTERPRET is set: the rig serves Triton")


def _sim(seen: DeviceSeen) -> Iterator[Finding]:
    if seen.platforms:
        yield problem(
            _AREA,
            "rig-and-platform",
            f"the rig is asked for, and {', '.join(seen.platforms)} would name a "
            "platform as well; vLLM takes only one",
            "export VLLM_PLUGINS=ascend_shims,ascend_shims_rig",
        )
    if seen.nodes:
        yield notice(
            _AREA,
            "rig-before-npu",
            "the plan is for the software NPU (ASCEND_SHIMS_DEVICE=sim), though this "
            "machine has an NPU",
            "unset ASCEND_SHIMS_DEVICE",
        )
        return
    yield ok(_AREA, "device-sim", "the software NPU, by ASCEND_SHIMS_DEVICE=sim")


def _npu(seen: DeviceSeen) -> Finding:
    lacking = []
    if not seen.has_torch_npu:
        lacking.append("torch_npu is not installed")
    if not seen.nodes:
        lacking.append("there is no /dev/davinci*")
    if lacking:
        return problem(
            _AREA,
            "device-not-there",
            f"the plan is for an NPU (ASCEND_SHIMS_DEVICE=npu), and "
            f"{' and '.join(lacking)}",
            "unset ASCEND_SHIMS_DEVICE, or export ASCEND_SHIMS_DEVICE=sim",
        )
    return ok(_AREA, "device-npu", f"an NPU: {seen.device.reason}")


def _none(seen: DeviceSeen) -> Finding:
    if seen.asked:
        return notice(
            _AREA,
            "device-refused",
            "ASCEND_SHIMS_DEVICE=none keeps every gap that needs an NPU out",
            "unset ASCEND_SHIMS_DEVICE",
        )
    if seen.nodes:
        return problem(
            _AREA,
            "device-unused",
            f"this machine has an NPU, and the plan is for none: {seen.device.reason}",
            "install torch_npu, or say that it is meant: export "
            "ASCEND_SHIMS_DEVICE=none",
        )
    return notice(
        _AREA,
        "device-none",
        f"the plan is for no NPU ({seen.device.reason}): gaps that need one stay out",
        "nothing, if that is so; to try shims here: export ASCEND_SHIMS_DEVICE=sim",
    )
