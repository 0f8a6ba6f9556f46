"""Ranks that meet at a store come to one answer, and none waits for ever."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.ranks import meeting
from ascend_shims.ranks.compare import RanksDifferError, numbers
from ascend_shims.ranks.meeting import MeetingError, meet
from ascend_shims.ranks.told import GapTold, RankTold
from ascend_shims.states import State

from .stores import MemoryStore

LONG = 60.0
"""More than any test takes: who waits that long was not told."""


def told(rank: int, carries: str | None) -> RankTold:
    """A rank with the gap `one` of a version, or with it off."""
    state = State.OFF if carries is None else State.APPLIED
    return RankTold(rank, "p1", "", (GapTold("one", state, "a test", carries),))


def outcomes(
    store: MemoryStore, carried: dict[int, str | None], world: int, patience: float
) -> dict[int, str]:
    """What the ranks of `carried` come to, each in a thread."""

    def run(rank: int) -> str:
        try:
            meet(store, world, told(rank, carried[rank]), patience)
        except RanksDifferError as error:
            return str(error)
        return "same"

    with ThreadPoolExecutor(world) as pool:
        return dict(zip(carried, pool.map(run, carried), strict=True))


def test_ranks_that_carry_the_same_go_on() -> None:
    store = MemoryStore()
    for _ in range(3):  # engine after engine, at one store
        assert outcomes(store, dict.fromkeys(range(4), "v1"), 4, LONG) == dict.fromkeys(
            range(4), "same"
        )


def test_every_rank_says_who_differs() -> None:
    found = outcomes(MemoryStore(), {0: "v1", 1: None, 2: "v1"}, 3, LONG)
    (said,) = set(found.values())
    assert "one is in force (v1) on ranks 0 and 2, and off (a test) on rank 1" in said


def test_an_earlier_meeting_is_not_taken_for_this_one() -> None:
    store = MemoryStore()
    outcomes(store, {0: "v1", 1: None}, 2, LONG)
    assert outcomes(store, {0: "v1", 1: "v1"}, 2, LONG) == {0: "same", 1: "same"}


def test_a_rank_that_says_nothing_is_named_in_time() -> None:
    found = outcomes(MemoryStore(), {0: "v1", 2: "v1"}, 3, 0.2)
    (said,) = set(found.values())
    assert "patches: rank 1 told nothing for 0.2 s, so that no patch" in said


def test_a_late_rank_is_waited_for() -> None:
    store = MemoryStore()
    first_reads = threading.Event()
    wait = store.wait

    def waiting(*args: object) -> None:
        first_reads.set()
        wait(*args)  # type: ignore[arg-type]

    store.wait = waiting  # type: ignore[method-assign]

    def late() -> None:
        assert first_reads.wait(LONG)
        meet(store, 2, told(1, "v1"), LONG)

    with ThreadPoolExecutor(2) as pool:
        second = pool.submit(late)
        pool.submit(meet, store, 2, told(0, "v1"), LONG).result(LONG)
        second.result(LONG)


def test_who_holds_the_store_stays_until_others_have_read() -> None:
    """Rank 0 takes the store along when it leaves; rank 1 is to know why all the
    same."""
    store = MemoryStore()
    found: dict[int, BaseException] = {}

    def run(rank: int) -> None:
        try:
            meet(store, 2, told(rank, "v1" if rank else None), LONG)
        except Exception as error:  # noqa: BLE001 - looked at below
            found[rank] = error
        if rank == 0:
            store.close()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, [0, 1]))
    assert {type(error) for error in found.values()} == {RanksDifferError}
    assert len(found) == 2


def test_nobody_stays_long_for_one_that_cannot_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(meeting, "_FAREWELL", 0.1)
    store = MemoryStore()
    # Rank 1 tells and is gone before it has read.
    store.set("ascend_shims/ranks/1/1", told(1, None).as_text())
    with pytest.raises(RanksDifferError, match="off"):
        meet(store, 2, told(0, "v1"), LONG)


def test_a_store_that_is_gone_is_no_riddle() -> None:
    store = MemoryStore()
    store.close()
    with pytest.raises(MeetingError, match="connection reset") as caught:
        meet(store, 2, told(0, "v1"), LONG)
    assert "ASCEND_SHIMS_RANKS=off" in str(caught.value)


def test_a_store_that_goes_meanwhile() -> None:
    store = MemoryStore()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(meet, store, 2, told(0, "v1"), LONG)
        while not store.check(["ascend_shims/ranks/0/1"]):
            pass
        store.close()
        with pytest.raises(MeetingError):
            waiting.result(LONG)


@settings(max_examples=20, deadline=None)
@given(
    carried=st.dictionaries(
        st.integers(0, 3), st.sampled_from(["v1", "v2", None]), min_size=1, max_size=4
    )
)
def test_all_come_to_one_answer(carried: dict[int, str | None]) -> None:
    found = outcomes(MemoryStore(), carried, 4, LONG if len(carried) == 4 else 0.05)
    (said,) = set(found.values())
    same = len(carried) == 4 and len(set(carried.values())) == 1
    assert (said == "same") is same
    silent = sorted({*range(4)} - {*carried})
    assert (f"{numbers(silent)} told nothing" in said) if silent else True


def test_what_goes_over_the_store_is_plain_text() -> None:
    assert json.loads(told(0, "v1").as_text())["gaps"][0]["state"] == "applied"
