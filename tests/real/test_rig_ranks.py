"""Two ranks on the software NPU: collectives over gloo, in graphs too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ascend_shims.simnpu.trial import GRAPHS

RunReal = Callable[..., Any]

PROMPTS = [list(range(3 + i, 3 + i + n)) for i, n in enumerate((5, 17, 33, 9))]
TOKENS = 16


def tokens_of(model: str, settings: dict[str, Any]) -> list[list[int]]:
    from ascend_shims.simnpu.runtime import engine, generate

    return generate(engine(model, **settings), PROMPTS, TOKENS)


@pytest.mark.parametrize("mode", ["eager", "graphs"])
def test_two_ranks_give_the_tokens_of_one(
    mode: str, model_gqa: str, run_real: RunReal
) -> None:
    settings: dict[str, Any] = GRAPHS if mode == "graphs" else {}
    two = {"tensor_parallel_size": 2, "distributed_executor_backend": "mp"}
    one = run_real(tokens_of, model_gqa, {}, env={"ASCEND_SHIMS_DEVICE": "none"})
    seen = run_real(
        tokens_of,
        model_gqa,
        {**settings, **two},
        env={"ASCEND_SHIMS_DEVICE": "sim"},
        timeout=480,
    )
    assert [len(row) for row in one] == [TOKENS] * 4
    assert seen == one
