"""Asking the ranks of a running engine what they carry.

By a call that changes nothing upstream: to update its environment by nothing. A rank
without patches answers it with nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Sequence
from typing import Any

from ..errors import ConfigurationError
from .compare import Ranks, compared
from .told import RankTold

__all__ = ["NotAnEngineError", "ask"]

_METHOD = "update_environment_variables"


class NotAnEngineError(ConfigurationError):
    """Something was given whose ranks cannot be asked."""


def ask(
    engine: Any, timeout: float | None, *, expected: bool
) -> Ranks | Awaitable[Ranks]:
    """What the ranks of `engine` carry; for an asynchronous one, once awaited.

    `expected`: this process wants gaps, which should be in force there.
    """
    world_size = _world_size(engine)
    answers = engine.collective_rpc(
        _METHOD, timeout=timeout, args=([{} for _ in range(world_size)],)
    )
    if inspect.isawaitable(answers):
        return _awaited(answers, expected)
    return _judged(answers, expected)


async def _awaited(answers: Awaitable[Any], expected: bool) -> Ranks:
    return _judged(await answers, expected)


def _judged(answers: Sequence[str | None], expected: bool) -> Ranks:
    told = [
        RankTold(rank) if answer is None else RankTold.from_text(rank, answer)
        for rank, answer in enumerate(answers)
    ]
    return compared(
        told,
        silent="told nothing, so that no patch of ours is in force there (the plugin "
        "was not loaded, ASCEND_SHIMS=off, or they were taken back)",
        expected=expected,
    )


def _world_size(engine: Any) -> int:
    for owner in (engine, getattr(engine, "llm_engine", None)):
        parallel = getattr(getattr(owner, "vllm_config", None), "parallel_config", None)
        if parallel is not None and hasattr(engine, "collective_rpc"):
            return int(parallel.world_size)
    raise NotAnEngineError(
        "check_ranks() takes a vllm.LLM, an LLMEngine, an AsyncLLM (then await the "
        f"result) or an executor, not {type(engine).__name__}"
    )
