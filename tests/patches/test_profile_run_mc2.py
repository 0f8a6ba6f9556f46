"""profile-run-mc2 on plain objects: which dummy runs come, and under what.

That upstream's own profile run takes it is in `tests/real/test_profile_run_mc2.py`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.device import moe as device
from ascend_shims.device.npu import NoNpuError
from ascend_shims.patches import profile_run_mc2
from ascend_shims.simnpu import moe as rig
from ascend_shims.simnpu import npu

REAL = SimpleNamespace(__name__="torch_npu.npu")


class Device:
    """What is asked of a device, and whether it balances at the moment."""

    def __init__(self, capacity: int | None) -> None:
        self.capacity = capacity
        self.depth = 0

    def mc2_tokens(self, vllm_config: Any) -> int | None:
        return self.capacity

    @contextmanager
    def balanced(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1


class Runner:
    """Of upstream's runner: a profile run is one dummy run of all tokens."""

    def __init__(self, device: Device, max_num_tokens: int = 256) -> None:
        self.device = device
        self.max_num_tokens = max_num_tokens
        self.vllm_config = object()
        self.model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU())
        self.speculator: Any = None
        self.runs: list[dict[str, Any]] = []
        self.fails: dict[int, Exception] = {}
        self.within: Any = None
        """Called in the midst of the standard run, once."""

    def _dummy_run(self, num_tokens: int, **options: Any) -> Any:
        modules = [*self.model, *getattr(self.speculator, "model", ())]
        compiled = [getattr(m, "do_not_compile", None) for m in modules]
        self.runs.append(
            {
                "tokens": num_tokens,
                "balanced": self.device.depth > 0,
                "compiled": compiled,
                **options,
            }
        )
        if num_tokens in self.fails:
            raise self.fails[num_tokens]
        return torch.zeros(num_tokens), torch.zeros(1)

    def upstream(self, randomize_inputs: bool = False) -> str:
        self._dummy_run(
            self.max_num_tokens,
            skip_attn=True,
            is_profile=True,
            randomize_inputs=randomize_inputs,
        )
        if self.within is not None:
            within, self.within = self.within, None
            within()
        return "profiled"

    def profile_run(self, *args: Any, **kwargs: Any) -> Any:
        return profile_run_mc2.reserve_buffers(Runner.upstream, self, *args, **kwargs)

    @property
    def tokens(self) -> list[int]:
        return [run["tokens"] for run in self.runs]


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    return made(monkeypatch, 32)


def made(monkeypatch: pytest.MonkeyPatch, capacity: int | None) -> Runner:
    asked = Device(capacity)
    monkeypatch.setattr(profile_run_mc2, "moe", lambda: asked)
    return Runner(asked)


def test_a_run_of_the_capacity_comes_first(runner: Runner) -> None:
    assert runner.profile_run() == "profiled"
    first, second = runner.runs
    assert first == {
        "tokens": 32,
        "balanced": True,
        "compiled": [None, None],
        "skip_attn": True,
        "skip_eplb": True,
        "is_profile": True,
    }
    assert (second["tokens"], second["balanced"]) == (256, True)
    assert "skip_eplb" not in second


@given(
    capacity=st.none() | st.integers(1, 600),
    budget=st.integers(1, 600),
)
def test_only_where_the_budget_exceeds_the_capacity(
    capacity: int | None, budget: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        runner = made(patched, capacity)
        runner.max_num_tokens = budget
        runner.profile_run()
    extra = [capacity] if capacity is not None and capacity < budget else []
    assert runner.tokens == [*extra, budget]
    assert [run["balanced"] for run in runner.runs] == [True] * len(runner.runs)
    assert runner.device.depth == 0


@pytest.mark.parametrize(
    ("args", "kwargs", "first", "second"),
    [
        ((), {}, None, False),
        ((True,), {}, True, True),
        ((), {"randomize_inputs": True}, True, True),
        ((False,), {}, False, False),
    ],
)
def test_arguments_are_those_of_both_runs(
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    first: bool | None,
    second: bool,
    runner: Runner,
) -> None:
    """Before 0.31 there are none, and none are made up."""
    runner.profile_run(*args, **kwargs)
    asked = [run.get("randomize_inputs") for run in runner.runs]
    assert asked == [first, second]


def test_once_where_profile_runs_nest(runner: Runner) -> None:
    runner.within = runner.profile_run
    runner.profile_run()
    assert runner.tokens == [32, 256, 256]
    assert [run["balanced"] for run in runner.runs] == [True] * 3
    assert runner.device.depth == 0
    runner.profile_run()
    assert runner.tokens == [32, 256, 256, 32, 256]


def test_another_runner_within_has_one_of_its_own(runner: Runner) -> None:
    other = Runner(runner.device, 64)
    runner.within = other.profile_run
    runner.profile_run()
    assert (runner.tokens, other.tokens) == ([32, 256], [32, 64])


@pytest.mark.parametrize("failing", [32, 256])
def test_a_failure_leaves_nothing_behind(failing: int, runner: Runner) -> None:
    linear = runner.model[0]
    linear.do_not_compile = False  # type: ignore[assignment]
    runner.fails[failing] = MemoryError("none left")
    with pytest.raises(MemoryError, match="none left"):
        runner.profile_run()
    assert runner.device.depth == 0
    assert linear.do_not_compile is False
    runner.runs.clear()
    runner.fails.clear()
    runner.profile_run()
    assert runner.tokens == [32, 256]


def test_nothing_is_compiled_by_the_extra_run(runner: Runner) -> None:
    """It has no attention metadata; what is compiled first is kept."""
    linear, relu = runner.model
    linear.do_not_compile = False  # type: ignore[assignment]
    relu.do_not_compile = True  # type: ignore[assignment]
    runner.profile_run()
    assert [run["compiled"] for run in runner.runs] == [[True, True], [False, True]]
    assert (linear.do_not_compile, relu.do_not_compile) == (False, True)


def test_nor_by_that_of_its_draft(runner: Runner) -> None:
    (linear,) = draft = torch.nn.Sequential(torch.nn.Linear(1, 1))
    linear.do_not_compile = False  # type: ignore[assignment]
    runner.speculator = SimpleNamespace(model=draft)
    runner.profile_run()
    flags = [run["compiled"] for run in runner.runs]
    assert flags == [[None, None, True], [None, None, False]]
    # Some speculators have no model.
    runner.speculator = SimpleNamespace()
    runner.profile_run()
    assert runner.tokens == [32, 256] * 2


# Both providers: the plugin's functions are process-wide, the rig's take the config.


class Kind(Enum):
    ALLGATHER = 0
    MC2 = 1
    ALLTOALL = 2
    FUSED_MC2 = 3


def config(**changes: Any) -> Any:
    told = {"experts": True, "parallel": True, "sizes": [], "drafts": 0, **changes}
    return SimpleNamespace(
        model_config=SimpleNamespace(is_moe=told["experts"]),
        parallel_config=SimpleNamespace(
            enable_expert_parallel=told["parallel"],
            tensor_parallel_size=told.get("ranks", 1),
        ),
        scheduler_config=SimpleNamespace(max_num_seqs=told.get("requests", 8)),
        compilation_config=SimpleNamespace(
            cudagraph_capture_sizes=told["sizes"],
            max_cudagraph_capture_size=max(told["sizes"], default=None),
        ),
        num_speculative_tokens=told["drafts"],
        additional_config=told.get("additional", {}),
    )


class Plugin:
    """vllm-ascend, as far as it is asked."""

    def __init__(self, method: Kind | None, drop: bool = False) -> None:
        self.method, self.drop = method, drop
        self.tokens: int | None = None
        self.calls: list[Any] = []
        self.MoECommType = Kind

    def set_mc2_tokens_capacity(self, config: Any, requests: int, query: int) -> None:
        self.calls.append((requests, query))
        if self.tokens is None and not self.drop:
            self.tokens = requests * query

    def get_mc2_tokens_capacity(self) -> int | None:
        return self.tokens

    def select_moe_comm_method(self, num_tokens: int, config: Any) -> Kind | None:
        self.calls.append(num_tokens)
        return self.method

    @contextmanager
    def override_mrv2_in_profile_run(self, enabled: bool) -> Iterator[None]:
        self.calls.append(enabled)
        yield
        self.calls.append("left")


def install(monkeypatch: pytest.MonkeyPatch, name: str, module: Any) -> None:
    monkeypatch.setattr(device, "npu", lambda: REAL)
    monkeypatch.setitem(sys.modules, "vllm_ascend", ModuleType("vllm_ascend"))
    monkeypatch.setitem(sys.modules, f"vllm_ascend.{name}", module)


@pytest.mark.parametrize(
    ("method", "tokens"),
    [
        (Kind.MC2, 24),
        (Kind.FUSED_MC2, 24),
        (Kind.ALLGATHER, None),
        (Kind.ALLTOALL, None),
        (None, None),
    ],
)
def test_the_plugin_is_asked(
    method: Kind | None, tokens: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = Plugin(method)
    install(monkeypatch, "ascend_forward_context", plugin)
    assert device.moe().mc2_tokens(config(drafts=2)) == tokens
    assert plugin.calls == [(8, 3), 24]
    with device.moe().balanced():
        assert plugin.calls[2:] == [True]
    assert plugin.calls[2:] == [True, "left"]


def test_a_plugin_without_a_capacity_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = Plugin(Kind.MC2, drop=True)
    install(monkeypatch, "ascend_forward_context", plugin)
    assert device.moe().mc2_tokens(config()) is None
    assert plugin.calls == [(8, 1)]


def test_without_the_plugin_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "npu", lambda: REAL)
    monkeypatch.setitem(sys.modules, "vllm_ascend", None)
    with pytest.raises(NoNpuError, match="comes from vllm-ascend"):
        device.moe().mc2_tokens(config())


def test_both_look_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_DEVICE", "sim")
    questions = [name for name in vars(device.MoE) if not name.startswith("_")]
    assert len(questions) == 4
    asked = device.moe()
    assert asked is rig
    for name in questions:
        theirs = list(inspect.signature(getattr(device._Plugin(), name)).parameters)
        assert list(inspect.signature(getattr(asked, name)).parameters) == theirs


@pytest.mark.parametrize(
    ("changes", "tokens"),
    [
        ({}, 8),
        ({"experts": False}, None),
        ({"parallel": False}, None),
        ({"drafts": 3}, 32),
        ({"sizes": [1, 16, 64], "drafts": 3}, 64),
        ({"sizes": [4096]}, 512),
        ({"sizes": [4096], "ranks": 4}, 2048),
        # A whole number of tokens for each rank.
        ({"requests": 9, "ranks": 4}, 12),
    ],
)
def test_the_capacity_on_the_rig(changes: dict[str, Any], tokens: int | None) -> None:
    assert rig.mc2_tokens(config(**changes)) == tokens


@pytest.fixture
def buffers(monkeypatch: pytest.MonkeyPatch) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    monkeypatch.setattr(rig, "_buffers", found)
    return found


@pytest.mark.parametrize(
    ("num_tokens", "changes", "count"),
    [
        (8, {}, 1),
        (1, {}, 1),
        (9, {}, 0),
        (9, {"additional": {"enable_fused_mc2": 1}}, 1),
        (8, {"parallel": False}, 0),
        (8, {"additional": "of another kind"}, 1),
    ],
)
def test_buffers_come_with_the_first_use(
    num_tokens: int, changes: dict[str, Any], count: int, buffers: list[torch.Tensor]
) -> None:
    before = npu.memory_allocated()
    for _ in range(2):
        rig.send(num_tokens, config(**changes))
    assert [one.nbytes for one in buffers] == [rig.BUFFER] * count
    assert npu.memory_allocated() - before == rig.BUFFER * count


def test_without_room_they_are_refused(buffers: list[torch.Tensor]) -> None:
    memory = npu.device_memory()
    with (
        memory.limited(memory.reserved + rig.BUFFER - 1),
        pytest.raises(npu.OutOfMemoryError),
    ):
        rig.send(1, config())
    assert buffers == []


@given(
    num_tokens=st.integers(0, 40),
    num_experts=st.integers(1, 16),
    picked=st.integers(1, 16),
)
def test_even_logits_give_each_expert_its_share(
    num_tokens: int, num_experts: int, picked: int
) -> None:
    picked = min(picked, num_experts)
    logits = rig.even(torch.randn(num_tokens, num_experts))
    assert logits.shape == (num_tokens, num_experts)
    experts = logits.topk(picked).indices.flatten()
    loads = torch.bincount(experts, minlength=num_experts).tolist()
    assert sum(loads) == num_tokens * picked
    assert max(loads) - min(loads) <= min(picked, num_tokens % num_experts)
