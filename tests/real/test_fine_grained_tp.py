"""fine-grained-tp on upstream's graph managers and steps, on one rank and on two."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ascend_shims.simnpu.trial import GRAPHS, trial

RunReal = Callable[..., Any]

PROMPTS = [list(range(3 + i, 3 + i + n)) for i, n in enumerate((5, 17, 33, 9))]
TOKENS = 8
OPROJ = {"oproj_tensor_parallel_size": 2}
SPLIT = {"additional_config": {"finegrained_tp_config": OPROJ}}
SIZES = [1, 2, 4, 8, 16, 32, 64]
FULL: dict[str, Any] = {
    "enforce_eager": False,
    "max_num_batched_tokens": 64,
    "compilation_config": {
        "mode": 0,
        "cudagraph_mode": "FULL",
        "cudagraph_capture_sizes": SIZES,
    },
}
OFF = {"ASCEND_SHIMS_DISABLE": "fine-grained-tp"}
SIM = {"ASCEND_SHIMS_DEVICE": "sim", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
STOCK = {**SIM, "ASCEND_SHIMS_DEVICE": "none"}


@pytest.fixture(scope="module")
def stock(model_moe: str, run_real: RunReal) -> list[list[int]]:
    tokens: list[list[int]] = run_real(stock_tokens, model_moe, env=STOCK)
    assert [len(row) for row in tokens] == [TOKENS] * len(PROMPTS)
    return tokens


def stock_tokens(model: str) -> list[list[int]]:
    from ascend_shims.simnpu.runtime import engine, generate

    return generate(engine(model, max_num_batched_tokens=64), PROMPTS, TOKENS)


# Upstream's managers, without an engine.


def test_managers_are_refused_that_lack_a_graph_for_a_step(run_real: RunReal) -> None:
    told = run_real(managers, env=SIM)
    assert told["wrong"] == []
    # Of the model and of its draft, some with a graph for every step.
    assert set(told["counts"]) == {"model", "draft"}
    for counts in told["counts"].values():
        assert counts["accepted"] > 20
        assert counts["refused"] > 100


def managers() -> dict[str, Any]:
    """Small configurations: refused ones, against upstream's answer for each step."""
    import vllm.v1.worker.gpu.cudagraph_utils as upstream
    from vllm.config.compilation import CUDAGraphMode

    import ascend_shims

    ascend_shims.apply(only=["fine-grained-tp"])
    rank = SimpleNamespace(is_first_rank=True, is_last_rank=True)
    upstream.get_pp_group = lambda: rank
    kinds = {
        "model": (upstream.ModelCudaGraphManager, (
            CUDAGraphMode.FULL,
            CUDAGraphMode.PIECEWISE,
            CUDAGraphMode.FULL_AND_PIECEWISE,
        )),
        "draft": (upstream.CudaGraphManager, (
            CUDAGraphMode.FULL_DECODE_ONLY,
            CUDAGraphMode.FULL,
        )),
    }  # fmt: skip
    captured = [[], [1, 2, 3], [1, 2, 4, 6], [2, 3, 6], [1, 2, 4, 8], [8, 12], [12]]
    told: dict[str, Any] = {"wrong": [], "counts": {}}
    for name, (kind, modes) in kinds.items():
        counts = told["counts"][name] = {"accepted": 0, "refused": 0}
        for mode, sizes, tokens, requests, query in itertools.product(
            modes, captured, (3, 8, 12), (1, 2, 4), (1, 3)
        ):
            case = {"sizes": sizes, "tokens": tokens, "requests": requests}
            bare = lacks(kind, config(case, {}), mode, query)
            refused = refusal(kind, config(case, OPROJ), mode, query)
            counts["refused" if refused else "accepted"] += 1
            if bool(bare) != bool(refused) or (
                bare and f"one of {min(bare)} tokens has none" not in refused
            ):
                told["wrong"].append([name, str(mode), case, query, bare, refused])
    return told


def refusal(kind: Any, config: Any, mode: Any, query: int) -> str:
    from ascend_shims.patches.fine_grained_tp import UncapturedStepError

    try:
        kind(config, None, mode, query)
    except UncapturedStepError as error:
        return str(error)
    return ""


def lacks(kind: Any, config: Any, mode: Any, query: int) -> list[int]:
    """Tokens of the steps that may come and find no graph."""
    manager = kind(config, None, mode, query)
    manager._graphs_captured = True
    scheduler = config.scheduler_config
    bare = set()
    for num_reqs in range(1, scheduler.max_num_seqs + 1):
        steps = [(num_reqs * query, query)]
        if mode.mixed_mode():
            all_tokens = range(num_reqs, scheduler.max_num_batched_tokens + 1)
            steps = [(tokens, None) for tokens in all_tokens]
            steps += [(t, t // num_reqs) for t, _ in steps if t % num_reqs == 0]
        for num_tokens, uniform in steps:
            if not manager.dispatch(num_reqs, num_tokens, uniform, 0).cg_mode:
                bare.add(num_tokens)
    return sorted(bare)


def config(case: dict[str, Any], split: dict[str, int]) -> Any:
    """What upstream and the gap read of a configuration."""
    return SimpleNamespace(
        model_config=SimpleNamespace(is_encoder_decoder=False),
        parallel_config=SimpleNamespace(
            data_parallel_size=2, tensor_parallel_size=1, use_ubatching=False
        ),
        scheduler_config=SimpleNamespace(
            max_num_seqs=case["requests"], max_num_batched_tokens=case["tokens"]
        ),
        compilation_config=SimpleNamespace(
            cudagraph_capture_sizes=case["sizes"],
            max_cudagraph_capture_size=max(case["sizes"], default=0),
        ),
        cache_config=SimpleNamespace(use_kda_recoverssm=False),
        speculative_config=None,
        num_speculative_tokens=2,
        additional_config={"finegrained_tp_config": split},
    )


# One rank.

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "decodes alone": (
        {**GRAPHS, **SPLIT},
        "oproj_tensor_parallel_size=2 needs a captured graph for every step, and "
        "cudagraph_mode=FULL_DECODE_ONLY captures decodes alone",
    ),
    "eager": (
        {"additional_config": {"finegrained_tp_config": {
            "mlp_tensor_parallel_size": 4}}},
        "mlp_tensor_parallel_size=4 needs a captured graph for every step, and the "
        "model has none with cudagraph_mode=NONE",
    ),
    "large steps": (
        {**FULL, **SPLIT, "max_num_batched_tokens": 65},
        "one of 65 tokens has none; include 65",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "said"), REFUSED.values(), ids=REFUSED)
def test_a_configuration_that_cannot_work_is_refused(
    settings: dict[str, Any], said: str, model_moe: str
) -> None:
    seen = trial(model_moe, PROMPTS[:1], 2, settings=settings)
    assert (seen.error, seen.tokens) == ("UncapturedStepError", ())
    assert said in seen.message


def test_without_the_gap_it_is_served(model_moe: str, stock: list[list[int]]) -> None:
    """By one rank, which has no one to wait for; two are below."""
    settings = {**GRAPHS, **SPLIT, "max_num_batched_tokens": 64}
    seen = trial(model_moe, PROMPTS, TOKENS, settings=settings, switches=OFF)
    assert (seen.error, seen.message) == (None, "")
    assert [list(row) for row in seen.tokens] == stock


@pytest.fixture(scope="module")
def seen(model_moe: str, run_real: RunReal) -> dict[str, Any]:
    told: dict[str, Any] = run_real(one_rank, model_moe, env=SIM)
    return told


def test_every_step_replays_a_graph(
    seen: dict[str, Any], stock: list[list[int]]
) -> None:
    assert seen["state"] == "applied"
    assert seen["tokens"] == stock
    assert seen["idle"] is None
    assert seen["eager passes"] == 0


@pytest.mark.parametrize("step", ["real", "dummy", "idle"])
def test_an_eager_step_raises_before_a_layer_runs(
    step: str, seen: dict[str, Any]
) -> None:
    error, message, passes = seen["eager"][step]
    assert error == "EagerStepError"
    assert "finegrained_tp_config.oproj_tensor_parallel_size=2" in message
    assert passes == 0


def test_a_profile_run_is_eager_by_design(seen: dict[str, Any]) -> None:
    assert seen["eager"]["profile"] == [None, "", 1]


def one_rank(model: str) -> dict[str, Any]:
    import ascend_shims
    from ascend_shims.simnpu.runtime import engine, generate

    llm = engine(model, **FULL, **SPLIT)
    core = llm.llm_engine.engine_core.engine_core
    worker = core.model_executor.driver_worker.worker
    runner = worker.model_runner
    told: dict[str, Any] = {
        "state": ascend_shims.status().state("fine-grained-tp").value
    }
    with passes(runner.model) as count:
        told["tokens"] = generate(llm, PROMPTS, TOKENS)
        told["idle"] = worker.execute_dummy_batch()
        told["eager passes"] = count[0]
    # As if nothing had been captured for what comes.
    runner.cudagraph_manager._candidates.clear()
    steps: dict[str, Callable[[], Any]] = {
        "real": lambda: generate(llm, PROMPTS[:1], 1),
        "dummy": lambda: runner._dummy_run(8),
        "idle": worker.execute_dummy_batch,
        "profile": runner.profile_run,
    }
    told["eager"] = {}
    for name, step in steps.items():
        with passes(runner.model) as count:
            error = failure(step)
            told["eager"][name] = [*error, count[0]]
    return told


@contextmanager
def passes(model: Any) -> Iterator[list[int]]:
    """How often the model's own code runs: not in a replay."""
    count = [0]

    def note(*_: Any) -> None:
        count[0] += 1

    hook = model.register_forward_pre_hook(note)
    try:
        yield count
    finally:
        hook.remove()


def failure(step: Callable[[], Any]) -> tuple[str | None, str]:
    try:
        step()
    except Exception as error:  # noqa: BLE001 - the answer is which one it was
        return type(error).__name__, str(error)
    return None, ""


# Two ranks.


def test_ranks_that_run_eagerly_would_hang(model_moe: str, run_real: RunReal) -> None:
    """Without the gap: one has 17 tokens and the other 9."""
    told = run_real(two_ranks, model_moe, {"split": True}, env={**SIM, **OFF})
    assert [rank["error"] for rank in told] == ["DesynchronizedError"] * 2
    assert "exchange [17, 9] tokens" in told[0]["message"]


def test_ranks_that_replay_graphs_agree_and_stop_together(
    model_moe: str, run_real: RunReal, stock: list[list[int]]
) -> None:
    """The second rank is idle when the first one's graphs are gone."""
    job = {"split": True, "graphs": True, "gone after": 6}
    told = run_real(two_ranks, model_moe, job, env=SIM)
    assert [rank["tokens"] for rank in told] == [[stock[1]], [stock[3]]]
    assert [rank["error"] for rank in told] == ["EagerStepError"] * 2
    for rank in told:
        assert "here or on another data-parallel rank" in rank["message"]
    # All passes were replays, and the last one's layers did not run.
    assert [rank["exchanges"] for rank in told] == [0, 0]
    assert told[0]["steps"] == told[1]["steps"] == 6
    assert told[1]["unfinished"] == 0


def free_ports(count: int) -> int:
    """The first of `count` ports in a row that are free.

    vLLM listens at the port that it is given and at those after it, with no second
    try. Below those that the system gives away by itself (32768 and up on Linux),
    where a connection of another test could take one meanwhile.
    """
    for _ in range(100):
        first = random.randrange(20_000, 32_000)
        with ExitStack() as opened:
            try:
                for port in range(first, first + count):
                    opened.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
        return first
    raise AssertionError(f"no {count} free ports in a row from 20000 to 32000")


def two_ranks(model: str, job: dict[str, Any]) -> list[dict[str, Any]]:
    """What both data-parallel ranks tell."""
    port = free_ports(16)
    folder = Path(os.environ["REAL_RESULT"]).parent
    spawn = multiprocessing.get_context("spawn")
    ranks = [
        spawn.Process(target=one_of_two, args=(model, job, rank, port, str(folder)))
        for rank in range(2)
    ]
    for process in ranks:
        process.start()
    end = time.monotonic() + 420
    for process in ranks:
        process.join(max(0.0, end - time.monotonic()))
    for process in ranks:
        process.kill()
        process.join()
    paths = [folder / f"rank-{rank}.json" for rank in range(2)]
    told = {
        path.stem: json.loads(path.read_text("utf-8"))
        for path in paths
        if path.exists()
    }
    codes = [process.exitcode for process in ranks]
    assert len(told) == 2, f"a rank did not end: codes {codes}, told {told}"
    return list(told.values())


def one_of_two(
    model: str, job: dict[str, Any], rank: int, port: int, folder: str
) -> None:
    os.environ.update(
        VLLM_DP_RANK=str(rank),
        VLLM_DP_RANK_LOCAL=str(rank),
        VLLM_DP_SIZE="2",
        VLLM_DP_MASTER_IP="127.0.0.1",
        VLLM_DP_MASTER_PORT=str(port),
    )
    told: dict[str, Any] = {"tokens": None}
    error = failure(lambda: serve_one_of_two(model, job, rank, told))
    told["error"], told["message"] = error
    Path(folder, f"rank-{rank}.json").write_text(json.dumps(told), encoding="utf-8")
    # The other rank talks to this one's store until it has ended as well.
    while not Path(folder, f"rank-{1 - rank}.json").exists():
        time.sleep(0.1)
    os._exit(0)


def serve_one_of_two(
    model: str, job: dict[str, Any], rank: int, told: dict[str, Any]
) -> None:
    from ascend_shims.simnpu.runtime import engine, generate

    settings = {
        "max_num_batched_tokens": 64,
        "distributed_executor_backend": "uni",
        **(FULL if job.get("graphs") else {}),
        **SPLIT,
    }
    llm = engine(model, **settings)
    prompt = PROMPTS[1] if rank == 0 else PROMPTS[3]
    told["tokens"] = generate(llm, [prompt], TOKENS)

    told["steps"], told["exchanges"] = 0, 0
    core = llm.llm_engine.engine_core.engine_core
    runner = core.model_executor.driver_worker.worker.model_runner
    watch_steps(runner, told, job["gone after"] if rank == 0 else None)
    try:
        generate(llm, [prompt], 30 if rank == 0 else 2)
    finally:
        told["unfinished"] = core.scheduler.get_num_unfinished_requests()


def watch_steps(runner: Any, told: dict[str, Any], gone_after: int | None) -> None:
    """Count replays and exchanges; from a step on, this rank has no graphs."""
    from ascend_shims.simnpu import moe

    manager = runner.cudagraph_manager
    replay, exchange = manager.run_fullgraph, moe.exchange

    def run_fullgraph(desc: Any) -> Any:
        told["steps"] += 1
        if told["steps"] == gone_after:
            manager._candidates.clear()
        return replay(desc)

    def counted(num_tokens: int) -> None:
        told["exchanges"] += 1
        exchange(num_tokens)

    manager.run_fullgraph = run_fullgraph
    moe.exchange = counted
