"""profile-run-mc2 on upstream's own profile run, with experts of the software NPU."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

RunReal = Callable[..., Any]

PROMPTS = [list(range(3 + i, 3 + i + n)) for i, n in enumerate((5, 17, 33, 9))]
TOKENS = 8
BUDGET = 64
CAPACITY = 8
"""One token for each of the eight requests that `engine` serves at once."""

SETTINGS = {"enable_expert_parallel": True, "max_num_batched_tokens": BUDGET}
SIM = {"ASCEND_SHIMS_DEVICE": "sim", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
STOCK = {**SIM, "ASCEND_SHIMS_DEVICE": "none"}


@pytest.fixture(scope="module")
def seen(model_moe: str, run_real: RunReal) -> dict[str, Any]:
    told: dict[str, Any] = run_real(served, model_moe, env=SIM)
    return told


@pytest.fixture(scope="module")
def without(model_moe: str, run_real: RunReal) -> dict[str, Any]:
    env = {**SIM, "ASCEND_SHIMS_DISABLE": "profile-run-mc2"}
    told: dict[str, Any] = run_real(served, model_moe, env=env)
    return told


def test_a_run_of_the_capacity_comes_before_the_standard_one(
    seen: dict[str, Any],
) -> None:
    assert seen["state"] == "applied"
    asked = {"skip_attn": True, "is_profile": True}
    first, second = seen["start"]
    assert first == {**asked, "tokens": CAPACITY, "skip_eplb": True, "balanced": True}
    assert second == {**asked, "tokens": BUDGET, "balanced": True} | seen["random"]


def test_without_it_the_standard_one_is_alone(without: dict[str, Any]) -> None:
    assert without["state"] == "off"
    (only,) = without["start"]
    assert (only["tokens"], only["balanced"]) == (BUDGET, False)


def test_buffers_are_there_before_the_cache_is(
    seen: dict[str, Any], without: dict[str, Any]
) -> None:
    assert seen["buffers"] == {"runs": [8 << 20] * 2, "start": 8 << 20}
    assert without["buffers"] == {"runs": [0], "start": 0}


def test_with_all_other_memory_gone_it_serves(
    seen: dict[str, Any], without: dict[str, Any], model_moe: str, run_real: RunReal
) -> None:
    """The KV cache takes what profiling leaves."""
    assert without["full"] == "OutOfMemoryError"
    stock = run_real(stock_tokens, model_moe, env=STOCK)
    assert [len(row) for row in stock] == [TOKENS] * len(PROMPTS)
    assert seen["full"] == stock


def test_each_expert_is_sent_its_share_while_profiling(seen: dict[str, Any]) -> None:
    """Four experts, of which each token goes to two."""
    assert seen["loads"]["profiled"] == [
        [CAPACITY // 2] * 4,
        [CAPACITY // 2] * 4,
        [BUDGET // 2] * 4,
        [BUDGET // 2] * 4,
    ]
    served = seen["loads"]["served"]
    assert sum(map(sum, served)) > 0
    assert any(max(loads) - min(loads) > 1 for loads in served)


CASES: dict[str, list[int]] = {
    "again": [CAPACITY, BUDGET],
    "nested": [CAPACITY, BUDGET, BUDGET],
    "no experts in parallel": [BUDGET],
    "no experts": [BUDGET],
    "capacity as large as the budget": [BUDGET],
    "random inputs": [CAPACITY, BUDGET],
    "fails": [CAPACITY],
    "after the failure": [CAPACITY, BUDGET],
}


@pytest.mark.parametrize("case", CASES)
def test_when_it_comes(case: str, seen: dict[str, Any]) -> None:
    told = seen["cases"][case]
    assert [run["tokens"] for run in told["runs"]] == CASES[case]
    assert [run["balanced"] for run in told["runs"]] == [True] * len(CASES[case])
    assert told["error"] == ("MemoryError" if case == "fails" else None)
    assert told["balanced after"] is False
    if case == "random inputs" and seen["random"]:
        assert [run["randomize_inputs"] for run in told["runs"]] == [True, True]


def stock_tokens(model: str) -> list[list[int]]:
    from ascend_shims.simnpu.runtime import engine, generate

    return generate(engine(model, **SETTINGS), PROMPTS, TOKENS)


def served(model: str) -> dict[str, Any]:
    """One engine: what its profile run did, and those that follow in cases."""
    import ascend_shims
    from ascend_shims.simnpu import moe, npu
    from ascend_shims.simnpu.runtime import engine, generate

    prepare()
    told: dict[str, Any] = {"cases": {}}
    with watched() as runs:
        llm = engine(model, **SETTINGS)
    told["state"] = ascend_shims.status().state("profile-run-mc2").value
    told["buffers"] = {
        "runs": [run.pop("buffers") for run in runs],
        "start": sum(one.nbytes for one in moe._buffers),
    }
    told["start"] = runs
    core = llm.llm_engine.engine_core.engine_core
    runner = core.model_executor.driver_worker.worker.model_runner
    takes = "randomize_inputs" in inspect.signature(runner.profile_run).parameters
    told["random"] = {"randomize_inputs": False} if takes else {}

    memory = npu.device_memory()
    with memory.limited(memory.reserved + (1 << 20)), loads() as found:
        try:
            told["full"] = generate(llm, PROMPTS, TOKENS)
        except npu.OutOfMemoryError as error:
            told["full"] = type(error).__name__
            return told
    told["loads"] = {"served": found}
    with loads() as found:
        runner.profile_run()
    told["loads"]["profiled"] = found

    parallel, config = runner.parallel_config, runner.model_config
    case = cases(runner, told["cases"])
    case("again")
    case("nested", nested=True)
    case("random inputs", **({"randomize_inputs": True} if takes else {}))
    parallel.enable_expert_parallel = False
    case("no experts in parallel")
    parallel.enable_expert_parallel = True
    with replaced(type(config), "is_moe", property(lambda _: False)):
        case("no experts")
    with replaced(moe, "capacity", lambda _: BUDGET):
        case("capacity as large as the budget")
    with replaced(moe, "send", failing):
        case("fails")
    case("after the failure")
    return told


def prepare() -> None:
    """Experts exchange, and the worker profiles as a device's does: upstream's for
    the CPU leaves that out where the size of the cache is given."""
    from vllm.v1.worker.cpu_worker import CPUWorker

    CPUWorker._should_warm_up_model = lambda self: True


@contextmanager
def watched() -> Iterator[list[dict[str, Any]]]:
    """Dummy runs of any runner, before and after: its arguments and what it finds."""
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner

    from ascend_shims.simnpu import moe

    runs: list[dict[str, Any]] = []
    upstream = GPUModelRunner._dummy_run

    def dummy_run(self: Any, num_tokens: int, **options: Any) -> Any:
        run = {"tokens": num_tokens, "balanced": moe._BALANCED.get(), **options}
        runs.append(run)
        result = upstream(self, num_tokens, **options)
        run["buffers"] = sum(one.nbytes for one in moe._buffers)
        return result

    with replaced(GPUModelRunner, "_dummy_run", dummy_run):
        yield runs


@contextmanager
def loads() -> Iterator[list[list[int]]]:
    """How many tokens each expert is sent, layer by layer and step by step."""
    import torch

    from ascend_shims.simnpu import moe

    found: list[list[int]] = []

    def note(module: Any, arguments: tuple[Any, ...]) -> None:
        if not isinstance(module, moe._Sending):
            return
        logits = arguments[1]
        if moe._BALANCED.get():
            logits = moe.even(logits)
        experts = logits.topk(2).indices.flatten()
        found.append(torch.bincount(experts, minlength=4).tolist())

    hook = torch.nn.modules.module.register_module_forward_pre_hook(note)
    try:
        yield found
    finally:
        hook.remove()


def cases(runner: Any, told: dict[str, Any]) -> Callable[..., None]:
    from ascend_shims.simnpu import moe

    def case(name: str, nested: bool = False, **options: Any) -> None:
        error = None
        with watched() as runs:
            if nested:
                once(runner, "reset_encoder_cache", runner.profile_run)
            try:
                runner.profile_run(**options)
            except MemoryError as raised:
                error = type(raised).__name__
        told[name] = {
            "runs": runs,
            "error": error,
            "balanced after": moe._BALANCED.get(),
        }

    return case


def once(owner: Any, name: str, then: Callable[[], Any]) -> None:
    """Call `then` within the next call of a method of `owner`."""
    method = getattr(owner, name)

    def replacement() -> Any:
        delattr(owner, name)
        then()
        return method()

    setattr(owner, name, replacement)


def failing(num_tokens: int, vllm_config: Any) -> None:
    raise MemoryError


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
