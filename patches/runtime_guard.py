"""Observe each engine step of Model Runner V2 without changing it.

The hooks report to `ascend_shims.guard.watch`; what is looked for, and what
happens then, is the guard's business. With no detector on, a hook is a lookup
and a few attribute reads.

    GPUModelRunner.__init__            bind_guard
    GPUModelRunner.execute_model       guard_step
    GPUModelRunner.sample_tokens       guard_sample
    GPUModelRunner.postprocess_sampled observe_sampled
    AsyncOutput.get_output             observe_output
    Worker.execute_dummy_batch         guard_idle
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from ascend_shims.guard.tap import tapped
from ascend_shims.guard.watch import bind, collect, watch_of

__all__ = [
    "bind_guard",
    "guard_idle",
    "guard_sample",
    "guard_step",
    "observe_output",
    "observe_sampled",
]

_Function = Callable[..., Any]


def bind_guard(call: _Function, runner: Any, *args: Any, **kwargs: Any) -> Any:
    """Give each new runner a guard of its own, freed with it."""
    result = call(runner, *args, **kwargs)
    bind(runner)
    return result


def guard_step(function: _Function) -> _Function:
    """`sync_for_step` before `execute_model`; `end_of_wave_sync` behind it on
    every path after which nothing is sampled."""

    def within(inner: _Function) -> _Function:
        dummy_at = _position(inner, "dummy_run")

        @_like(inner)
        def execute_model(runner: Any, *args: Any, **kwargs: Any) -> Any:
            watch = watch_of(runner)
            if watch.inside:
                return inner(runner, *args, **kwargs)
            scheduled = args[0] if args else kwargs["scheduler_output"]
            dummy = (
                args[dummy_at]
                if len(args) > dummy_at
                else kwargs.get("dummy_run", False)
            )
            samples = False
            watch.inside = True
            try:
                watch.begin(scheduled, dummy)
                output = inner(runner, *args, **kwargs)
                samples = (
                    runner.execute_model_state is not None
                    and not dummy
                    and not watch.pools
                )
                return output
            finally:
                watch.inside = False
                if not samples:
                    watch.end()

        return execute_model

    return _inside_inference_mode(function, within)


def guard_sample(function: _Function) -> _Function:
    """The guard's checks around `sample_tokens`, `end_of_wave_sync` behind it."""

    def within(inner: _Function) -> _Function:
        @_like(inner)
        def sample_tokens(runner: Any, *args: Any, **kwargs: Any) -> Any:
            watch = watch_of(runner)
            # The body takes the state away, so it is looked at first.
            state = runner.execute_model_state
            if state is None:
                # The step before has failed: nothing is sampled.
                watch.end()
                return inner(runner, *args, **kwargs)
            try:
                if watch.begin_sample(state) is None:
                    return inner(runner, *args, **kwargs)
                with tapped(runner, state, watch.before_sample):
                    output = inner(runner, *args, **kwargs)
                watch.hand_over(output)
                return output
            finally:
                watch.end_sample()

        return sample_tokens

    return _inside_inference_mode(function, within)


def observe_sampled(call: _Function, runner: Any, *args: Any, **kwargs: Any) -> Any:
    """Show the guard what `postprocess_sampled` has put into the request states."""
    result = call(runner, *args, **kwargs)
    watch = watch_of(runner)
    if watch.active:
        watch.on_sampled(*args, **kwargs)
    return result


def observe_output(call: _Function, output: Any, *args: Any, **kwargs: Any) -> Any:
    """The after-sample check, once `get_output` has trimmed padded tokens."""
    collected = call(output, *args, **kwargs)
    collect(output, collected)
    return collected


def guard_idle(call: _Function, worker: Any, *args: Any, **kwargs: Any) -> Any:
    """Mark the dummy step of an idle data-parallel rank as one of the engine's."""
    watch = watch_of(worker.model_runner)
    watch.idle = True
    try:
        return call(worker, *args, **kwargs)
    finally:
        watch.idle = False


def _position(method: _Function, name: str) -> int:
    """Where `name` stands among the positional arguments after `self`."""
    names = list(inspect.signature(method).parameters)[1:]
    return names.index(name) if name in names else sys.maxsize


def _like(function: _Function) -> Callable[[_Function], _Function]:
    """Name and signature of `function`, but none of the marks that compilers and
    others leave in its namespace: they are about that very function."""
    return functools.wraps(function, updated=())


def _inference_mode_of(function: _Function) -> torch.inference_mode | None:
    """The mode, where `function` is what `torch.inference_mode()` made of another."""
    if not isinstance(function, FunctionType) or not hasattr(function, "__wrapped__"):
        return None
    factory = inspect.getclosurevars(function).nonlocals.get("ctx_factory")
    mode = getattr(factory, "__self__", None)
    return mode if isinstance(mode, torch.inference_mode) else None


def _inside_inference_mode(
    function: _Function, within: Callable[[_Function], _Function]
) -> _Function:
    """Let `within` wrap what lies beneath upstream's `torch.inference_mode()`."""
    mode = _inference_mode_of(function)
    if mode is not None:
        inner: _Function = function.__wrapped__  # type: ignore[attr-defined]
        return mode.clone()(within(inner))
    beneath = function
    while (deeper := getattr(beneath, "__wrapped__", None)) is not None:
        beneath = deeper
        mode = _inference_mode_of(beneath)
        if mode is not None:
            # Something stands in front of upstream's layer: stay in front of it,
            # and enter the same mode ourselves.
            return mode.clone()(within(function))
    return within(function)
