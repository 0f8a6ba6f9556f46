"""Was the rig asked for? The one question that everything else here waits on."""

from __future__ import annotations

import os

__all__ = ["asked", "checks", "is_device", "is_quick"]

_TRUE = frozenset({"1", "true", "on", "yes", "y"})
_FALSE = frozenset({"0", "false", "off", "no"})


def asked() -> bool:
    """True if this process was started to run MRV2 on a CPU.

    Either the software NPU is the device (`ASCEND_SHIMS_DEVICE=sim`), or Triton
    is to interpret its kernels (`TRITON_INTERPRET=1`), which only a backend that
    compiles nothing can serve.
    """
    if is_device():
        return True
    return os.environ.get("TRITON_INTERPRET", "").strip().lower() in _TRUE


def is_device() -> bool:
    """True if the software NPU is the device of this process."""
    return os.environ.get("ASCEND_SHIMS_DEVICE", "").strip().lower() == "sim"


def is_quick() -> bool:
    """Whether Triton's interpreter is quickened, see `interpreter`.

    It is where the software NPU is the device, and on upstream's CPU backend if
    `ASCEND_SHIMS_SIM_QUICK=1` asks for it; `0` leaves it alone everywhere.
    """
    value = os.environ.get("ASCEND_SHIMS_SIM_QUICK", "").strip().lower()
    return value in _TRUE or (is_device() and value not in _FALSE)


def checks() -> bool:
    """Whether wrong numbers are refused, which a device would compute with.

    `ASCEND_SHIMS_SIM_CHECKS=0` makes the software NPU as silent as the device.
    """
    value = os.environ.get("ASCEND_SHIMS_SIM_CHECKS", "1").strip().lower()
    return value not in _FALSE
