"""`compile-key`: compiled code is kept apart by the gaps it was traced under.

What `torch.compile` made of a model lies in a cache whose key has upstream's hash of
the configuration in it, and that knows nothing of patches. Each gap that traced code
may meet folds its id and version into the hash while it is in force, so that an
artifact made with it is not found without it, nor after it was edited.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

__all__ = ["fold"]


def fold(
    gap: str,
    version: str,
    call: Callable[..., str],
    /,
    config: Any,
    *args: Any,
    **kwargs: Any,
) -> str:
    """Around `VllmConfig.compute_hash`: what lies beneath, and this gap."""
    beneath = call(config, *args, **kwargs)
    told = f"{beneath} {gap} {version}"
    return hashlib.sha256(told.encode()).hexdigest()[: len(beneath)]
