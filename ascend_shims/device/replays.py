"""Replaying a FULL graph with the lengths of the step at hand.

The same for a target's graphs and a draft's: the replay is launched first and waits,
before each attention operator, for the update of that operator on the update stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import torch

from . import graphs
from .npu import npu
from .operators import operators

__all__ = ["Refresh", "replay", "update_stream"]


class Refresh(msgspec.Struct, frozen=True):
    """What a graph's attention parameters are updated with."""

    params: graphs.GraphParams
    stream: Any
    attn_groups: Any
    """Attention groups of the runner or speculator, a list for each KV cache group."""
    vllm_config: Any
    speculative_config: Any
    attn_metadata: dict[str, Any] | None
    """Metadata of the step, by layer; for a draft those of its first pass."""
    draft_attn_metadatas: Sequence[dict[str, Any]] | None = None
    """For a draft: one dictionary a pass that the graph makes."""


def update_stream(runner: Any) -> Any:
    """The stream on which the runner and its speculator update their graphs."""
    stream = getattr(runner, "update_stream", None)
    if stream is None:
        stream = runner.update_stream = npu().Stream()
    return stream


def replay(call: Callable[..., Any], manager: Any, desc: Any, refresh: Refresh) -> Any:
    """`call(manager, desc)`, upstream's `run_fullgraph`, and the update beside it."""
    graph = manager.graphs.get(desc)
    with (
        graphs.using(refresh.params, graph),
        _forward_context(refresh, desc.num_tokens) as context,
    ):
        update = operators().refreshing(graph, refresh, context, desc.num_tokens)
        output = call(manager, desc)
        update()
    return output


@contextmanager
def _forward_context(refresh: Refresh, num_tokens: int) -> Iterator[Any]:
    from vllm.config.compilation import CUDAGraphMode
    from vllm.forward_context import get_forward_context, set_forward_context

    # All ranks replay graphs of one size, so nothing has to be asked of the others.
    size = refresh.vllm_config.parallel_config.data_parallel_size
    across = torch.full((size,), num_tokens, dtype=torch.int32) if size > 1 else None
    with set_forward_context(
        refresh.attn_metadata,
        refresh.vllm_config,
        num_tokens=num_tokens,
        num_tokens_across_dp=across,
        cudagraph_runtime_mode=CUDAGraphMode.FULL,
    ):
        yield get_forward_context()
