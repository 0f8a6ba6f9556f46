"""Ranks that find different things act on the same step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from ascend_shims.guard import upstream
from ascend_shims.guard.protocol import GuardStopped
from ascend_shims.guard.ranks import Ranks

SCRIPT = Path(__file__).with_name("one_rank.py")


SCENARIOS = ("busy", "idle", "pipeline", "report")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What the two ranks saw of each scenario."""
    folder = tmp_path_factory.mktemp("ranks")
    ranks = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(rank), str(folder), *SCENARIOS],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        ended = [rank.communicate(timeout=120) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, 0], ended
    both = [json.loads(out) for out, _ in ended]
    return {name: [one[name] for one in both] for name in SCENARIOS}


@pytest.mark.parametrize("scenario", ["busy", "idle"])
def test_both_leave_before_the_same_step(told: Any, scenario: str) -> None:
    first, second = told[scenario]
    assert first["steps"] == second["steps"]
    # Rank 1 alone has seen the NaN of its third step, and both stop soon after.
    (line,) = second["lines"]
    assert (line["detector"], line["step"], line["request_id"]) == (
        "nonfinite-logits",
        3,
        "a",
    )
    assert first["lines"] == []
    assert 3 <= first["steps"] <= 6
    assert "another rank" in first["stopped"]
    assert "nonfinite-logits at step 3" in second["stopped"]


def test_a_pipeline_drains_and_no_stage_waits(told: Any) -> None:
    first, last = told["pipeline"]
    assert "another rank" in first["stopped"]
    assert "nonfinite-logits at step 3" in last["stopped"]
    # The first stage has run and sent the step that the last one leaves before.
    assert first["steps"] == last["steps"] + 1
    assert 3 <= last["steps"] <= 6


def test_a_report_alone_stops_nobody(told: Any) -> None:
    first, second = told["report"]
    assert first["stopped"] is second["stopped"] is None
    assert first["steps"] == second["steps"] == 12
    assert len(second["lines"]) == 1


class FakeGroup:
    """Takes the place of a group and of the reduction over it."""


class Board:
    """What all ranks' votes came to, decided by a test."""

    def __init__(self) -> None:
        self.cast: list[int] = []
        self.others = 0

    def all_reduce(self, flag: torch.Tensor, **options: Any) -> Any:
        assert options["async_op"]
        self.cast.append(int(flag))
        flag.fill_(max(int(flag), self.others))
        return self

    def wait(self) -> None:
        pass


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Board:
    board = Board()
    monkeypatch.setattr("torch.distributed.all_reduce", board.all_reduce)
    monkeypatch.setattr(upstream, "world_size", lambda: 2)
    return board


def voting(rig: Any, stages: int = 0) -> Any:
    guard = rig.guard({"nonfinite-logits": {"action": "stop"}})
    guard._ranks = lambda: Ranks(FakeGroup(), stages)
    return guard


def test_every_lockstep_step_votes_once_and_no_other(rig: Any, board: Board) -> None:
    runner = rig.runner(voting(rig))
    runner._dummy_run()  # profiling: a matter of each rank alone
    rig.step(runner, "_warmup_0_")
    assert board.cast == []
    rig.step(runner, "a")
    assert board.cast == [0]
    rig.step(runner, finished=["a"])  # nothing scheduled
    assert board.cast == [0]
    rig.idle(runner)
    assert board.cast == [0, 0]


def test_a_step_that_fails_has_voted(rig: Any, board: Board) -> None:
    runner = rig.runner(voting(rig), body=lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        rig.step(runner, "a")
    assert board.cast == [0]


def test_a_guard_that_fails_still_votes(rig: Any, board: Board) -> None:
    guard = voting(rig)
    runner = rig.runner(guard)
    rig.step(runner, "a")
    guard._measures.arrived = lambda: 1 / 0
    for _ in range(3):
        rig.step(runner, "a")
    assert board.cast == [0, 0, 0, 0]
    assert len(rig.lines()) == 1
    assert "off on this rank" in rig.lines()[0]["evidence"]["notice"]
    board.others = 1
    rig.step(runner, "a")
    with pytest.raises(GuardStopped):
        rig.step(runner, "a")


def test_a_detection_is_a_vote_and_is_acted_on_a_step_later(
    rig: Any, board: Board
) -> None:
    runner = rig.runner(voting(rig))
    rig.step(runner, "a")
    runner.hidden = lambda rows: torch.full((rows, 4), torch.nan)
    rig.step(runner, "a")
    rig.step(runner, "a")
    assert board.cast == [0, 0, 1]
    with pytest.raises(GuardStopped, match="step 2"):
        rig.step(runner, "a")
    assert board.cast == [0, 0, 1]


def test_a_stop_asked_for_while_running_needs_a_restart(rig: Any, board: Board) -> None:
    guard = rig.guard(["nonfinite-logits"])
    runner = rig.runner(guard, hidden=lambda rows: torch.full((rows, 4), torch.nan))
    guard._adopt(rig.settings({"nonfinite-logits": {"action": "stop"}}), step=0)
    for _ in range(3):
        rig.step(runner, "a")
    said, *found = rig.lines()
    assert "needs a restart" in said["evidence"]["notice"]
    assert [line["step"] for line in found] == [1, 2, 3]
    assert board.cast == []


def test_voting_goes_on_when_the_detector_is_switched_off(
    rig: Any, board: Board
) -> None:
    guard = voting(rig)
    runner = rig.runner(guard)
    guard._adopt(rig.settings([]), step=0)
    rig.step(runner, "a")
    assert board.cast == [0]
    board.others = 1
    rig.step(runner, "a")
    with pytest.raises(GuardStopped, match="another rank"):
        rig.step(runner, "a")


def test_an_earlier_stage_goes_on_until_the_later_ones_have_left(
    rig: Any, board: Board
) -> None:
    runner = rig.runner(voting(rig, stages=2))
    board.others = 1
    for _ in range(3):
        rig.step(runner, "a")
    assert board.cast == [0]
    with pytest.raises(GuardStopped):
        rig.step(runner, "a")
