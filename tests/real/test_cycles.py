"""Apply, start an engine, generate, shut it down, revert; and again, in one process.

Four times here; with `ASCEND_SHIMS_SOAK=1` two hundred times. What upstream leaves
behind by itself is told by the same loop without us.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ascend_shims.simnpu.trial import GRAPHS

RunReal = Callable[..., Any]

SOAK = os.environ.get("ASCEND_SHIMS_SOAK") == "1"
CYCLES = 200 if SOAK else 4
STOCK_CYCLES = 60 if SOAK else 4
WARM = 20 if SOAK else 2
"""Cycles after which most caches of upstream's and of torch's are filled. In the second
one, classes of `collections.abc` and their heirs learn what kinds are not theirs."""

PROMPTS = [[1, 2, 3, 4, 5], [7, 8, 9]]
TOKENS = 6
ONE_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
STOCK = {**ONE_PROCESS, "ASCEND_SHIMS_DEVICE": "none"}
SIM = {**ONE_PROCESS, "ASCEND_SHIMS_DEVICE": "sim"}

MEMORY_KIB = (4 if SOAK else 16) * 1024
"""How much more may have come since warm than comes without us.

Without us, too, 7 MiB come at once, at the eleventh engine or one of the next fifty,
and then no more. One engine has 8 MiB of KV cache and weights, so a runner that stayed
alive in each cycle would be 1.6 GiB after two hundred; the rest is malloc's fragments,
which come and go by a few MiB.
"""

MARGIN = 12
"""Objects of one kind that may come and go: threads that end, entries of caches."""

APPLIED = {
    "cos-sin",
    "graph-manager",
    "input-buffers",
    "kv-cache",
    "npu-graph",
    "runtime-guard",
}


def cycles(
    model: str, count: int, warm: int, settings: dict[str, Any], shims: bool
) -> dict[str, Any]:
    """`count` engines one after the other, and what is left after each of them.

    What is noted of each must not grow differently with and without shims.
    """
    import weakref

    from harness import memory, objects

    import ascend_shims
    from ascend_shims.engine.slot import resolve
    from ascend_shims.simnpu.runtime import engine, generate

    told: dict[str, Any] = {"tokens": [], "kib": [], "states": [], "environ": []}
    told["stock"] = []
    held: list[Any] = []
    ends: list[weakref.ref[Any]] = []
    warmed: Mapping[str, int] = {}
    environ = _ours()
    for number in range(count):
        if shims:
            ascend_shims.apply()
        llm = engine(model, **settings)
        told["tokens"].append(generate(llm, PROMPTS, TOKENS))
        core = llm.llm_engine.engine_core.engine_core
        runner = core.model_executor.driver_worker.worker.model_runner
        ends += [weakref.ref(runner), weakref.ref(core), weakref.ref(llm)]
        if shims:
            report = ascend_shims.status()
            told["states"].append({g.id: g.state.value for g in report.gaps})
        llm.llm_engine.engine_core.shutdown()
        del llm, core, runner
        if shims:
            ascend_shims.revert()
            now = [resolve(target).read() for target in _targets(report)]
            held = held or now
            told["stock"].append(all(map(operator.is_, now, held)))
            told["places"] = len(now)
        told["environ"].append(_ours() == environ)
        told["kib"].append(memory())
        if number == warm - 1:
            warmed = objects()
    left = objects()
    told["alive"] = sum(end() is not None for end in ends)
    told["growth"] = {
        kind: left[kind] - warmed.get(kind, 0)
        for kind in left
        if left[kind] > warmed.get(kind, 0)
    }
    return told


def _ours() -> dict[str, str]:
    names = ("ASCEND_SHIMS", "VLLM_RAY")
    return {k: v for k, v in os.environ.items() if k.startswith(names)}


def _targets(report: Any) -> list[str]:
    """Where something is applied: the same places in each cycle."""
    patches = [patch for gap in report.gaps for patch in gap.patches]
    return [one.target for one in patches if one.state.value == "applied"]


@pytest.fixture(scope="module")
def stock(run_real: RunReal, model_gqa: Any) -> Any:
    """On upstream's CPU backend, without us."""
    return run_real(
        cycles,
        model_gqa,
        STOCK_CYCLES,
        WARM,
        {},
        False,
        env=STOCK,
        timeout=120 + 20 * STOCK_CYCLES,
    )


@pytest.mark.any_release
def test_engines_come_and_go_and_nothing_stays(
    run_real: RunReal, model_gqa: Any, stock: Any
) -> None:
    told = run_real(
        cycles,
        model_gqa,
        CYCLES,
        WARM,
        GRAPHS,
        True,
        env=SIM,
        timeout=240 + 30 * CYCLES,
    )
    assert len(told["tokens"]) == CYCLES
    assert told["tokens"] == stock["tokens"][:1] * CYCLES
    for states in told["states"]:
        assert {gap for gap, state in states.items() if state == "applied"} >= APPLIED
        assert set(states.values()) <= {"applied", "off", "landed"}
    assert all(told["environ"])
    assert len(told["stock"]) == CYCLES
    assert told["places"] > 20
    assert all(told["stock"])
    assert told["alive"] == 0
    warm, end = told["kib"][WARM - 1], told["kib"][-1]
    print(f"{CYCLES} cycles, KiB resident: {told['kib'][19::20]}")
    print(f"{STOCK_CYCLES} without us: {stock['kib'][19::20]}")
    by_itself = stock["kib"][-1] - stock["kib"][WARM - 1]
    assert end - warm - max(0, by_itself) < MEMORY_KIB
    ours = {kind: n for kind, n in told["growth"].items() if "ascend_shims" in kind}
    assert ours == {}
    # What upstream keeps of each engine, by kind of object, and no more than that.
    for kind, more in told["growth"].items():
        each = stock["growth"].get(kind, 0) / (STOCK_CYCLES - WARM)
        assert more <= each * (CYCLES - WARM) + MARGIN, (kind, more, each)
