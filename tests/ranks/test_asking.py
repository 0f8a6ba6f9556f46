"""`check_ranks`: over `collective_rpc`, of whatever has one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

import ascend_shims
from ascend_shims import process
from ascend_shims.ranks.asking import NotAnEngineError
from ascend_shims.ranks.compare import Ranks, RanksDifferError
from ascend_shims.ranks.told import GapTold, RankTold
from ascend_shims.states import State


class Engine:
    """Answers like vLLM's: each rank in its turn, None where upstream itself does."""

    def __init__(self, *answers: RankTold | None, nested: bool = False) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._answers = [one and one.as_text() for one in answers]
        config = SimpleNamespace(
            parallel_config=SimpleNamespace(world_size=len(answers))
        )
        if nested:
            self.llm_engine = SimpleNamespace(vllm_config=config)
        else:
            self.vllm_config = config

    def collective_rpc(
        self,
        method: str,
        timeout: float | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.calls.append((method, timeout, args, kwargs))
        return self._answers


class AsyncEngine(Engine):
    async def collective_rpc(self, *args: Any, **kwargs: Any) -> Any:
        return super().collective_rpc(*args, **kwargs)


def told(state: State = State.APPLIED, version: str | None = "v1") -> RankTold:
    return RankTold(7, "p1", "here", (GapTold("one", state, "a test", version),))


@pytest.mark.parametrize("nested", [False, True], ids=["executor", "LLM"])
def test_ranks_that_agree_are_a_value(nested: bool) -> None:
    engine = Engine(told(), told(), nested=nested)
    ranks = ascend_shims.check_ranks(engine, timeout=5)
    assert isinstance(ranks, Ranks)
    # The place of an answer says whose it is.
    assert [one.rank for one in ranks.ranks] == [0, 1]
    assert ranks.digests == ("p1", "p1")
    assert ranks.ranks[1].gaps[0].version == "v1"
    # An update by nothing: upstream does nothing with it on any rank.
    asked = ("update_environment_variables", 5, ([{}, {}],), None)
    assert engine.calls == [asked]


def test_ranks_that_differ_are_an_error() -> None:
    with pytest.raises(RanksDifferError, match="one is in force") as caught:
        ascend_shims.check_ranks(Engine(told(), told(State.REVERTED, None)))
    assert caught.value.gaps == ("one",)


def test_a_rank_without_patches_is_an_error() -> None:
    with pytest.raises(RanksDifferError, match="rank 1 told nothing") as caught:
        ascend_shims.check_ranks(Engine(told(), None, told()))
    assert caught.value.silent == (1,)


def test_an_engine_without_patches_has_none_to_compare() -> None:
    ranks = ascend_shims.check_ranks(Engine(None, None))
    assert isinstance(ranks, Ranks)
    assert ranks.digests == (None, None)


def test_patches_that_reached_no_rank_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process.Process, "wants_some", True)
    with pytest.raises(RanksDifferError, match="ranks 0-1 told nothing"):
        ascend_shims.check_ranks(Engine(None, None))


def test_an_asynchronous_engine_is_awaited() -> None:
    async def check(engine: Any) -> Ranks:
        return await ascend_shims.check_ranks(engine)  # type: ignore[misc]

    assert asyncio.run(check(AsyncEngine(told(), told()))).plan == "p1"
    with pytest.raises(RanksDifferError, match="rank 0 told nothing"):
        asyncio.run(check(AsyncEngine(None, told())))


@pytest.mark.parametrize("thing", [None, object(), SimpleNamespace(vllm_config=None)])
def test_what_is_no_engine_is_refused(thing: object) -> None:
    with pytest.raises(NotAnEngineError, match=r"takes a vllm\.LLM"):
        ascend_shims.check_ranks(thing)
