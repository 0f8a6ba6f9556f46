"""`speculator-dispatch`: which speculator serves a configuration.

The choice is made here, in a fixed order, by what a speculator asks of the device;
upstream builds it. All forms of a family share their attention, so that upstream may
choose among them: DFlash, DFlash2, LiLiCorr and XPress; MTP with one module, with
several, and Gemma 4's; EAGLE and EAGLE 3.

A standalone draft model is served where upstream has a speculator for it, which is
from 0.31 on: to the device it is one more small model, with eager passes alone. N-gram
matching and the methods of older runners are refused, as the downstream plugin refuses
them, before a model is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import msgspec

from ascend_shims.device import replays

__all__ = ["choose", "give_stream", "supported_methods"]

_ROOM = "vllm.v1.worker.gpu.spec_decode"


class _Family(msgspec.Struct, frozen=True):
    """Speculators that ask the same of the device."""

    methods: tuple[str, ...]
    modules: tuple[str, ...]
    """Where upstream has them, in one release or another."""

    def is_upstream(self) -> bool:
        return any(_exists(f"{_ROOM}.{module}") for module in self.modules)


_FAMILIES = (
    _Family(("dspark",), ("dspark.speculator",)),
    _Family(("dflash",), ("dflash.speculator",)),
    _Family(("mtp",), ("mtp.speculator",)),
    _Family(("eagle", "eagle3"), ("eagle.speculator",)),
    _Family(("draft_model",), ("standalone_ar.speculator", "draft_model.speculator")),
    _Family(("extract_hidden_states",), ("extract_hidden_states",)),
)
"""In the order of the choice; the last is upstream's own, untouched."""


def choose(
    call: Callable[..., Any], vllm_config: Any, *args: Any, **kwargs: Any
) -> Any:
    """Around `init_speculator`: raises `NotImplementedError` for other methods."""
    method = vllm_config.speculative_config.method
    supported = supported_methods()
    if method not in supported:
        raise NotImplementedError(
            f"speculative decoding by {method!r} does not run on the NPU with this "
            f"release of vLLM; set the method to one of {', '.join(supported)}"
        )
    return call(vllm_config, *args, **kwargs)


def give_stream(
    call: Callable[..., None], runner: Any, *args: Any, **kwargs: Any
) -> None:
    """After `GPUModelRunner.__init__`: the speculator has the runner's stream."""
    call(runner, *args, **kwargs)
    speculator = getattr(runner, "speculator", None)
    if speculator is not None:
        speculator.update_stream = replays.update_stream(runner)


def supported_methods() -> tuple[str, ...]:
    """Methods that run on the NPU and for which upstream has a speculator."""
    return tuple(
        method
        for family in _FAMILIES
        if family.is_upstream()
        for method in family.methods
    )


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
