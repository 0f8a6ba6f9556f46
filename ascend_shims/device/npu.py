"""`torch.npu`: the device's, or the rig's.

Patches ask here and nowhere else, so the same patch runs on both.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import Any

from ascend_shims.errors import ShimsError

__all__ = [
    "NoNpuError",
    "has_torch_npu",
    "npu",
    "plugin_module",
    "weak_ref_tensor",
    "weak_ref_tensors",
]


class NoNpuError(ShimsError):
    """There is neither torch_npu nor the rig."""


@functools.cache
def _torch_npu() -> ModuleType | str:
    """`torch.npu`, or why it cannot be had."""
    try:
        importlib.import_module("torch_npu")
        import torch

        found: ModuleType = torch.npu  # type: ignore[attr-defined]
    # Libraries that are missing or do not fit show as anything from ImportError to
    # OSError and RuntimeError.
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return found


def has_torch_npu() -> bool:
    """Whether torch_npu imports, so that the device's own operators are there."""
    return not isinstance(_torch_npu(), str)


def npu() -> Any:
    """torch_npu's `torch.npu` where it imports, else the rig's if it was asked for.

    Raises `NoNpuError`.
    """
    real = _torch_npu()
    if not isinstance(real, str):
        return real
    from ascend_shims.simnpu import request

    if not request.asked():
        raise NoNpuError(
            f"torch_npu does not import ({real}) and the rig was not asked for; start "
            "the process with ASCEND_SHIMS_DEVICE=sim to use it"
        )
    return importlib.import_module("ascend_shims.simnpu.npu")


def weak_ref_tensor(tensor: Any) -> Any:
    """A tensor on the same memory that does not hold it.

    vllm-ascend's where torch_npu imports, else the rig's. Raises `NoNpuError`.
    """
    return _weak_references().weak_ref_tensor(tensor)


def weak_ref_tensors(tensors: Any) -> Any:
    """`weak_ref_tensor` for each tensor in a list, a tuple or the like."""
    return _weak_references().weak_ref_tensors(tensors)


def _weak_references() -> Any:
    return plugin_module("utils") if has_torch_npu() else npu()


def plugin_module(name: str) -> Any:
    """A module of vllm-ascend, whose operators and their state serve torch_npu.

    Raises `NoNpuError`.
    """
    try:
        return importlib.import_module(f"vllm_ascend.{name}")
    except ImportError as error:
        raise NoNpuError(
            "torch_npu is installed, and its operators are vllm-ascend's; "
            f"{name} comes from vllm-ascend: {error}"
        ) from error
