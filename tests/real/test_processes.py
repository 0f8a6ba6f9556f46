"""Engine core and workers carry the plan of the front end, and say so."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

PROMPTS = [[1, 2, 3, 4, 5], [7, 8, 9]]
TOKENS = 6
GAPS = ("runtime-guard", "cos-sin", "kv-cache")
SIM = {"ASCEND_SHIMS_DEVICE": "sim"}
RunReal = Callable[..., Any]


def test_core_and_two_workers_have_the_states_of_the_front_end(
    run_real: RunReal, model_gqa: Any
) -> None:
    told = run_real(two_ranks, str(model_gqa), env=SIM, timeout=400)
    assert told["front end"] == {"runtime-guard": "off", **_applied("cos-sin")}
    processes = told["processes"]
    roles = sorted(process["role"].split()[0] for process in processes)
    assert roles == ["engine-core", "front-end", "worker", "worker"]
    assert {process["plan"] for process in processes} == {told["plan"]}
    workers = [p for p in processes if p["role"].startswith("worker")]
    for worker in workers:
        assert worker["states"] == told["front end"]
    for process in processes:
        assert process["states"]["runtime-guard"] == "off"
        # Of kv-cache, the engine core has the memory plan and workers the rest.
        known = {"applied", "pending", "partial", "off"}
        assert set(process["states"].values()) <= known
    for worker in workers:
        assert set(worker["states"].values()) == {"applied", "off"}
    assert told["ranks"] == [True, True]
    assert told["after"] == []


def test_the_model_inspection_child_is_clean(run_real: RunReal) -> None:
    # vLLM itself prints which plugins it has found; what matters is that we do not.
    told = run_real(inspection_child, env={**SIM, "VLLM_LOGGING_LEVEL": "WARNING"})
    assert told == {"code": 0, "stdout": "", "result": "GPUModelRunner"}


def test_the_plugin_imports_nothing_of_vllm(run_real: RunReal) -> None:
    told = run_real(registering, env=SIM, fresh=True)
    assert told["imported"] == []
    assert told["states"] == dict.fromkeys(GAPS, "pending")


def test_ray_workers_are_given_the_switches(run_real: RunReal) -> None:
    told = run_real(
        copied_to_ray, env={**SIM, "ASCEND_SHIMS_GUARD_REPORT": "/tmp/x.jsonl"}
    )
    assert set(told["wanted"]) - set(told["copied"]) == set()
    assert "ASCEND_SHIMS_DISABLE" in told["wanted"]
    assert told["after"] is None


def test_two_configurations_in_one_process_do_not_meet(
    run_real: RunReal, model_gqa: Any
) -> None:
    env = {**SIM, "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    told = run_real(two_engines, str(model_gqa), env=env, timeout=400)
    assert told["tables"] == [[1, 64, 1, 32], [1, 128, 1, 32]]
    assert told["alive"] == 0


def _applied(first: str) -> dict[str, str]:
    return dict.fromkeys((first, "kv-cache"), "applied")


def two_ranks(model: str) -> dict[str, Any]:
    from harness import answers
    from vllm.platforms import current_platform  # noqa: F401

    import ascend_shims
    from ascend_shims.simnpu.runtime import engine, generate

    # A switch that only the program sets has to reach every process.
    ascend_shims.apply(disable=["runtime-guard"])
    import vllm.v1.worker.cpu_worker  # noqa: F401

    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
    llm = engine(model, tensor_parallel_size=2, distributed_executor_backend="mp")
    generate(llm, PROMPTS, TOKENS)
    report = ascend_shims.status()
    told: dict[str, Any] = {
        "front end": {gap: report.state(gap).value for gap in GAPS},
        "plan": report.plan,
        "processes": [_told(os.getpid(), report.as_dict())],
        "ranks": llm.collective_rpc(_is_aligned),
    }
    told["processes"] += [_told(a.pid, a.report) for a in answers()]
    llm.llm_engine.engine_core.shutdown()
    del llm
    deadline = time.monotonic() + 120
    while answers() and time.monotonic() < deadline:
        time.sleep(0.2)
    told["after"] = [answer.pid for answer in answers()]
    return told


def _told(pid: int, report: dict[str, Any]) -> dict[str, Any]:
    states = {g["id"]: g["state"] for g in report["gaps"] if g["id"] in GAPS}
    role = report["process"]["role"]
    return {"pid": pid, "role": role, "plan": report["plan"], "states": states}


def _is_aligned(worker: Any) -> bool:
    from ascend_shims.patches.kv_cache import GRANULE, backings

    layers = worker.model_runner.compilation_config.static_forward_context
    caches = {name: layer.kv_cache for name, layer in layers.items()}
    return all(backing.base % GRANULE == 0 for backing in backings(caches))


def _name_of_runner() -> str:
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    return GPUModelRunner.__name__


def inspection_child() -> dict[str, Any]:
    import tempfile
    from pathlib import Path

    import cloudpickle

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.pkl")
        # By value: the child does not know this file.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        done = subprocess.run(
            [sys.executable, "-m", "vllm.model_executor.models.registry"],
            input=cloudpickle.dumps((_name_of_runner, str(out))),
            capture_output=True,
            check=False,
        )
        result = pickle.loads(out.read_bytes()) if out.exists() else None
    return {
        "code": done.returncode,
        "stdout": done.stdout.decode(),
        "result": result,
    }


def registering() -> dict[str, Any]:
    before = set(sys.modules)
    from ascend_shims.plugin import register

    register()
    import ascend_shims

    report = ascend_shims.status()
    new = {name.partition(".")[0] for name in set(sys.modules) - before}
    return {
        "imported": sorted(new & {"vllm", "torch", "triton", "pydantic"}),
        "states": {gap: report.state(gap).value for gap in GAPS},
    }


def copied_to_ray() -> dict[str, Any]:
    import ascend_shims

    ascend_shims.apply(disable=["cos-sin"])
    from vllm.ray.ray_env import get_env_vars_to_copy

    wanted = [name for name in os.environ if name.startswith("ASCEND_SHIMS")]
    copied = sorted(get_env_vars_to_copy())
    ascend_shims.revert()
    prefixes = os.environ.get("VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY")
    return {"wanted": wanted, "copied": copied, "after": prefixes}


def two_engines(model: str) -> dict[str, Any]:
    import gc

    from ascend_shims.patches.cos_sin import tables_of
    from ascend_shims.simnpu.runtime import engine, generate

    seen, runners = [], []
    import weakref

    for length in (64, 128):
        llm = engine(model, max_model_len=length, max_num_batched_tokens=length)
        generate(llm, PROMPTS, TOKENS)
        core = llm.llm_engine.engine_core.engine_core
        runner = core.model_executor.driver_worker.worker.model_runner
        tables = tables_of(runner)
        # Not where it lies: the first one is gone when the second is made.
        seen.append(list(tables.cos.shape))
        runners.append(weakref.ref(runner))
        core.shutdown()
        del llm, core, runner, tables
        gc.collect()
    return {"tables": seen, "alive": sum(one() is not None for one in runners)}
