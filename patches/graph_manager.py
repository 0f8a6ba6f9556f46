"""`graph-manager`: a graph manager that knows its runner.

An attention operator in a FULL graph keeps the host-side lengths that it was
captured with. Before each replay they must be those of the step, which lie in the
runner's attention metadata. The managers that a runner makes while it initializes
its KV cache know the runner from then on: they capture into parameters of their
own, and a replay goes on only when these have been updated on the update stream.

Upstream's class stays as it is; what a manager knows is kept beside it and goes
with it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import msgspec

from ascend_shims.device import graphs, replays

__all__ = [
    "adopt",
    "being_built",
    "capture",
    "initialize",
    "params_of",
    "remember_step",
    "replay",
    "step_of",
]


class _Owned(msgspec.Struct):
    """What one manager knows."""

    runner: weakref.ref[Any]
    params: graphs.GraphParams


_OWNED: weakref.WeakKeyDictionary[Any, _Owned] = weakref.WeakKeyDictionary()
_STEPS: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
"""Attention metadata of the latest step, by the model state that prepared it."""

_BUILDING: ContextVar[Any] = ContextVar("building", default=None)


def initialize(call: Callable[..., Any], runner: Any, *args: Any, **kwargs: Any) -> Any:
    """Around `GPUModelRunner.initialize_kv_cache`: managers made inside are its."""
    replays.update_stream(runner)
    token = _BUILDING.set(runner)
    try:
        return call(runner, *args, **kwargs)
    finally:
        _BUILDING.reset(token)


def adopt(call: Callable[..., None], manager: Any, *args: Any, **kwargs: Any) -> None:
    """After `ModelCudaGraphManager.__init__`: the manager knows its runner."""
    call(manager, *args, **kwargs)
    runner = _BUILDING.get()
    if runner is None:
        return
    manager.model_runner = weakref.proxy(runner)
    manager.update_stream = runner.update_stream
    _OWNED[manager] = _Owned(weakref.ref(runner), graphs.GraphParams("target"))


def capture(call: Callable[..., Any], manager: Any, *args: Any, **kwargs: Any) -> Any:
    """Around `ModelCudaGraphManager.capture`: into the manager's own parameters."""
    owned = _OWNED.get(manager)
    if owned is None:
        return call(manager, *args, **kwargs)
    with graphs.capturing(owned.params):
        return call(manager, *args, **kwargs)


def remember_step(
    call: Callable[..., dict[str, Any]], model_state: Any, *args: Any, **kwargs: Any
) -> dict[str, Any]:
    """After `prepare_attn` of a model state: what the next replay is refreshed by."""
    metadata = call(model_state, *args, **kwargs)
    _STEPS[model_state] = metadata
    return metadata


def replay(call: Callable[..., Any], manager: Any, desc: Any) -> Any:
    """Around `ModelCudaGraphManager.run_fullgraph`: with the step's lengths."""
    owned = _OWNED.get(manager)
    runner = owned.runner() if owned is not None else None
    if owned is None or runner is None:
        return call(manager, desc)
    refresh = replays.Refresh(
        params=owned.params,
        stream=runner.update_stream,
        attn_groups=runner.attn_groups,
        vllm_config=runner.vllm_config,
        speculative_config=runner.speculative_config,
        attn_metadata=step_of(runner.model_state),
    )
    return replays.replay(call, manager, desc, refresh)


def being_built() -> Any:
    """The runner that initializes its KV cache at the moment, if one does."""
    return _BUILDING.get()


def step_of(model_state: Any) -> dict[str, Any] | None:
    """Attention metadata of the target's latest step."""
    return _STEPS.get(model_state)


def params_of(manager: Any) -> graphs.GraphParams | None:
    """The parameters of a manager's graphs; None where it knows no runner."""
    owned = _OWNED.get(manager)
    return owned.params if owned is not None else None
