"""What the guard asks of upstream, with an answer also where upstream is silent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from .ranks import Ranks

if TYPE_CHECKING:
    from .detectors import Decode

__all__ = ["decoder", "is_warmup", "lockstep_ranks", "rank", "world_size"]


def rank() -> int:
    """This process among all, 0 where there is no other."""
    return dist.get_rank() if _distributed() else 0


def world_size() -> int:
    """How many processes there are, 1 where there is no other."""
    return dist.get_world_size() if _distributed() else 1


def _distributed() -> bool:
    return dist.is_available() and dist.is_initialized()


def lockstep_ranks() -> Ranks:
    """All ranks that run steps together: every tensor and pipeline rank and, for
    expert-parallel models, every data-parallel one. Dense data-parallel replicas
    are worlds of their own upstream."""
    from vllm.distributed.parallel_state import get_pp_group, get_world_group

    stages = get_pp_group()
    return Ranks(
        get_world_group().cpu_group, stages.world_size - stages.rank_in_group - 1
    )


def decoder(model_config: Any) -> Decode | None:
    """Text of token ids by the model's own tokenizer, None where it has none."""
    if model_config is None or getattr(model_config, "skip_tokenizer_init", False):
        return None
    from vllm.tokenizers import cached_tokenizer_from_config

    tokenizer = cached_tokenizer_from_config(model_config)

    def decode(tokens: Sequence[int]) -> str:
        return str(tokenizer.decode(list(tokens)))

    return decode


def is_warmup(scheduled: Any) -> bool:
    """Whether upstream made this step up to warm its kernels.

    Its requests (`vllm.v1.worker.gpu.warmup`) are named `_warmup_0_` or
    `_v2_mixed_warmup_decode_`; the engine's names end in letters or digits.
    """
    for request_id in scheduled.num_scheduled_tokens or scheduled.finished_req_ids:
        return (
            request_id[-1:] == "_" and request_id[0] == "_" and "_warmup_" in request_id
        )
    return False
