"""The software NPU, under upstream's own runner: the same tokens as the CPU, and
without a gap the failure that the device would give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from ascend_shims.simnpu.trial import GRAPHS, SIXTEEN, SMALL, trial

RunReal = Callable[..., Any]

LENGTHS = (5, 17, 33, 9, 2, 70, 1, 26)
PROMPTS = [list(range(3 + i, 3 + i + n)) for i, n in enumerate(LENGTHS)]
TOKENS = 64
STOCK = {
    "ASCEND_SHIMS_DEVICE": "none",
    "ASCEND_SHIMS_SIM_QUICK": "0",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
}
QUICK = {**STOCK, "ASCEND_SHIMS_SIM_QUICK": "1"}


def stock_tokens(model: str, tokens: int) -> list[list[int]]:
    """On upstream's CPU backend."""
    from ascend_shims.simnpu.runtime import engine, generate

    return generate(engine(model), PROMPTS, tokens)


def tokens_with_amx(model: str, tokens: int) -> list[list[int]]:
    """On a processor that has AMX, or says so."""
    import torch

    torch.cpu._is_amx_tile_supported = lambda: True
    return stock_tokens(model, tokens)


def modules_of_the_rig(model: str) -> list[str]:
    """What a process that does not use the rig has of it after a run."""
    import sys

    from ascend_shims.simnpu.runtime import engine, generate

    generate(engine(model), PROMPTS[:1], 2)
    return sorted(
        name for name in sys.modules if name.startswith("ascend_shims.simnpu")
    )


def platform() -> dict[str, Any]:
    from vllm.platforms import current_platform

    return {
        "class": type(current_platform).__name__,
        "ray": current_platform.ray_device_key,
        "graphs": current_platform.support_static_graph_mode(),
    }


@pytest.fixture(scope="module", params=["gqa", "mla"])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"model_{request.param}"))


@pytest.fixture(scope="module")
def stock(model: str, run_real: RunReal) -> list[list[int]]:
    tokens: list[list[int]] = run_real(stock_tokens, model, TOKENS, env=STOCK)
    assert [len(row) for row in tokens] == [TOKENS] * len(PROMPTS)
    return tokens


def test_a_quick_interpreter_gives_the_same_tokens(
    model: str, stock: list[list[int]], run_real: RunReal
) -> None:
    """So other tests may compare with tokens of upstream's that come sooner."""
    assert run_real(stock_tokens, model, TOKENS, env=QUICK) == stock


def test_the_processor_does_not_matter(
    model: str, stock: list[list[int]], run_real: RunReal
) -> None:
    """With AMX upstream would attend to latents in bfloat16, or not at all."""
    assert run_real(tokens_with_amx, model, 8, env=QUICK) == [row[:8] for row in stock]


MODES: dict[str, dict[str, Any]] = {
    "eager": {},
    "graphs": GRAPHS,
    # The longest prompts come in several steps, beside others that decode.
    "chunked": {**GRAPHS, "max_num_batched_tokens": 32},
}


@pytest.mark.parametrize("mode", MODES)
def test_tokens_are_those_of_the_cpu(
    mode: str, model: str, stock: list[list[int]]
) -> None:
    tokens = 16 if mode == "chunked" else TOKENS
    seen = trial(model, PROMPTS, tokens, settings=MODES[mode])
    assert (seen.error, seen.message) == (None, "")
    assert seen.graphs == (() if mode == "eager" else (1, 2, 4, 8))
    assert [list(row) for row in seen.tokens] == [row[:tokens] for row in stock]


CONNECTOR = {
    "kv_transfer_config": {
        "kv_connector": "SimTransferConnector",
        "kv_connector_module_path": "ascend_shims.simnpu.transfer",
        "kv_role": "kv_both",
    }
}
EAGER: dict[str, Any] = {}


@dataclass(frozen=True)
class Step:
    """One more gap, and what fails without it."""

    error: str
    gap: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


LADDER = (
    Step("HostLengthsMissingError", "input-buffers", EAGER),
    Step("RopeTablesMissingError", "cos-sin", EAGER),
    Step("RegistrationError", "kv-cache", CONNECTOR),
    Step("PackedCacheError", "kv-cache", EAGER),
    Step("StaleLengthsError", "graph-manager", GRAPHS),
    Step("OutOfMemoryError", "npu-graph", SIXTEEN, SMALL),
)
"""From nothing to everything. Speculators have theirs in `test_rig_drafts.py`."""

# `ASCEND_SHIMS_ONLY` of nothing is no choice at all.
NONE = "runtime-guard"


def on(steps: tuple[Step, ...]) -> str:
    return ",".join(dict.fromkeys([NONE, *(step.gap for step in steps)]))


def test_without_any_it_fails_at_once(model_gqa: str) -> None:
    """Which is met first depends on whether a release warms up before it serves."""
    seen = trial(model_gqa, PROMPTS[:2], 4, switches={"ASCEND_SHIMS": "off"})
    assert seen.error in ("HostLengthsMissingError", "RopeTablesMissingError")
    assert seen.tokens == ()


@pytest.mark.parametrize("step", LADDER, ids=lambda step: step.error)
def test_without_one_it_fails_as_the_device_does(step: Step, model_gqa: str) -> None:
    switches = {**step.env, "ASCEND_SHIMS_DISABLE": step.gap}
    seen = trial(model_gqa, PROMPTS[:2], 4, settings=step.settings, switches=switches)
    assert (seen.error, seen.tokens) == (step.error, ())


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_with_it_that_failure_is_gone(number: int, model_gqa: str) -> None:
    """Only this one and those before it: the first two let the third get that far."""
    step = LADDER[number]
    switches = {**step.env, "ASCEND_SHIMS_ONLY": on(LADDER[: number + 1])}
    seen = trial(model_gqa, PROMPTS[:2], 4, settings=step.settings, switches=switches)
    assert (seen.error, seen.message) == (None, "")
    assert [len(row) for row in seen.tokens] == [4, 4]


def test_unchecked_it_computes_with_stale_lengths(model_gqa: str) -> None:
    """As silently as the device: no error, and wrong tokens."""
    right = trial(model_gqa, PROMPTS[:4], 16, graphs=True)
    wrong = trial(
        model_gqa,
        PROMPTS[:4],
        16,
        graphs=True,
        switches={
            "ASCEND_SHIMS_DISABLE": "graph-manager",
            "ASCEND_SHIMS_SIM_CHECKS": "0",
        },
    )
    assert (right.error, wrong.error) == (None, None)
    assert [len(row) for row in right.tokens] == [16] * 4
    # The first token of each comes from the prompt's own step, which is no replay.
    assert [row[0] for row in wrong.tokens] == [row[0] for row in right.tokens]
    assert all(a != b for a, b in zip(wrong.tokens, right.tokens, strict=True))


def test_a_process_without_the_rig_has_nothing_of_it(
    model_gqa: str, run_real: RunReal
) -> None:
    """Triton's stub is asked for by this process's environment, nothing else is."""
    found = run_real(modules_of_the_rig, model_gqa, env=STOCK)
    # This file itself imports `trial`.
    allowed = (
        "plugin", "request", "runtime", "trial", "triton_cpu", "vllm_name", "cpu_mla"
    )  # fmt: skip
    rooms = {name.split(".")[2] for name in found if name.count(".") >= 2}
    assert {"plugin", "request"} <= rooms <= set(allowed)


@pytest.mark.parametrize(
    ("device", "found"),
    [
        ("sim", {"class": "SimNPUPlatform", "ray": "NPU", "graphs": True}),
        ("none", {"class": "CpuPlatform", "ray": "", "graphs": False}),
    ],
)
def test_the_platform_is_there_if_it_is_asked_for(
    device: str, found: dict[str, Any], run_real: RunReal
) -> None:
    """Upstream's Ray executor refuses platforms without a key for Ray."""
    assert run_real(platform, env={"ASCEND_SHIMS_DEVICE": device}) == found
