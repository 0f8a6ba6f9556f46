"""A small model on upstream's CPU backend, with or without gaps.

    prepared(shims)     vLLM imported, its platform chosen, and gaps applied if wanted
    started(model)      the engine

The platform is chosen before a device is claimed, so that it is upstream's own.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from ascend_shims.simnpu.plugin import platform

__all__ = ["prepared", "started"]


def prepared(shims: bool) -> list[str]:
    """The gaps that are in force. Raises `RuntimeError` where it is not as wanted."""
    if not shims:
        # vLLM is told not to ask our plugins; kernels need their backend all the same.
        platform()
    importlib.import_module("vllm.v1.worker.cpu.model_runner")
    importlib.import_module("vllm.v1.worker.cpu_worker")
    if not shims:
        return []
    import ascend_shims

    os.environ["ASCEND_SHIMS_DEVICE"] = "sim"
    report = ascend_shims.apply()
    applied = [gap.id for gap in report.gaps if gap.state.value == "applied"]
    if not applied or report.faults:
        raise RuntimeError(f"not applied: {[(g.id, g.reason) for g in report.faults]}")
    return applied


def started(model: str, shims: bool) -> Any:
    """Raises `RuntimeError` where stock is not stock, or the platform is the rig."""
    from ascend_shims.simnpu.runtime import engine

    llm = engine(model)
    from vllm.platforms import current_platform

    if not current_platform.is_cpu() or "simnpu" in type(current_platform).__module__:
        raise RuntimeError(f"the platform is {type(current_platform)}")
    if not shims and "ascend_shims.process" in sys.modules:
        raise RuntimeError("ascend_shims has run in the stock process")
    return llm
