"""Was the rig asked for? The one question that everything else here waits on."""

from __future__ import annotations

import os

__all__ = ["asked"]

_TRUE = frozenset({"1", "true", "on", "yes", "y"})


def asked() -> bool:
    """True if this process was started to run MRV2 on a CPU.

    Either the software NPU is the device (`ASCEND_SHIMS_DEVICE=sim`), or Triton
    is to interpret its kernels (`TRITON_INTERPRET=1`), which only a backend that
    compiles nothing can serve.
    """
    if os.environ.get("ASCEND_SHIMS_DEVICE", "").strip().lower() == "sim":
        return True
    return os.environ.get("TRITON_INTERPRET", "").strip().lower() in _TRUE
