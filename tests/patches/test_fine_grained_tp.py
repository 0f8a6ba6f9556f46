"""fine-grained-tp on plain objects: which configurations and which steps are refused.

That upstream's own graph managers and dispatch take it is in
`tests/real/test_fine_grained_tp.py`.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.device import moe as device
from ascend_shims.errors import ConfigurationError
from ascend_shims.patches import fine_grained_tp
from ascend_shims.patches.fine_grained_tp import EagerStepError, UncapturedStepError

OPROJ = {"oproj_tensor_parallel_size": 2}
BOTH = {**OPROJ, "mlp_tensor_parallel_size": 4}


@dataclass(frozen=True)
class Mode:
    """Upstream's `CUDAGraphMode`: what decodes and what all other steps run on."""

    decode: str
    mixed: str

    def __bool__(self) -> bool:
        return bool(self.decode or self.mixed)

    def mixed_mode(self) -> str:
        return self.mixed

    def __str__(self) -> str:
        return f"{self.decode or 'NONE'}/{self.mixed or 'NONE'}"


NONE = Mode("", "")
FULL = Mode("FULL", "FULL")
PIECEWISE = Mode("PIECEWISE", "PIECEWISE")
DECODE_ONLY = Mode("FULL", "")
FULL_AND_PIECEWISE = Mode("FULL", "PIECEWISE")


@dataclass
class Config:
    """Of upstream's `VllmConfig`."""

    sizes: list[int] | None = field(default_factory=lambda: [1, 2, 4, 8, 16])
    tokens: int = 16
    requests: int = 4
    drafts: int = 0
    exchanged: dict[str, int] = field(default_factory=lambda: dict(OPROJ))
    decodes_only: bool = False
    encodes: bool = False
    ubatching: bool = False
    method: str | None = None

    def __post_init__(self) -> None:
        self.num_speculative_tokens = self.drafts
        self.model_config = SimpleNamespace(is_encoder_decoder=self.encodes)
        self.parallel_config = SimpleNamespace(use_ubatching=self.ubatching)
        self.scheduler_config = SimpleNamespace(
            max_num_batched_tokens=self.tokens, max_num_seqs=self.requests
        )
        self.compilation_config = SimpleNamespace(
            cudagraph_capture_sizes=self.sizes, cudagraph_mode="the mode asked for"
        )
        self.speculative_config = self.method and SimpleNamespace(method=self.method)


class Device:
    def exchanged_across_dp(self, config: Config) -> dict[str, int]:
        return config.exchanged

    def decodes_only(self, config: Config) -> bool:
        return config.decodes_only


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine_grained_tp, "moe", Device)
    monkeypatch.setattr(fine_grained_tp, "_is_draft", lambda m: m.is_draft)


class Manager:
    """Of upstream's graph managers: what they capture, and whom they give it to."""

    def __init__(
        self,
        config: Config,
        mode: Mode,
        query_len: int = 1,
        *,
        draft: bool = False,
    ) -> None:
        self.is_draft = draft
        self.asked = 0

        def upstream(manager: Manager, config: Config, mode: Mode, query: int) -> None:
            manager.vllm_config = config
            manager.cudagraph_mode = mode
            manager.decode_query_len = query
            manager._graphs_captured = False

        fine_grained_tp.refuse_uncaptured(upstream, self, config, mode, query_len)

    def dispatch(
        self, num_reqs: int, num_tokens: int, uniform: int | None, num_loras: int
    ) -> Any:
        self.asked += 1
        config, mode, query = (
            self.vllm_config,
            self.cudagraph_mode,
            self.decode_query_len,
        )
        chosen = ""
        if self._graphs_captured and not num_loras:
            sizes = config.sizes or []
            decodes = [
                size
                for size in sizes
                if size % query == 0 and size <= config.requests * query
            ]
            if uniform == query and any(size >= num_tokens for size in decodes):
                chosen = mode.decode
            if any(size >= num_tokens for size in sizes):
                chosen = chosen or mode.mixed
        return SimpleNamespace(cg_mode=chosen, num_tokens=num_tokens, num_reqs=num_reqs)

    vllm_config: Config
    cudagraph_mode: Mode
    decode_query_len: int
    _graphs_captured: bool


ACCEPTED: dict[str, tuple[Config, Mode, dict[str, Any]]] = {
    "full": (Config(), FULL, {}),
    "piecewise": (Config(), PIECEWISE, {}),
    "full and piecewise": (Config(), FULL_AND_PIECEWISE, {}),
    "more than needed": (Config(sizes=[64]), FULL, {}),
    "decodes alone come": (Config(decodes_only=True, sizes=[4]), DECODE_ONLY, {}),
    "not split": (Config(exchanged={}, sizes=None), NONE, {}),
    "a draft's decodes": (Config(drafts=3), DECODE_ONLY, {"draft": True}),
    "a draft of one token": (Config(drafts=1), NONE, {"draft": True}),
}


@pytest.mark.parametrize(("config", "mode", "more"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_configuration_that_can_work(
    config: Config, mode: Mode, more: dict[str, Any]
) -> None:
    manager = Manager(config, mode, **more)
    assert manager._graphs_captured is False
    # Where nothing is split nothing is asked.
    assert bool(manager.asked) == bool(config.exchanged and mode)


REFUSED: dict[str, tuple[Config, Mode, dict[str, Any], str]] = {
    "no graphs": (
        Config(), NONE, {},
        "the model has none with cudagraph_mode=the mode asked for; set",
    ),
    "decodes alone": (Config(), DECODE_ONLY, {}, "FULL/NONE captures decodes alone"),
    "a step too large": (
        Config(tokens=17), FULL, {},
        "one of 17 tokens has none; include 17, .* of which the largest is 16",
    ),
    "no sizes": (Config(sizes=[]), FULL, {}, "one of 1 tokens has none; include 16"),
    "sizes unset": (Config(sizes=None), FULL, {}, "of which the largest is 0"),
    "decodes too large": (
        Config(decodes_only=True, sizes=[1, 2]), DECODE_ONLY, {},
        "one of 3 tokens has none; include 4",
    ),
    "a draft without": (
        Config(drafts=2), NONE, {"draft": True},
        "those of its draft have none",
    ),
    "a draft's largest pass": (
        Config(drafts=2, sizes=[1, 2, 16]), DECODE_ONLY, {"draft": True},
        "one of 3 tokens has none; include 4",
    ),
    "encoder": (Config(encodes=True), FULL, {}, "encodes outside graphs"),
    "microbatches": (Config(ubatching=True), FULL, {}, "set enable_dbo to false"),
    "standalone draft": (
        Config(method="draft_model"), FULL, {}, "standalone draft model runs outside"
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "mode", "more", "why"), REFUSED.values(), ids=REFUSED
)
def test_a_configuration_that_cannot(
    config: Config, mode: Mode, more: dict[str, Any], why: str
) -> None:
    named = r"^finegrained_tp_config\.oproj_tensor_parallel_size=2 needs a captured "
    with pytest.raises(UncapturedStepError, match=f"{named}.*{why}") as caught:
        Manager(config, mode, **more)
    assert isinstance(caught.value, ConfigurationError)
    # Without the setting it is as good as any.
    config.exchanged = {}
    assert Manager(config, mode, **more).asked == 0


def test_each_setting_is_named() -> None:
    both = (
        "finegrained_tp_config.oproj_tensor_parallel_size=2 and "
        "finegrained_tp_config.mlp_tensor_parallel_size=4 needs"
    )
    with pytest.raises(UncapturedStepError, match=both):
        Manager(Config(exchanged=BOTH), NONE)


modes = st.sampled_from([FULL, PIECEWISE, FULL_AND_PIECEWISE, DECODE_ONLY])


@given(
    sizes=st.lists(st.integers(1, 24), max_size=5),
    tokens=st.integers(1, 20),
    requests=st.integers(1, 6),
    query=st.integers(1, 3),
    mode=modes,
)
def test_accepted_is_what_has_a_graph_for_every_step(
    sizes: list[int], tokens: int, requests: int, query: int, mode: Mode
) -> None:
    """Of all steps, not of the largest alone that are asked about."""
    config = Config(
        sizes=sizes, tokens=tokens, requests=requests, decodes_only=not mode.mixed
    )
    plain = Config(**{**vars_of(config), "exchanged": {}})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fine_grained_tp, "moe", Device)
        patched.setattr(fine_grained_tp, "_is_draft", lambda m: m.is_draft)
        upstream = Manager(plain, mode, query)
        upstream._graphs_captured = True
        bare = [
            step
            for step in possible(config, query, mode)
            if not upstream.dispatch(*step, 0).cg_mode
        ]
        if bare:
            with pytest.raises(UncapturedStepError) as caught:
                Manager(config, mode, query)
            first = min(num_tokens for _, num_tokens, _ in bare)
            assert f"one of {first} tokens has none" in str(caught.value)
        else:
            assert Manager(config, mode, query).asked > 0


def vars_of(config: Config) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__dataclass_fields__}


def possible(
    config: Config, query: int, mode: Mode
) -> Iterator[tuple[int, int, int | None]]:
    """Requests, tokens, and tokens of each where these are alike."""
    for num_reqs in range(1, config.requests + 1):
        if not mode.mixed:
            yield num_reqs, num_reqs * query, query
            continue
        for num_tokens in range(num_reqs, config.tokens + 1):
            yield num_reqs, num_tokens, None
            if num_tokens % num_reqs == 0:
                yield num_reqs, num_tokens, num_tokens // num_reqs


# At run time.


@dataclass(frozen=True)
class Batch:
    cg_mode: str
    num_tokens: int


def dispatched(manager: Any, batch: Batch, **options: Any) -> Any:
    calls: list[Any] = []

    def upstream(cudagraph_manager: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append((cudagraph_manager, args, kwargs))
        return batch, "what the ranks agreed on"

    try:
        return fine_grained_tp.require_graph(upstream, manager, 2, 5, None, **options)
    finally:
        assert calls == [(manager, (2, 5, None), options)]


@pytest.fixture
def manager() -> Manager:
    made = Manager(Config(), FULL)
    made._graphs_captured = True
    return made


EAGER = Batch("", 5)


def test_an_eager_step_raises(manager: Manager) -> None:
    said = (
        "^a step of 5 tokens was about to run outside captured graphs, here or on "
        "another data-parallel rank, and with "
        r"finegrained_tp_config.oproj_tensor_parallel_size=2 .*cudagraph_capture_sizes"
    )
    with pytest.raises(EagerStepError, match=said):
        dispatched(manager, EAGER)
    with pytest.raises(EagerStepError):
        dispatched(manager, EAGER, need_eager=False, num_active_loras=1)


@pytest.mark.parametrize("mode", ["FULL", "PIECEWISE"])
def test_a_step_on_a_graph_goes_on(mode: str, manager: Manager) -> None:
    batch = Batch(mode, 8)
    agreed = dispatched(manager, batch, dp_size=2)
    assert agreed == (batch, "what the ranks agreed on")


def test_what_may_be_eager(manager: Manager) -> None:
    idle = Batch("", 0)
    profiled = dispatched(manager, EAGER, need_eager=True)
    assert profiled[0] is EAGER
    assert dispatched(manager, idle)[0] is idle
    assert dispatched(None, EAGER, need_eager=True)[0] is EAGER
    manager._graphs_captured = False  # the warm-up before captures
    assert dispatched(manager, EAGER)[0] is EAGER


def test_nothing_split_nothing_refused() -> None:
    manager = Manager(Config(exchanged={}), NONE)
    manager._graphs_captured = True
    assert dispatched(manager, EAGER)[0] is EAGER


def test_a_manager_from_before_is_known_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gap may come on after the runner was built."""
    with monkeypatch.context() as off:
        off.setattr(
            fine_grained_tp,
            "refuse_uncaptured",
            lambda call, manager, *args: call(manager, *args),
        )
        manager = Manager(Config(), DECODE_ONLY)
    manager._graphs_captured = True
    with pytest.raises(EagerStepError):
        dispatched(manager, EAGER)


def test_nothing_keeps_a_manager() -> None:
    manager = Manager(Config(), FULL)
    gone = weakref.ref(manager)
    del manager
    gc.collect()
    assert gone() is None


# What the devices say.

REAL = SimpleNamespace(__name__="torch_npu.npu")
SIZES: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "both": (BOTH, BOTH),
    "one rank is no split": ({"oproj_tensor_parallel_size": 1}, {}),
    "others exchange otherwise": (
        {"lmhead_tensor_parallel_size": 4, "embedding_tensor_parallel_size": 4}, {}
    ),
    "none": ({}, {}),
}  # fmt: skip


@pytest.mark.parametrize(("told", "found"), SIZES.values(), ids=SIZES)
def test_what_is_split(
    told: dict[str, int], found: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = SimpleNamespace(additional_config={"finegrained_tp_config": told})
    monkeypatch.setenv("ASCEND_SHIMS_DEVICE", "sim")
    assert device.moe().exchanged_across_dp(config) == found
    parsed = SimpleNamespace(
        **{
            "oproj_tensor_parallel_size": 0,
            "mlp_tensor_parallel_size": 0,
            **told,
        }
    )
    read = SimpleNamespace(
        get_ascend_config=lambda: SimpleNamespace(finegrained_tp_config=parsed)
    )
    monkeypatch.setattr(device, "npu", lambda: REAL)
    monkeypatch.setitem(sys.modules, "vllm_ascend", ModuleType("vllm_ascend"))
    monkeypatch.setitem(sys.modules, "vllm_ascend.ascend_config", read)
    assert device.moe().exchanged_across_dp(object()) == found


@pytest.mark.parametrize("additional", [None, {}, "of another kind"])
def test_where_the_rig_is_told_nothing(additional: Any) -> None:
    from ascend_shims.simnpu import moe

    config = SimpleNamespace(additional_config=additional)
    assert moe.exchanged_across_dp(config) == {}


@pytest.mark.parametrize("kept", [False, True])
def test_who_keeps_prompts_away(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    config = object()
    monkeypatch.setenv("ASCEND_SHIMS_DEVICE", "sim")
    assert device.moe().decodes_only(config) is False
    asked = SimpleNamespace(
        is_pd_decode_recompute_scheduler_enabled=lambda told: kept and told is config
    )
    monkeypatch.setattr(device, "npu", lambda: REAL)
    monkeypatch.setitem(sys.modules, "vllm_ascend", ModuleType("vllm_ascend"))
    monkeypatch.setitem(sys.modules, "vllm_ascend.utils", asked)
    assert device.moe().decodes_only(config) is kept
