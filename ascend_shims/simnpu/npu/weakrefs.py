"""Tensors that refer to the memory of others without holding it."""

from __future__ import annotations

from typing import Any

import torch

from .memory import device_memory, on_storage
from .modes import quiet

__all__ = ["weak_ref_tensor", "weak_ref_tensors"]


def weak_ref_tensor(tensor: Any) -> Any:
    """A tensor on the same memory that does not keep the pool from reusing it.

    What is no tensor is returned as it is. Memory that this package did not hand out
    is kept alive: on a device it would dangle.
    """
    if not isinstance(tensor, torch.Tensor):
        return tensor
    # Usable inside inference mode and outside.
    with torch.inference_mode(False), quiet():
        lease = device_memory().lease_of(tensor)
        return lease.alias(tensor) if lease is not None else on_storage(tensor, tensor)


def weak_ref_tensors(tensors: Any) -> Any:
    """`weak_ref_tensor` for each tensor in lists, tuples, dictionaries.

    Also for vLLM's `IntermediateTensors`, which carries a dictionary `tensors`.
    Raises `TypeError` for anything else.
    """
    if isinstance(tensors, torch.Tensor):
        return weak_ref_tensor(tensors)
    if isinstance(tensors, list | tuple):
        made = [weak_ref_tensor(tensor) for tensor in tensors]
        return tuple(made) if isinstance(tensors, tuple) else made
    if isinstance(tensors, dict):
        return {name: weak_ref_tensor(tensor) for name, tensor in tensors.items()}
    if isinstance(getattr(tensors, "tensors", None), dict):
        return type(tensors)(weak_ref_tensors(tensors.tensors))
    raise TypeError(
        f"weak_ref_tensors takes a tensor, a list, a tuple or a dictionary of them, "
        f"not {type(tensors).__name__}"
    )
