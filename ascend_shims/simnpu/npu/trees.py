"""Tensors within arguments and results.

They lie in lists, tuples and dictionaries, and Triton takes them wrapped: as tensor
descriptors, or reinterpreted as another type.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

__all__ = ["mapped", "tensors"]


def tensors(tree: Any) -> list[torch.Tensor]:
    """All tensors in `tree`, in their order."""
    held = map(_held, pytree.tree_leaves(tree))
    return [tensor for tensor in held if tensor is not None]


def mapped(tree: Any, replace: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """`tree` anew, with the tensors in it replaced; whatever else is in it is kept."""

    def leaf(value: Any) -> Any:
        tensor = _held(value)
        if tensor is None:
            return value
        if tensor is value:
            return replace(tensor)
        wrapper = copy.copy(value)
        wrapper.base = replace(tensor)
        return wrapper

    return pytree.tree_map(leaf, tree)


def _held(leaf: Any) -> torch.Tensor | None:
    if isinstance(leaf, torch.Tensor):
        return leaf
    base = getattr(leaf, "base", None)
    return base if isinstance(base, torch.Tensor) else None
