from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NamedTuple

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.simnpu.npu import trees


class Pair(NamedTuple):
    left: Any
    right: Any


def wrapped(tensor: torch.Tensor) -> SimpleNamespace:
    """As Triton's descriptors carry a tensor."""
    return SimpleNamespace(base=tensor, block=[4])


LEAVES = st.one_of(
    st.integers(),
    st.none(),
    st.text(max_size=2),
    st.builds(lambda: torch.zeros(1)),
    st.builds(lambda: wrapped(torch.zeros(1))),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.tuples(inner, inner).map(lambda two: Pair(*two)),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    ),
    max_leaves=8,
)


def walked(tree: Any) -> list[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, SimpleNamespace):
        return [tree.base]
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list | tuple):
        return [tensor for one in tree for tensor in walked(one)]
    return []


def shape(tree: Any) -> Any:
    """The tree with tensors told by their value."""
    if isinstance(tree, torch.Tensor):
        return ("tensor", tree.item())
    if isinstance(tree, SimpleNamespace):
        return ("wrapped", tree.base.item(), tree.block)
    if isinstance(tree, dict):
        return {name: shape(one) for name, one in tree.items()}
    if isinstance(tree, list | tuple):
        return (type(tree), [shape(one) for one in tree])
    return tree


@settings(deadline=None)
@given(TREES)
def test_tensors_are_found_in_order_and_replaced_where_they_are(tree: Any) -> None:
    found = walked(tree)
    assert list(map(id, trees.tensors(tree))) == list(map(id, found))
    before = shape(tree)
    numbers = iter(range(1, 100))
    other = trees.mapped(tree, lambda _: torch.full((1,), float(next(numbers))))
    values = [tensor.item() for tensor in trees.tensors(other)]
    assert values == [float(n) for n in range(1, len(found) + 1)]
    assert shape(tree) == before
    assert shape(trees.mapped(other, torch.zeros_like)) == before
