"""A look at the logits that the sampler reads, for the time of one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

__all__ = ["tapped"]

_NAME = "compute_logits"
_ABSENT = object()


@contextmanager
def tapped(
    runner: Any, state: Any, see: Callable[[torch.Tensor], None]
) -> Iterator[None]:
    """Within the block, `see` gets the result of the first `compute_logits` of the
    runner's model. Later calls are for prompt logprobs and are left alone.

    The model is as before afterwards. Where it computes no logits there is
    nothing to see: earlier pipeline stages, and sampling in shards, where each
    rank computes part of the vocabulary for requests in another order.
    """
    model = getattr(runner, "model", None)
    namespace: dict[str, Any] | None = getattr(model, "__dict__", None)
    sharded = getattr(runner, "batch_sharder", None) is not None
    earlier = getattr(state, "hidden_states", None) is None
    if sharded or earlier or namespace is None or not hasattr(model, _NAME):
        yield
        return
    # Written to the namespace itself: a module's own attribute hooks have no
    # say in something that is taken back.
    before = namespace.get(_NAME, _ABSENT)
    compute = getattr(model, _NAME)
    seen = False

    def compute_logits(*args: Any, **kwargs: Any) -> Any:
        nonlocal seen
        logits = compute(*args, **kwargs)
        if not seen:
            seen = True
            if isinstance(logits, torch.Tensor):
                see(logits)
        return logits

    namespace[_NAME] = compute_logits
    try:
        yield
    finally:
        # Somebody who has put their own there in the meantime keeps it.
        if namespace.get(_NAME) is compute_logits:
            if before is _ABSENT:
                del namespace[_NAME]
            else:
                namespace[_NAME] = before
