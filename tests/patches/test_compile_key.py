"""What the key of compiled code is made of."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.patches.compile_key import fold


def key(*folded: tuple[str, str], upstream: str = "0123456789") -> str:
    """The hash with these gaps and versions over it."""

    def stock(config: Any, include_version: bool = True) -> str:
        return upstream if include_version else upstream[::-1]

    made: Any = reduce(lambda call, one: partial(fold, *one, call), folded, stock)
    assert made(None) == made(None, True) == made(None, include_version=True)
    assert made(None, include_version=False) != made(None)
    return str(made(None))


gaps = st.lists(
    st.tuples(
        st.sampled_from(["cos-sin", "kv-cache", "npu-graph"]), st.text(max_size=3)
    ),
    max_size=3,
    unique_by=lambda one: one[0],
)


@given(a=gaps, b=gaps)
def test_one_key_for_one_set_of_versions(a: Any, b: Any) -> None:
    assert (key(*a) == key(*b)) is (a == b)
    assert key(*a, upstream="9876543210") != key(*a)


@given(folded=gaps)
def test_it_looks_like_upstreams(folded: Any) -> None:
    found = key(*folded)
    assert len(found) == 10
    assert not {*found} - {*"0123456789abcdef"}


def test_without_a_gap_it_is_upstreams() -> None:
    assert key() == "0123456789"
