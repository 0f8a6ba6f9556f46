"""vllm-ascend's operators, as `operators.Operators`.

Their state is the process's, not a runner's. Tables of cos and sin are those of the
first runner that sets them, and rows those of the latest update: a second runner, or a
draft that rotates by other tables, shares them. Parameters of graphs have a store for
the target and two for drafts; here each graph manager has its own, and takes the place
of all three while it captures or replays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .npu import npu, plugin_module
from .operators import update_backends

if TYPE_CHECKING:
    import torch

    from .graphs import GraphParams
    from .replays import Refresh

__all__ = ["refreshing", "set_cos_and_sin", "storing", "update_cos_sin"]

_STORES = ("_graph_params", "_draft_graph_params", "_draft_graph_prefill_params")
"""What `get_graph_params` and its two likes return: operators ask one of them."""


def set_cos_and_sin(runner: Any) -> None:
    plugin_module("ops.rotary_embedding").set_cos_and_sin(
        runner.vllm_config,
        runner.max_num_reqs,
        runner.num_speculative_steps + 1,
        runner.dtype,
        runner.device,
    )


def update_cos_sin(positions: torch.Tensor) -> None:
    plugin_module("ops.rotary_embedding").update_cos_sin(positions)


@contextmanager
def storing(params: GraphParams) -> Iterator[None]:
    module = plugin_module("compilation.acl_graph")
    found = {name: getattr(module, name) for name in _STORES}
    try:
        for name in _STORES:
            setattr(module, name, params)
        yield
    finally:
        for name, store in found.items():
            setattr(module, name, store)


def refreshing(
    graph: Any, refresh: Refresh, forward_context: Any, num_tokens: int
) -> Callable[[], None]:
    """From 0.29.0rc1 on a graph may keep its operators by itself, and be told the
    metadata; else an attention implementation knows them, as before."""
    resolve = getattr(graph, "resolve_tasks", None)
    drafts = refresh.draft_attn_metadatas
    refresh.stream.wait_stream(npu().current_stream())
    if resolve is not None:
        metadata = [refresh.attn_metadata] if drafts is None else drafts
        tasks = resolve(_Passes(metadata))
        return lambda: graph.update(refresh.stream, tasks)

    def update() -> None:
        from vllm.config import set_current_vllm_config

        with set_current_vllm_config(refresh.vllm_config):
            if drafts is not None:
                plugin_module("ascend_forward_context")._EXTRA_CTX.is_draft_model = True
            update_backends(refresh, forward_context, num_tokens)

    return update


class _Passes:
    """Where a graph finds what each of its operators is told, pass by pass."""

    def __init__(self, metadata: Sequence[Any]) -> None:
        self._metadata = metadata

    def get(self, provider: Any) -> Sequence[Any]:
        return [provider.resolve(one) for one in self._metadata]
