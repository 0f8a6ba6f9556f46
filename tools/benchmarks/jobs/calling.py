"""Calls through what stands before a method, in turns.

Arguments: rounds, calls of each in a round. Samples are nanoseconds of
processor time a call: others on the machine do not count.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import wrapt
from bench_upstream.methods import Decorated, Off, Runner, Stock, Unguarded, Wrapped

import ascend_shims

from ..figures import in_turns
from .answering import answer, arguments

_REGISTRY = Path(__file__).parents[1] / "madeup" / "registry.yaml"


class _Closure(Stock):
    """What somebody writes who takes whatever arguments there are, as we do."""


class _Exact(Stock):
    """The same by somebody who repeats upstream's parameters."""


class _Wrapt(Stock):
    """The library's way."""


def _by_hand() -> None:
    stock: Callable[..., Any] = Stock.method

    def any_arguments(self: Any, *args: Any, **kwargs: Any) -> Any:
        return stock(self, *args, **kwargs)

    def exact(self: Any, number: int) -> Any:
        return stock(self, number)

    def passed(wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        return wrapped(*args, **kwargs)

    _Closure.method = any_arguments  # type: ignore[method-assign]
    _Exact.method = exact  # type: ignore[method-assign]
    _Wrapt.method = wrapt.FunctionWrapper(stock, passed)  # type: ignore[method-assign]


def _per_call(one: Any, calls: int) -> float:
    start = time.thread_time_ns()
    for number in repeat(7, calls):
        one.method(number)
    return (time.thread_time_ns() - start) / calls


def _per_step(runner: Any, calls: int) -> float:
    scheduled = SimpleNamespace(
        total_num_scheduled_tokens=1,
        num_scheduled_tokens={"request": 1},
        finished_req_ids=set(),
        scheduled_new_reqs=[],
    )
    start = time.thread_time_ns()
    for one in repeat(scheduled, calls):
        runner.execute_model(one)
        runner.sample_tokens(None)
    # Two calls a step.
    return (time.thread_time_ns() - start) / calls / 2


def main(rounds: int, calls: int) -> dict[str, Any]:
    stock, unguarded = vars(Off)["method"], vars(Runner)["execute_model"]
    _by_hand()
    report = ascend_shims.apply(registry=_REGISTRY, allow=["bench_patches"])
    states = {gap.id: gap.state.value for gap in report.gaps}
    if set(states.values()) != {"applied"}:
        raise RuntimeError(
            f"not all applied: {[(g.id, g.reason) for g in report.gaps]}"
        )
    ascend_shims.revert("switched-off")
    runners = {"unguarded": Unguarded(), "guarded": Runner()}
    things: dict[str, Any] = {
        "bare": Stock(),
        "closure": _Closure(),
        "exact": _Exact(),
        "wrapt": _Wrapt(),
        "wrap": Wrapped(),
        "decorate": Decorated(),
        "off": Off(),
    }
    took: dict[str, list[float]] = {name: [] for name in (*things, *runners)}
    gc.disable()
    for order in in_turns(list(took), rounds):
        for name in order:
            measure = _per_step if name in runners else _per_call
            took[name].append(measure({**things, **runners}[name], calls))
    counted = _steps_seen(runners["guarded"])
    same = vars(Off)["method"] is stock
    ascend_shims.revert()
    return {
        "took": took,
        "same": same and vars(Runner)["execute_model"] is unguarded,
        "counted": counted == rounds * calls,
    }


def _steps_seen(runner: Any) -> int:
    from ascend_shims.guard.watch import watch_of

    return watch_of(runner).counts.engine


if __name__ == "__main__":
    answer(main(*arguments()))
