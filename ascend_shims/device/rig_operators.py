"""The rig's operators, as `operators.Operators`.

Its rope asks `tables` for the step's rows, which the gap `cos-sin` has written, and
its attention asks `graphs` for the parameters: both know their runner.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from .operators import update_backends

if TYPE_CHECKING:
    import torch

    from .graphs import GraphParams
    from .replays import Refresh

__all__ = ["refreshing", "set_cos_and_sin", "storing", "update_cos_sin"]


def set_cos_and_sin(runner: Any) -> None:
    """The tables of the gap are what operators read."""


def update_cos_sin(positions: torch.Tensor) -> None:
    """The tables of the gap are what operators read."""


def storing(params: GraphParams) -> AbstractContextManager[None]:  # noqa: ARG001
    return nullcontext()


def refreshing(
    graph: Any,  # noqa: ARG001
    refresh: Refresh,
    forward_context: Any,
    num_tokens: int,
) -> Callable[[], None]:
    return lambda: update_backends(refresh, forward_context, num_tokens)
