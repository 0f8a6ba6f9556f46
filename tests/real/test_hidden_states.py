"""`extract_hidden_states` on the software NPU: what is dumped is what stock dumps."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ascend_shims.simnpu.trial import GRAPHS

RunReal = Callable[..., Any]

PROMPTS = [list(range(3 + i, 3 + i + n)) for i, n in enumerate((5, 33, 1, 70))]
TOKENS = 4
LAYERS = [1, 2]
HIDDEN = 128
DUMPING = {
    "speculative_config": {
        "method": "extract_hidden_states",
        "num_speculative_tokens": 1,
        "draft_model_config": {
            "hf_config": {"eagle_aux_hidden_state_layer_ids": LAYERS}
        },
    }
}
IN_PROCESS = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
ROOM = "vllm.v1.worker.gpu.spec_decode.extract_hidden_states"

pytestmark = pytest.mark.skipif(
    not find_spec("vllm") or not find_spec(ROOM),
    reason="MRV2 of this release dumps no hidden states",
)


def dumped(model: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Tokens, and the dump of every token in the order of its place in the cache."""
    import torch

    import ascend_shims
    from ascend_shims.simnpu.runtime import engine, generate

    llm = engine(model, **settings)
    tokens = generate(llm, PROMPTS, TOKENS)
    core = llm.llm_engine.engine_core.engine_core
    runner = core.model_executor.driver_worker.worker.model_runner
    layers = runner.vllm_config.compilation_config.static_forward_context.values()
    (cache,) = [one.kv_cache for one in layers if "CacheOnly" in type(one).__name__]
    rows = cache.reshape(-1, len(LAYERS) * HIDDEN)
    written = rows[rows.abs().sum(dim=1) > 0]
    state = ascend_shims.status().gaps
    return {
        "tokens": tokens,
        "dtype": str(cache.dtype),
        "rows": written.to(torch.float64).tolist(),
        "state": {gap.id: str(gap.state) for gap in state}["extract-hidden-states"],
        "speculator": type(runner.speculator).__name__,
    }


@pytest.fixture(scope="module")
def stock(model_gqa: Path, run_real: RunReal) -> dict[str, Any]:
    env = {**IN_PROCESS, "ASCEND_SHIMS_DEVICE": "none"}
    told: dict[str, Any] = run_real(dumped, model_gqa, DUMPING, env=env)
    # The last token of each is sampled and not run; of drafts some are run in vain.
    steps = sum(len(prompt) + TOKENS - 1 for prompt in PROMPTS)
    assert len(told["rows"]) >= steps
    assert told["state"] == "not-applicable"
    return told


@pytest.mark.parametrize("mode", ["eager", "graphs"])
def test_the_dump_is_stocks(
    mode: str, model_gqa: Path, stock: dict[str, Any], run_real: RunReal
) -> None:
    settings = {**(GRAPHS if mode == "graphs" else {}), **DUMPING}
    env = {**IN_PROCESS, "ASCEND_SHIMS_DEVICE": "sim"}
    seen = run_real(dumped, model_gqa, settings, env=env)
    rows, expected = np.array(seen.pop("rows")), np.array(stock["rows"])
    assert rows.shape == expected.shape
    # The fused operator sums in another order than upstream's for the CPU.
    assert np.abs(rows - expected).max() < 1e-4
    others = {key: value for key, value in stock.items() if key != "rows"}
    assert seen == {**others, "state": "applied"}
