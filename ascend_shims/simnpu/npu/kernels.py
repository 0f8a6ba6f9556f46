"""Which operators are one kernel, and which are made of others.

A graph on the device holds kernels. An operator whose implementation is Python code
is no kernel: that code runs when the graph is captured, and what it calls is in the
graph; it does not run again at replay. So the recorder looks inside such operators,
except those that stand for a kernel of the device.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["Overload", "is_composite", "kernel", "redispatch"]

Overload = torch._ops.OpOverload[..., Any]
"""One overload of an operator."""

_NAMESPACES = frozenset({"aten", "prim", "prims", "c10d", "npu", "simnpu"})
"""Of operators that are never looked inside; `npu` is torch_npu's."""

_KEYS = ("CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)

_kernels: set[str] = set()


def kernel(name: str) -> None:
    """`namespace::operator`, all its overloads, stands for one kernel of the device."""
    _kernels.add(name)


def is_composite(func: Overload) -> bool:
    """Whether the recorder looks inside: Python code implements it here."""
    namespace = func.namespace
    if namespace in _NAMESPACES or func._schema.name in _kernels:
        return False
    # torch's own record of what was implemented from Python.
    known = torch.library._impls
    name = func._schema.name.partition("::")[2]
    if func._schema.overload_name:
        name = f"{name}.{func._schema.overload_name}"
    return any(f"{namespace}/{name}/{key}" in known for key in _KEYS)


def redispatch(func: Overload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a composite's own code, with the dispatch modes as they are."""
    return func.redispatch(_CPU, *args, **kwargs)
