"""All ranks of a real engine carry the same patches, or it does not start."""

from __future__ import annotations

import gc
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

RunReal = Callable[..., Any]

PROMPTS = [[1, 2, 3, 4, 5], [7, 8, 9]]
TOKENS = 6
SIM = {"ASCEND_SHIMS_DEVICE": "sim"}
# With a token in the environment Ray leaves none in the home directory.
RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
IN_ONE = {**SIM, "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}

needs_ray = pytest.mark.skipif(
    find_spec("ray") is None, reason="ray is not installed: tools/env installs it"
)


@pytest.fixture(scope="module")
def tokens(run_real: RunReal, model_gqa: str) -> Any:
    """Of one rank, without any patch."""
    found = run_real(one_rank, model_gqa, env={"ASCEND_SHIMS_DEVICE": "none"})
    assert [len(row) for row in found] == [TOKENS] * 2
    return found


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_two_ranks_of_one_mind(
    start: str, run_real: RunReal, model_gqa: str, tokens: Any
) -> None:
    env = {**SIM, "VLLM_WORKER_MULTIPROC_METHOD": start}
    if start == "fork":
        # Asking needs no functions sent to workers; changing their minds does.
        env["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
    told = run_real(two_ranks, model_gqa, "mp", env=env, timeout=480)
    _agree(told, tokens)
    if start == "fork":
        start_of = "cos-sin is in force ("
        assert start_of in told["after one took it back"]
        end_of = ") on rank 0, and off (taken back by revert()) on rank 1. Give"
        assert end_of in told["after one took it back"]


@needs_ray
@pytest.mark.parametrize("executor", ["1", "0"], ids=["RayExecutorV2", "Ray"])
def test_two_ranks_of_one_mind_on_ray(
    executor: str, run_real: RunReal, model_gqa: str, tokens: Any
) -> None:
    env = {**SIM, **RAY, "VLLM_USE_RAY_V2_EXECUTOR_BACKEND": executor}
    told = run_real(on_ray, model_gqa, env=env, timeout=580, fresh=True)
    _agree(told, tokens)


def _agree(told: dict[str, Any], tokens: Any) -> None:
    assert told["tokens"] == tokens
    assert told["digests"] == [told["plan"]] * 2
    assert len({*told["where"]}) == 2
    # The switch that only the program set, and the one that its environment has.
    off = {"runtime-guard", "speculator-dispatch"}
    for states in told["states"]:
        assert {gap for gap, state in states.items() if state == "off"} == off
        states = {state for gap, state in states.items() if gap not in off}
        assert states <= {"applied", "version-skipped"}
        assert "applied" in states


MISFITS = {
    "switched off": (
        {"ASCEND_SHIMS_DISABLE": "cos-sin"},
        "rank 0, and off (switched off by ASCEND_SHIMS_DISABLE) on rank 1. Give",
        2,
    ),
    "no shims": ({"ASCEND_SHIMS": "off"}, "patches: rank 1 told nothing for 5 s", 1),
    "no plugin": ({"VLLM_PLUGINS": ""}, "patches: rank 1 told nothing for 5 s", 1),
}


@pytest.mark.parametrize(("environ", "said", "ranks"), MISFITS.values(), ids=MISFITS)
def test_a_rank_that_differs_keeps_all_from_starting(
    environ: dict[str, str], said: str, ranks: int, run_real: RunReal, model_gqa: str
) -> None:
    told = run_real(
        with_a_misfit,
        model_gqa,
        environ,
        env={**IN_ONE, "ASCEND_SHIMS_RANKS_PATIENCE": "5"},
        timeout=480,
    )
    assert "initialization failed" in told["error"]
    errors = [line for line in told["log"] if "RanksDifferError: " in line]
    # One of each rank that carries patches.
    assert [said in line for line in errors] == [True] * ranks
    if ranks == 2:
        assert all("cos-sin is in force (" in line for line in errors)


@needs_ray
@pytest.mark.any_release
def test_a_node_that_differs_keeps_all_from_starting(
    run_real: RunReal, model_gqa: str
) -> None:
    env = {**IN_ONE, **RAY}
    told = run_real(
        with_a_node_of_its_own_mind, model_gqa, env=env, timeout=900, fresh=True
    )
    assert "RanksDifferError" in told["error"]
    assert (
        "rank 0, and off (switched off by ASCEND_SHIMS_DISABLE) on rank 1"
        in told["error"]
    )


# The other side -----------------------------------------------------------------------


def one_rank(model: str) -> list[list[int]]:
    from ascend_shims.simnpu.runtime import engine, generate

    return generate(engine(model), PROMPTS, TOKENS)


def two_ranks(model: str, executor: str) -> dict[str, Any]:
    import ascend_shims
    from ascend_shims.ranks.compare import RanksDifferError
    from ascend_shims.simnpu.runtime import engine, generate

    os.environ["ASCEND_SHIMS_DISABLE"] = "speculator-dispatch"
    ascend_shims.apply(disable=["runtime-guard"])
    llm = engine(model, tensor_parallel_size=2, distributed_executor_backend=executor)
    tokens = generate(llm, PROMPTS, TOKENS)
    ranks = ascend_shims.check_ranks(llm, timeout=60)
    told = {
        "tokens": tokens,
        "plan": ascend_shims.status().plan,
        "digests": list(ranks.digests),
        "where": [one.where for one in ranks.ranks],
        "states": [{g.id: g.state.value for g in one.gaps} for one in ranks.ranks],
    }
    if os.environ.get("VLLM_ALLOW_INSECURE_SERIALIZATION"):
        llm.collective_rpc(_take_back_on_one)
        try:
            ascend_shims.check_ranks(llm.llm_engine)
        except RanksDifferError as error:
            told["after one took it back"] = str(error)
    llm.llm_engine.engine_core.shutdown()
    return told


def _take_back_on_one(worker: Any) -> None:
    import ascend_shims

    if worker.rank == 1:
        ascend_shims.revert("cos-sin")


SMALL = {
    "num_cpus": 1,
    "resources": {"NPU": 1},
    "object_store_memory": 100 * 2**20,
    "include_dashboard": False,
}
"""What a node of a local cluster is given."""


def on_ray(model: str) -> dict[str, Any]:
    import ray

    with _room() as folder:
        # Two devices, as the platform of the rig calls them.
        two = {**SMALL, "num_cpus": 2, "resources": {"NPU": 2}}
        ray.init(**two, _temp_dir=folder, log_to_driver=False)
        try:
            # The engine's process starts from here, and is to join this cluster.
            os.environ["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
            return two_ranks(model, "ray")
        finally:
            ray.shutdown()


@contextmanager
def _room() -> Iterator[str]:
    """A folder for a cluster. Its sockets want a short name."""
    import shutil
    import tempfile

    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_a_misfit(model: str, environ: dict[str, str]) -> dict[str, Any]:
    """Start two ranks, the second with other variables."""
    import inspect
    from pathlib import Path

    from vllm.v1.executor.multiproc_executor import WorkerProc

    import ascend_shims
    from ascend_shims.simnpu.runtime import engine

    ascend_shims.apply()
    make = WorkerProc.make_worker_process
    signature = inspect.signature(make)

    def make_other(*args: Any, **kwargs: Any) -> Any:
        before = dict(os.environ)
        if signature.bind(*args, **kwargs).arguments["rank"] == 1:
            os.environ.update(environ)
        try:
            return make(*args, **kwargs)
        finally:
            os.environ.clear()
            os.environ.update(before)

    WorkerProc.make_worker_process = staticmethod(make_other)
    try:
        engine(model, tensor_parallel_size=2, distributed_executor_backend="mp")
    except Exception as error:  # noqa: BLE001 - the answer is which one it was
        # Workers write where this process does.
        log = Path("/proc/self/fd/2").resolve().read_text(errors="replace")
        return {"error": str(error), "log": log.splitlines()}
    return {"error": "", "log": []}


def with_a_node_of_its_own_mind(model: str) -> dict[str, Any]:
    """Two nodes of one device each; one has a switch in its environment."""
    import ray
    from ray.cluster_utils import Cluster

    import ascend_shims
    from ascend_shims.simnpu.runtime import engine

    cluster = Cluster(initialize_head=True, head_node_args=SMALL)
    cluster.add_node(**SMALL, env_vars={"ASCEND_SHIMS_DISABLE": "cos-sin"})
    cluster.wait_for_nodes()
    os.environ["RAY_ADDRESS"] = cluster.address
    ascend_shims.apply()
    said = ""
    try:
        engine(model, tensor_parallel_size=2, distributed_executor_backend="ray")
    except Exception as error:  # noqa: BLE001 - the answer is which one it was
        said = str(error)
    # What is left of the engine talks to the cluster once more when it goes, and would
    # look for one for minutes.
    gc.collect()
    del os.environ["RAY_ADDRESS"]
    ray.shutdown()
    cluster.shutdown()
    return {"error": said}
