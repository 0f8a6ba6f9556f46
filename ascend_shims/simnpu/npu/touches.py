"""What an operator reads and writes, told from its schema and from addresses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from . import trees
from .kernels import Overload

__all__ = ["Region", "Touch", "overlap", "touches"]

_aten = torch.ops.aten
_LOOKS_AT_SHAPE_ONLY = frozenset(
    {
        _aten.empty_like.default,
        _aten.new_empty.default,
        _aten.new_empty_strided.default,
        _aten.new_zeros.default,
        _aten.new_ones.default,
        _aten.new_full.default,
        _aten.zeros_like.default,
        _aten.ones_like.default,
        _aten.full_like.default,
        _aten.rand_like.default,
        _aten.randn_like.default,
    }
)


@dataclass(frozen=True, slots=True)
class Touch:
    """A tensor that is read, or written."""

    tensor: torch.Tensor
    writes: bool


def touches(
    func: Overload, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
) -> Iterator[Touch]:
    """What one call has read and written, after it ran."""
    if torch.Tag.inplace_view in func.tags:
        return
    given = list(_arguments(func, args, kwargs))
    known = {_storage(tensor) for tensor, _ in given}
    made = [tensor for tensor in _tensors(result) if _storage(tensor) not in known]
    returned = bool(_tensors(result))
    changes = any(written for _, written in given)
    if returned and not made and not changes:
        # A view, which looks at nothing.
        return
    for tensor, written in given:
        if written:
            yield Touch(tensor, True)
        elif func not in _LOOKS_AT_SHAPE_ONLY:
            yield Touch(tensor, False)
    for tensor in made:
        if not func._schema.name.startswith(("aten::empty", "aten::new_empty")):
            yield Touch(tensor, True)


def _arguments(
    func: Overload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Iterator[tuple[torch.Tensor, bool]]:
    for index, argument in enumerate(func._schema.arguments):
        value = args[index] if index < len(args) else kwargs.get(argument.name)
        info = argument.alias_info
        for tensor in _tensors(value):
            yield tensor, info is not None and info.is_write


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [
        tensor
        for tensor in trees.tensors(tree)
        if tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and tensor.numel()
    ]


def _storage(tensor: torch.Tensor) -> int:
    number: int = tensor.untyped_storage()._cdata
    return number


@dataclass(frozen=True, slots=True)
class Region:
    """The bytes of one tensor."""

    start: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    """In bytes."""
    item: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Region:
        item = tensor.element_size()
        return cls(
            tensor.data_ptr(),
            tuple(tensor.size()),
            tuple(step * item for step in tensor.stride()),
            item,
        )

    @property
    def end(self) -> int:
        if not all(self.size):
            return self.start
        reach = ((n - 1) * step for n, step in zip(self.size, self.stride, strict=True))
        return self.start + sum(reach) + self.item

    @property
    def is_solid(self) -> bool:
        """Without gaps between its elements."""
        return self.end - self.start == math.prod(self.size) * self.item

    def mark(self, first: int, length: int) -> torch.Tensor:
        """Which of `length` bytes from address `first` belong to it."""
        marks = torch.zeros(length, dtype=torch.bool)
        marks.as_strided(
            (*self.size, self.item), (*self.stride, 1), self.start - first
        ).fill_(True)
        return marks


def overlap(one: Region, other: Region) -> bool:
    """Whether two regions share a byte."""
    if one.end <= other.start or other.end <= one.start:
        return False
    if one.is_solid and other.is_solid:
        return True
    first = min(one.start, other.start)
    length = max(one.end, other.end) - first
    return bool((one.mark(first, length) & other.mark(first, length)).any())
