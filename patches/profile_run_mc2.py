"""`profile-run-mc2`: communication buffers are there before memory is measured.

Experts that exchange tokens by MC2 allocate its buffers when it is first used, which
is for steps of up to its token capacity. The standard profile run is larger where the
token budget is, goes another way and never meets them; the KV cache would then be
given their memory. So a dummy run of just the capacity comes first. In both runs each
expert gets equally many tokens: their inputs are all alike, and a router would send
them to the same few experts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ascend_shims.device.moe import moe

__all__ = ["reserve_buffers"]

_PROFILED: ContextVar[Any] = ContextVar("profiled", default=None)
"""The runner whose profile run this is."""


def reserve_buffers(
    call: Callable[..., Any], runner: Any, *args: Any, **kwargs: Any
) -> Any:
    """Around `GPUModelRunner.profile_run`: a run of MC2's capacity, and balance.

    One within another of the same runner changes nothing.
    """
    if _PROFILED.get() is runner:
        return call(runner, *args, **kwargs)
    capacity = moe().mc2_tokens(runner.vllm_config)
    token = _PROFILED.set(runner)
    try:
        with moe().balanced():
            if capacity is not None and runner.max_num_tokens > capacity:
                _run(runner, capacity, *args, **kwargs)
            return call(runner, *args, **kwargs)
    finally:
        _PROFILED.reset(token)


def _run(runner: Any, num_tokens: int, *args: Any, **kwargs: Any) -> None:
    # From 0.31 on a profile run may be asked for random inputs.
    asked = {**dict(zip(("randomize_inputs",), args, strict=False)), **kwargs}
    speculator = getattr(runner, "speculator", None)
    with _uncompiled(runner.model), _uncompiled(getattr(speculator, "model", None)):
        runner._dummy_run(
            num_tokens, skip_attn=True, skip_eplb=True, is_profile=True, **asked
        )


@contextmanager
def _uncompiled(model: Any) -> Iterator[None]:
    """Nothing of a model is compiled inside. What is compiled first is kept for later
    steps, and a run without attention metadata leaves out the attention operators."""
    compiled = [
        module
        for module in (model.modules() if model is not None else ())
        if getattr(module, "do_not_compile", True) is False
    ]
    for module in compiled:
        module.do_not_compile = True
    try:
        yield
    finally:
        for module in compiled:
            module.do_not_compile = False
