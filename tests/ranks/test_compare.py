"""What ranks tell each other, and what comes of it."""

from __future__ import annotations

import os
import pickle
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.ranks.compare import RanksDifferError, compared, numbers
from ascend_shims.ranks.told import GapTold, RankTold, tell
from ascend_shims.states import State
from ascend_shims.switches import read_switches

OFF = "switched off by ASCEND_SHIMS_DISABLE"
SILENT = "told nothing"


def gap(state: str = "applied", version: str | None = "v1", **fields: Any) -> GapTold:
    made = {"id": "one", "reason": OFF, **fields}
    return GapTold(state=State(state), version=version, **made)


def rank(number: int, *gaps: GapTold, plan: str | None = "p1") -> RankTold:
    return RankTold(number, plan, f"process {number}", gaps)


SAME = [
    [gap(), gap()],
    [gap("pending"), gap("applied"), gap("partial")],
    [gap("off", None), gap("reverted", None), gap("not-applicable", None)],
    [gap("provided", None), gap("provided", None)],
    [gap("failed", None), gap("failed", None, reason="another one")],
]


@pytest.mark.parametrize("gaps", SAME, ids=lambda gaps: gaps[0].state.value)
def test_what_is_the_same_passes(gaps: list[GapTold]) -> None:
    told = [rank(number, one) for number, one in enumerate(gaps)]
    ranks = compared(told, silent=SILENT)
    assert ranks.ranks == tuple(told)
    assert ranks.plan == "p1"
    assert ranks.digests == ("p1",) * len(told)


DIFFERENT = [
    (
        [gap(), gap("off", None)],
        f"one is in force (v1) on rank 0, and off ({OFF}) on rank 1",
    ),
    (
        [gap("off", None), gap(), gap()],
        f"one is off ({OFF}) on rank 0, and in force (v1) on ranks 1-2",
    ),
    (
        [gap(), gap(version="v2"), gap()],
        "one is in force (v1) on ranks 0 and 2, and in force (v2) on rank 1",
    ),
    (
        [gap(), gap("failed", None, reason="ValueError: 3")],
        "one is in force (v1) on rank 0, and failed (ValueError: 3) on rank 1",
    ),
    (
        [gap(), gap("provided", None, reason="the plugin")],
        "one is in force (v1) on rank 0, and provided (the plugin) on rank 1",
    ),
    # A layer is what counts, whatever the state says.
    (
        [gap(), gap("applied", None, reason="vllm 0.32.0")],
        "one is in force (v1) on rank 0, and not in force (vllm 0.32.0) on rank 1",
    ),
    (
        [gap(), gap(id="two")],
        "one is in force (v1) on rank 0, and not in the registry on rank 1; "
        "two is not in the registry on rank 0, and in force (v1) on rank 1",
    ),
]


@pytest.mark.parametrize(("gaps", "said"), DIFFERENT, ids=[row[1] for row in DIFFERENT])
def test_what_differs_is_named(gaps: list[GapTold], said: str) -> None:
    told = [rank(number, one) for number, one in enumerate(gaps)]
    with pytest.raises(RanksDifferError) as caught:
        compared(told, silent=SILENT)
    start = f"the ranks do not carry the same patches: {said}. Give every rank"
    assert str(caught.value).startswith(start)
    assert caught.value.gaps[0] == "one"
    assert caught.value.silent == ()


def test_plans_of_other_releases_differ() -> None:
    with pytest.raises(RanksDifferError) as caught:
        compared([rank(0, gap()), rank(1, gap(), plan="p2")], silent=SILENT)
    assert "the plan is p1 on rank 0, and p2 on rank 1" in str(caught.value)
    assert caught.value.gaps == ()


def test_a_rank_without_patches_is_named() -> None:
    told = [rank(0, gap()), RankTold(1), rank(2, gap()), RankTold(3)]
    with pytest.raises(RanksDifferError) as caught:
        compared(told, silent=SILENT)
    assert "patches: ranks 1 and 3 told nothing. Give" in str(caught.value)
    assert caught.value.silent == (1, 3)


def test_an_error_reaches_another_process_whole() -> None:
    with pytest.raises(RanksDifferError) as caught:
        compared([rank(0, gap()), rank(1, gap(version="v2")), RankTold(2)], silent="")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert (again.gaps, again.silent) == (("one",), (2,))
    assert again.differences == caught.value.differences


def test_ranks_without_patches_agree() -> None:
    ranks = compared([RankTold(0), RankTold(1)], silent=SILENT)
    assert ranks.plan is None
    assert ranks.digests == (None, None)


def test_what_a_process_tells_of_itself() -> None:
    states = [("one", State.APPLIED, "vllm 0.32.0"), ("two", State.OFF, OFF)]
    told = tell(3, "p1", states, {"one": "v1"})
    assert told.where == f"process {os.getpid()} on {socket.gethostname()}"
    assert (told.rank, told.plan) == (3, "p1")
    assert told.gaps == (
        GapTold("one", State.APPLIED, "vllm 0.32.0", "v1"),
        GapTold("two", State.OFF, OFF, None),
    )


gaps = st.builds(
    GapTold,
    id=st.sampled_from(["one", "two", "three"]),
    state=st.sampled_from(State),
    reason=st.text(max_size=9),
    version=st.none() | st.sampled_from(["v1", "v2"]),
)
ranks = st.builds(
    RankTold,
    rank=st.integers(0, 99),
    plan=st.sampled_from(["p1", "p2"]),
    where=st.text(max_size=9),
    gaps=st.lists(gaps, max_size=3, unique_by=lambda one: one.id).map(tuple),
)


@given(told=ranks)
def test_text_says_the_same(told: RankTold) -> None:
    assert RankTold.from_text(told.rank, told.as_text()) == told


@given(told=st.lists(ranks, min_size=1, max_size=4, unique_by=lambda one: one.rank))
def test_it_does_not_matter_who_is_asked_first(told: list[RankTold]) -> None:
    def outcome(order: list[RankTold]) -> object:
        try:
            compared(order, silent=SILENT)
        except RanksDifferError as error:
            return {one.gap for one in error.differences}
        return "same"

    assert outcome(told) == outcome(told[::-1])
    alike = [RankTold(n, told[0].plan, "", told[0].gaps) for n in range(3)]
    assert outcome(alike) == "same"


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([4], "rank 4"),
        ([1, 0], "ranks 0-1"),
        ([0, 2], "ranks 0 and 2"),
        ([0, 1, 2, 5, 7, 8], "ranks 0-2, 5 and 7-8"),
    ],
)
def test_ranks_in_words(ranks: list[int], said: str) -> None:
    assert numbers(ranks) == said


def test_its_variables_are_known() -> None:
    said = {"ASCEND_SHIMS_RANKS": "off", "ASCEND_SHIMS_RANKS_PATIENCE": "5"}
    assert read_switches(said).complaints == ()
