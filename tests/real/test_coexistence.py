"""Real MRV2 on the rig beside a stand-in for the downstream plugin.

It closes `cos-sin` and `graph-manager` by subclassing the runner, as the real one
does, and has the marker of `shared-kv-backing`. All other gaps are ours.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from ascend_shims.environment.distributions import find_distribution
from ascend_shims.simnpu.trial import GRAPHS

RunReal = Callable[..., Any]

PROMPTS = [list(range(3 + i, 3 + i + n)) for i, n in enumerate((5, 17, 33, 9))]
TOKENS = 16
STAND_IN = Path(__file__).parent / "stand_in"
WORKER = {"worker_cls": "vllm_ascend.worker.worker.NPUWorker"}
IN_ONE = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
OVERRIDDEN = {
    "cos-sin": "prepare_inputs",
    "graph-manager": "initialize_kv_cache",
}
MARKER = "shared-kv-backing"
# Before 0.29 upstream has nothing to mark.
HAS_MARKER = Version(find_distribution("vllm").version or "0") >= Version("0.29")
RUNNER = "vllm_ascend.worker.v2.model_runner:NPUModelRunner"


def stock(model: str) -> list[list[int]]:
    """On upstream's CPU backend, without us."""
    from ascend_shims.simnpu.runtime import engine, generate

    return generate(engine(model), PROMPTS, TOKENS)


def beside_a_plugin(model: str, settings: dict[str, Any]) -> dict[str, Any]:
    """One engine in this process: tokens, states, and what was patched and used."""
    from ascend_shims.simnpu.runtime import engine, generate

    llm = engine(model, **settings)
    tokens = generate(llm, PROMPTS, TOKENS)
    core = llm.llm_engine.engine_core.engine_core
    runner = core.model_executor.driver_worker.worker.model_runner
    told = {"tokens": tokens, **_told(runner)}
    core.shutdown()
    return told


def _told(runner: Any) -> dict[str, Any]:
    import sys

    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    import ascend_shims

    def of_the_plugin(module: str, name: str) -> int:
        found = sys.modules.get(f"vllm_ascend.worker.v2.{module}")
        return len(getattr(found, name, ()))

    report = ascend_shims.status()
    ours = {
        gap: "__ascend_shims__" in vars(vars(GPUModelRunner)[name])
        for gap, name in OVERRIDDEN.items()
    }
    return {
        "runner": f"{type(runner).__module__}:{type(runner).__qualname__}",
        "states": {gap.id: str(gap.state) for gap in report.gaps},
        "reasons": {gap.id: gap.reason for gap in report.gaps},
        "patched": ours,
        "marked": MARKER.replace("-", "_") in str(list(vars(GPUModelRunner))),
        "refreshed": of_the_plugin("rotary", "refreshed"),
        "replayed": of_the_plugin("aclgraph", "replayed"),
    }


def in_processes(model: str, settings: dict[str, Any]) -> dict[str, Any]:
    """States in each process of an engine whose core is a process of its own."""
    from harness import answers

    import ascend_shims
    from ascend_shims.simnpu.runtime import engine, generate

    llm = engine(model, **settings)
    tokens = generate(llm, PROMPTS, TOKENS)
    reports = [answer.report for answer in answers()]
    reports.append(ascend_shims.status().as_dict())
    states = {
        report["process"]["role"].split()[0]: {
            gap["id"]: [gap["state"], gap["reason"]] for gap in report["gaps"]
        }
        for report in reports
    }
    llm.llm_engine.engine_core.shutdown()
    return {"tokens": tokens, "states": states}


@pytest.fixture(scope="module")
def right(model_gqa: Path, run_real: RunReal) -> list[list[int]]:
    env = {"ASCEND_SHIMS_DEVICE": "none", **IN_ONE}
    tokens: list[list[int]] = run_real(stock, model_gqa, env=env)
    assert [len(row) for row in tokens] == [TOKENS] * len(PROMPTS)
    return tokens


def environment(**more: str) -> dict[str, str]:
    here = Path(__file__).parent
    path = os.pathsep.join([str(STAND_IN), str(here)])
    return {"ASCEND_SHIMS_DEVICE": "sim", "PYTHONPATH": path, **more}


@pytest.fixture
def told(model_gqa: Path, run_real: RunReal) -> Callable[..., dict[str, Any]]:
    def run(settings: dict[str, Any] = WORKER, **env: str) -> dict[str, Any]:
        found: dict[str, Any] = run_real(
            beside_a_plugin,
            model_gqa,
            {**GRAPHS, **settings},
            env=environment(**IN_ONE, **env),
        )
        return found

    return run


Told = Callable[..., dict[str, Any]]
OURS = {
    "runtime-guard", "kv-cache", "npu-graph", "input-buffers", "speculator-dispatch"
}  # fmt: skip


def test_what_the_plugin_closes_is_left_to_it(
    told: Told, right: list[list[int]]
) -> None:
    seen = told()
    assert seen["tokens"] == right
    assert seen["runner"] == RUNNER
    for gap, method in OVERRIDDEN.items():
        assert seen["states"][gap] == "provided"
        assert seen["reasons"][gap].endswith(f"as loaded: {RUNNER}.{method}")
    assert seen["states"][MARKER] == "provided"
    assert seen["patched"] == dict.fromkeys(OVERRIDDEN, False) | {"cos-sin": True}
    assert seen["marked"] is False
    assert seen["states"]["speculator-graph-manager"] == "not-applicable"
    assert {gap: seen["states"][gap] for gap in OURS} == dict.fromkeys(OURS, "applied")
    assert seen["refreshed"] > 0
    assert seen["replayed"] > 0


def test_ours_can_be_preferred(told: Told, right: list[list[int]]) -> None:
    """Its overrides pass on, so that both close the gap and tokens stay right; its
    marker hides ours, and that is said."""
    seen = told(ASCEND_SHIMS_PREFER="shims")
    assert seen["tokens"] == right
    assert seen["runner"] == RUNNER
    for gap in OVERRIDDEN:
        assert seen["states"][gap] == "applied"
        assert "ASCEND_SHIMS_PREFER=shims" in seen["reasons"][gap]
    assert seen["patched"] == dict.fromkeys(OVERRIDDEN, True)
    assert seen["states"]["speculator-graph-manager"] == "applied"
    if HAS_MARKER:
        assert seen["states"][MARKER] == "provided"
        assert "ours cannot be preferred" in seen["reasons"][MARKER]
    else:
        assert seen["states"][MARKER] == "version-skipped"


@pytest.mark.parametrize("dropped", [["cos-sin"], ["graph-manager"], [*OVERRIDDEN]])
def test_what_its_class_has_dropped_is_ours_at_once(
    dropped: list[str], told: Told, right: list[list[int]]
) -> None:
    """Its text still has the method, its class has not."""
    methods = ",".join(OVERRIDDEN[gap] for gap in dropped)
    seen = told(STAND_IN_DROPS=methods)
    assert seen["tokens"] == right
    assert seen["runner"] == RUNNER
    for gap in OVERRIDDEN:
        expected = "applied" if gap in dropped else "provided"
        assert seen["states"][gap] == expected
        assert seen["patched"][gap] is (gap in dropped or gap == "cos-sin")
    assert (seen["refreshed"] == 0) is ("cos-sin" in dropped)
    assert (seen["replayed"] == 0) is ("graph-manager" in dropped)


def test_another_runner_gets_ours(told: Told, right: list[list[int]]) -> None:
    """The plugin is installed, and the rig's own worker runs."""
    seen = told({})
    assert seen["tokens"] == right
    assert seen["runner"] == "ascend_shims.simnpu.runner:SimNPUModelRunner"
    for gap in (*OVERRIDDEN, "speculator-graph-manager", *OURS):
        assert seen["states"][gap] == "applied", (gap, seen["reasons"][gap])
    marked = "applied" if HAS_MARKER else "version-skipped"
    assert seen["states"][MARKER] == marked
    assert (seen["refreshed"], seen["replayed"]) == (0, 0)


def test_each_process_says_what_provides(
    model_gqa: Path, run_real: RunReal, right: list[list[int]]
) -> None:
    """By the plugin's source, and where its class is there, by that."""
    seen = run_real(
        in_processes, model_gqa, {**GRAPHS, **WORKER}, env=environment(), timeout=400
    )
    assert seen["tokens"] == right
    assert set(seen["states"]) == {"front-end", "engine-core", "worker"}
    for gap, method in OVERRIDDEN.items():
        for role, states in seen["states"].items():
            how = "as loaded" if role == "worker" else "by its source"
            state, reason = states[gap]
            assert state == "provided"
            assert reason.endswith(f"{how}: {RUNNER}.{method}")
