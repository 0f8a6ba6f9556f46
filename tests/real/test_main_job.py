"""The main job: stock, with shims, and stock again, on upstream's own runner."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

PROMPTS = [list(range(3, 3 + length)) for length in (5, 17, 33, 9)]
TOKENS = 16
GRANULE = 2 * 1024 * 1024
GAPS = ("runtime-guard", "cos-sin", "kv-cache")
# The first engine is stock: the program decides when shims come.
START = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", "ASCEND_SHIMS_DEVICE": "none"}
RunReal = Callable[..., Any]


@pytest.fixture(scope="module", params=["gqa", "mla"])
def seen(request: pytest.FixtureRequest, run_real: RunReal) -> dict[str, Any]:
    model = request.getfixturevalue(f"model_{request.param}")
    # One of them as a user starts it.
    fresh = request.param == "gqa"
    told: dict[str, Any] = run_real(three_times, model, env=START, fresh=fresh)
    return told


def test_all_three_gaps_are_applied_and_then_reverted(seen: dict[str, Any]) -> None:
    assert seen["without a device"] == dict.fromkeys(GAPS, "not-applicable")
    assert seen["applied"] == dict.fromkeys(GAPS, "applied")
    assert seen["reverted"] == dict.fromkeys(GAPS, "reverted")


def test_tokens_are_bit_identical(seen: dict[str, Any]) -> None:
    assert [len(row) for row in seen["stock"]] == [TOKENS] * len(PROMPTS)
    assert seen["shimmed"] == seen["stock"]
    assert seen["again"] == seen["stock"]


def test_kv_backings_are_aligned_while_applied_and_only_then(
    seen: dict[str, Any],
) -> None:
    stock, shimmed, again = (
        seen[f"bases {run}"] for run in ("stock", "shimmed", "again")
    )
    assert shimmed
    assert all(base % GRANULE == 0 for base in shimmed)
    assert any(base % GRANULE for base in [*stock, *again])


def test_stock_objects_are_back(seen: dict[str, Any]) -> None:
    assert seen["compared"] > 20_000
    assert seen["differences"] == []
    assert seen["digests"][0] == seen["digests"][1]


def test_import_order_does_not_matter(run_real: RunReal) -> None:
    sim = {"ASCEND_SHIMS_DEVICE": "sim"}
    before = run_real(bindings, "apply first", env=sim)
    after = run_real(bindings, "import first", env=sim)
    assert before["states"] == after["states"] == dict.fromkeys(GAPS, "applied")
    assert before["ours"] == after["ours"]
    # Methods on the runner, and the by-name imports of the runner's module.
    assert len(before["ours"]) >= 9
    assert before["stale"] == after["stale"] == []
    assert before["left"] == after["left"] == []


def test_without_a_device_nothing_changes(run_real: RunReal) -> None:
    told = run_real(untouched, env={"ASCEND_SHIMS_DEVICE": None})
    assert told["differences"] == []
    assert told["same"] == {
        "meta_path": True,
        "environ": True,
        "threads": True,
        "path_hooks": True,
    }
    assert len(told["gaps"]) == 12
    for state, reason in told["gaps"].values():
        assert state in ("not-applicable", "landed")
        assert reason


def _states(report: Any) -> dict[str, str]:
    return {gap: report.state(gap).value for gap in GAPS}


def _generate(model: str) -> tuple[list[list[int]], list[int]]:
    import gc

    from ascend_shims.patches.kv_cache import backings
    from ascend_shims.simnpu.runtime import engine, generate

    llm = engine(model)
    tokens = generate(llm, PROMPTS, TOKENS)
    core = llm.llm_engine.engine_core.engine_core
    runner = core.model_executor.driver_worker.worker.model_runner
    layers = runner.compilation_config.static_forward_context
    caches = {name: layer.kv_cache for name, layer in layers.items()}
    bases = [backing.base for backing in backings(caches)]
    core.shutdown()
    del llm, core, runner, layers, caches
    gc.collect()
    return tokens, bases


def three_times(model: str) -> dict[str, Any]:
    import vllm.v1.worker.cpu.model_runner
    import vllm.v1.worker.cpu_worker  # noqa: F401

    import ascend_shims
    from ascend_shims.verify.snapshot import take

    told: dict[str, Any] = {"without a device": _states(ascend_shims.apply())}
    told["stock"], told["bases stock"] = _generate(model)
    packages = ("vllm", "torch.cuda", "torch.accelerator")
    before = take(packages)
    os.environ["ASCEND_SHIMS_DEVICE"] = "sim"
    ascend_shims.apply()
    told["shimmed"], told["bases shimmed"] = _generate(model)
    told["applied"] = _states(ascend_shims.status())
    told["reverted"] = _states(ascend_shims.revert())
    after = take(packages, before.modules)
    told["again"], told["bases again"] = _generate(model)
    told["compared"] = len(before.objects)
    told["differences"] = [str(one) for one in before.differences(after)]
    told["digests"] = [before.digest, after.digest]
    return told


def bindings(order: str) -> dict[str, Any]:
    """Every binding of the runner's modules that is ours, by name."""
    import importlib
    import sys

    import ascend_shims
    from ascend_shims.engine.slot import namespace
    from ascend_shims.engine.wrappers import mark_of

    modules = ["vllm.v1.worker.gpu_worker", "vllm.v1.worker.gpu.model_runner"]
    if order == "apply first":
        ascend_shims.apply()
    for module in modules:
        importlib.import_module(module)
    if order == "import first":
        ascend_shims.apply()

    def ours() -> list[str]:
        found = set()
        for name, module in list(sys.modules.items()):
            if not name.startswith("vllm"):
                continue
            for key, value in list(namespace(module).items()):
                if mark_of(value):
                    found.add(f"{name}:{key}")
                if issubclass(type(value), type):
                    found.update(
                        f"{value.__module__}:{value.__qualname__}.{member}"
                        for member, raw in list(namespace(value).items())
                        if mark_of(raw)
                    )
        return sorted(found)

    report = ascend_shims.status()
    told = {"states": _states(report), "ours": ours(), "stale": list(report.stale)}
    ascend_shims.revert()
    told["left"] = ours()
    return told


def untouched() -> dict[str, Any]:
    import sys
    import threading

    import vllm.v1.worker.cpu.model_runner  # noqa: F401

    import ascend_shims
    from ascend_shims.verify.snapshot import take

    packages = ("vllm", "torch.cuda", "torch.accelerator")
    before = take(packages)
    kept = {
        "meta_path": list(sys.meta_path),
        "environ": dict(os.environ),
        "threads": threading.enumerate(),
        "path_hooks": list(sys.path_hooks),
    }
    report = ascend_shims.apply()
    now = {
        "meta_path": list(sys.meta_path),
        "environ": dict(os.environ),
        "threads": threading.enumerate(),
        "path_hooks": list(sys.path_hooks),
    }
    after = take(packages, before.modules)
    return {
        "differences": [str(one) for one in before.differences(after)],
        "same": {name: now[name] == kept[name] for name in kept},
        "gaps": {gap.id: (gap.state.value, gap.reason) for gap in report.gaps},
    }
