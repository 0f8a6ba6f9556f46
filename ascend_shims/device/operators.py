"""Whose operators run on the device: the downstream plugin's, or the rig's.

Attention and rope operators read state that is kept for them: tables of cos and sin,
parameters of captured graphs. Where torch_npu imports, the operators are those of
vllm-ascend, and so is the state; else they are the rig's. Both are spoken to in the
same words.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, cast

from .npu import has_torch_npu

if TYPE_CHECKING:
    import torch

    from .graphs import GraphParams
    from .replays import Refresh

__all__ = ["Operators", "operators", "update_backends"]


class Operators(Protocol):
    """What patches ask of the state that operators read."""

    def set_cos_and_sin(self, runner: Any) -> None:
        """Room for the cos and sin of the runner's largest step; once is enough."""

    def update_cos_sin(self, positions: torch.Tensor) -> None:
        """Their rows for the positions of the step, `[tokens]` or `[axes, tokens]`."""

    def storing(self, params: GraphParams) -> AbstractContextManager[None]:
        """Operators that are captured or updated inside find `params`."""

    def refreshing(
        self, graph: Any, refresh: Refresh, forward_context: Any, num_tokens: int
    ) -> Callable[[], None]:
        """What tells the operators of `graph` the lengths of the step.

        Asked for before the graph is replayed, and called after.
        """


def operators() -> Operators:
    """Those of the device at hand.

    Raises `NoNpuError`, when something is asked of it, where torch_npu is installed
    and vllm-ascend is not.
    """
    name = "plugin_operators" if has_torch_npu() else "rig_operators"
    return cast("Operators", importlib.import_module(f"{__package__}.{name}"))


def update_backends(refresh: Refresh, forward_context: Any, num_tokens: int) -> None:
    """Have each attention backend update its operators of the graph that is replayed.

    Those without an update read their lengths from the device. Some have no
    implementation at all: they only build metadata.
    """
    for update in _updates(refresh.attn_groups):
        update(
            refresh.stream,
            forward_context,
            num_tokens,
            refresh.vllm_config,
            refresh.speculative_config,
            draft_attn_metadatas=refresh.draft_attn_metadatas,
        )


def _updates(attn_groups: Any) -> Iterator[Callable[..., None]]:
    """`update_graph_params` of each attention backend, each once."""
    found: dict[Any, None] = {}
    for group in (g for groups in attn_groups for g in groups):
        try:
            implementation = group.backend.get_impl_cls()
        except NotImplementedError:
            continue
        update = getattr(implementation, "update_graph_params", None)
        if update is not None:
            found[update] = None
    return iter(found)
