"""The layers that compare ranks: what they tell is what lies in force."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ascend_shims
from ascend_shims.engine.contract import check_calls
from ascend_shims.patches import rank_agreement
from ascend_shims.patches.rank_agreement import agree, answer, answer_call
from ascend_shims.ranks.told import RankTold

from .one_rank import CARRIED

SCRIPT = Path(__file__).with_name("one_rank.py")
WORLD = 3


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What the ranks came to, by scenario."""
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        (folder / "port").write_text(str(free.getsockname()[1]))
    inherited = {k: v for k, v in os.environ.items() if "ASCEND_SHIMS" not in k}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(rank), str(WORLD), str(folder), *CARRIED],
            env={**inherited, "ASCEND_SHIMS_DEVICE": "sim"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(WORLD)
    ]
    try:
        ended = [rank.communicate(timeout=900) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0] * WORLD, ended
    every = [json.loads(out.splitlines()[-1]) for out, _ in ended]
    return {name: [one[name] for one in every] for name in CARRIED}


@pytest.mark.parametrize("store", ["file", "tcp"])
def test_ranks_that_carry_the_same_start(
    told: dict[str, list[str]], store: str
) -> None:
    assert told[store] == ["same"] * WORLD


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (
            "versions",
            "cos-sin is in force (v1) on ranks 0 and 2, and in force (v2) on rank 1",
        ),
        (
            "off",
            "cos-sin is in force (v1) on rank 0, and off (switched off by apply()) on "
            "ranks 1-2",
        ),
    ],
)
def test_every_rank_says_which_differ(
    told: dict[str, list[str]], scenario: str, said: str
) -> None:
    start = f"the ranks do not carry the same patches: {said}. Give every rank"
    assert [one.startswith(start) for one in told[scenario]] == [True] * WORLD


def test_a_rank_without_patches_is_named_and_not_waited_for(
    told: dict[str, list[str]],
) -> None:
    first, silent, last = told["silent"]
    assert silent == "same"
    assert first == last
    assert "patches: rank 1 told nothing for 10 s, so that no patch" in first


def test_it_can_be_switched_off(told: dict[str, list[str]]) -> None:
    assert told["not asked for"] == ["same"] * WORLD


# In one process -----------------------------------------------------------------------


class Upstream:
    """`init_distributed_environment` and a worker, counted."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def init(self, *args: Any, **kwargs: Any) -> str:
        self.calls.append((args, kwargs))
        return "joined"


def layered(function: Any, layer: Any, *gaps: str) -> Any:
    for gap in gaps:
        below = function

        def function(
            *args: Any, gap: str = gap, below: Any = below, **kwargs: Any
        ) -> Any:
            return layer(gap, f"v-{gap}", below, *args, **kwargs)

    return function


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What would have been compared."""
    found: list[dict[str, str]] = []
    monkeypatch.setattr(
        rank_agreement, "_compare", lambda report, versions: found.append(versions)
    )
    monkeypatch.delenv("ASCEND_SHIMS_RANKS", raising=False)
    return found


def test_the_topmost_layer_compares_once_for_all(
    compared: list[dict[str, str]],
) -> None:
    up = Upstream()
    init = layered(up.init, agree, "one", "two", "three")
    for _ in range(2):
        assert init(2, rank=1) == "joined"
    assert up.calls == [((2,), {"rank": 1})] * 2
    every = {f"{gap}": f"v-{gap}" for gap in ("three", "two", "one")}
    assert compared == [every, every]


def test_nothing_is_compared_where_upstream_fails(
    compared: list[dict[str, str]],
) -> None:
    def fails() -> None:
        raise ConnectionError("upstream's own")

    with pytest.raises(ConnectionError):
        layered(fails, agree, "one", "two")()
    layered(Upstream().init, agree, "one")()
    assert compared == [{"one": "v-one"}]


def test_a_rank_alone_has_nobody_to_compare_with() -> None:
    # No group at all: a store would be asked for otherwise.
    assert layered(Upstream().init, agree, "one")() == "joined"


@pytest.mark.parametrize(
    ("said", "seconds", "warned"),
    [("", 60.0, False), ("2.5", 2.5, False), ("-1", 0.0, False), ("soon", 60.0, True)],
)
def test_how_long_a_rank_waits(
    said: str,
    seconds: float,
    warned: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_RANKS_PATIENCE", said)
    assert rank_agreement._patience() == seconds
    assert ("soon is not a number of seconds" in caplog.text) is warned


def test_a_worker_answers_an_update_by_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    updates: list[dict[str, str]] = []

    def update(worker: Any, envs_list: list[dict[str, str]]) -> None:
        updates.append(envs_list[worker.rpc_rank])

    worker = SimpleNamespace(rpc_rank=1)
    asked = layered(update, answer, "cos-sin", "kv-cache")
    found = RankTold.from_text(1, asked(worker, [{}, {}]))
    versions = {gap.id: gap.version for gap in found.gaps if gap.version}
    assert versions == {"cos-sin": "v-cos-sin", "kv-cache": "v-kv-cache"}
    report = ascend_shims.status()
    assert found.plan == report.plan
    assert [gap.id for gap in found.gaps] == [gap.id for gap in report.gaps]
    # Whoever does update gets what upstream gives.
    assert asked(worker, [{}, {"A": "1"}]) is None
    assert updates == [{}, {"A": "1"}]


def run_method(obj: Any, method: Any, args: Any, kwargs: Any) -> Any:
    return getattr(obj, method)(*args, **kwargs)


@pytest.mark.parametrize("patched", [False, True], ids=["bypassed", "both"])
def test_it_answers_where_somebody_stands_before_the_method(patched: bool) -> None:
    """Ray's actors have methods that call upstream's function and not what is in its
    place."""

    def update(envs_list: list[dict[str, str]], *, _ray_trace_ctx: Any = None) -> None:
        return None

    worker = SimpleNamespace(rpc_rank=0, other=lambda word: word)
    worker.update_environment_variables = update
    if patched:
        method = layered(lambda worker, envs: None, answer, "cos-sin", "kv-cache")
        worker.update_environment_variables = partial(method, worker)
    run = layered(run_method, answer_call, "cos-sin", "kv-cache")
    told = run(worker, "update_environment_variables", ([{}],), {})
    found = RankTold.from_text(0, told)
    versions = {gap.id: gap.version for gap in found.gaps if gap.version}
    assert versions == {"cos-sin": "v-cos-sin", "kv-cache": "v-kv-cache"}
    assert run(worker, "update_environment_variables", ([{"A": "1"}],), {}) is None
    assert run(worker, "other", ("word",), {}) == "word"
    assert run(worker, "other", (), {"word": "keyword"}) == "keyword"


def test_a_start_within_a_call_compares(compared: list[dict[str, str]]) -> None:
    up = Upstream()
    init = layered(up.init, agree, "one")
    worker = SimpleNamespace(init_device=init)
    run = layered(run_method, answer_call, "one", "two")
    assert run(worker, "init_device", (), {}) == "joined"
    assert compared == [{"one": "v-one"}]


def test_ray_says_that_a_method_takes_one_more_keyword() -> None:
    def method(self: Any, envs_list: Any, *, _ray_trace_ctx: Any = None) -> None: ...

    bound = partial(answer, "cos-sin", "v1")
    check_calls(bound, method, skip=1, said="answer")
