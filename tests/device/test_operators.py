"""Two providers of one protocol: the plugin's operators and the rig's."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from ascend_shims.device import (
    graphs,
    npu,
    operators,
    plugin_operators,
    replays,
    rig_operators,
)

PROTOCOL = ["refreshing", "set_cos_and_sin", "storing", "update_cos_sin"]


class Stream:
    def __init__(self) -> None:
        self.waited: list[Any] = []

    def wait_stream(self, other: Any) -> None:
        self.waited.append(other)


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A stand-in for torch_npu and for the modules of vllm-ascend that are asked."""
    seen: list[Any] = []
    device = ModuleType("torch.npu")
    device.current_stream = lambda: "the current stream"  # type: ignore[attr-defined]
    modules = {
        "torch_npu": ModuleType("torch_npu"),
        "vllm_ascend": ModuleType("vllm_ascend"),
        "vllm_ascend.ops": ModuleType("vllm_ascend.ops"),
        "vllm_ascend.compilation": ModuleType("vllm_ascend.compilation"),
    }
    rotary = modules["vllm_ascend.ops.rotary_embedding"] = ModuleType("rotary")
    rotary.set_cos_and_sin = lambda *a: seen.append(("set", *a))  # type: ignore[attr-defined]
    rotary.update_cos_sin = lambda p: seen.append(("update", p))  # type: ignore[attr-defined]
    acl_graph = modules["vllm_ascend.compilation.acl_graph"] = ModuleType("acl_graph")
    vars(acl_graph).update(dict.fromkeys(plugin_operators._STORES))
    context = SimpleNamespace(is_draft_model=None)
    forward = modules["vllm_ascend.ascend_forward_context"] = ModuleType("forward")
    forward._EXTRA_CTX = context  # type: ignore[attr-defined]
    config = modules["vllm.config"] = ModuleType("vllm.config")
    config.set_current_vllm_config = lambda _: nullcontext()  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(torch, "npu", device, raising=False)
    npu._torch_npu.cache_clear()
    yield SimpleNamespace(seen=seen, acl_graph=acl_graph, context=context)
    npu._torch_npu.cache_clear()


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "torch_npu", None)
    npu._torch_npu.cache_clear()
    yield
    npu._torch_npu.cache_clear()


def refresh(*updates: Callable[..., None], **more: Any) -> replays.Refresh:
    """Of attention groups whose implementations have `updates`."""
    groups = [
        SimpleNamespace(
            backend=SimpleNamespace(
                get_impl_cls=lambda u=u: SimpleNamespace(update_graph_params=u)
            )
        )
        for u in updates
    ]
    fields: dict[str, Any] = {
        "params": graphs.GraphParams("a test"),
        "stream": Stream(),
        "attn_groups": [groups],
        "vllm_config": "config",
        "speculative_config": "drafts",
        "attn_metadata": {"layer": 1},
    }
    return replays.Refresh(**{**fields, **more})


def test_both_have_what_the_protocol_says() -> None:
    for provider in (plugin_operators, rig_operators):
        assert sorted(provider.__all__) == PROTOCOL
        for name in PROTOCOL:
            declared = inspect.signature(getattr(operators.Operators, name))
            asked = list(declared.parameters)[1:]
            found = inspect.signature(getattr(provider, name))
            assert list(found.parameters) == asked


def test_which_it_is_follows_torch_npu(plugin: SimpleNamespace) -> None:
    assert operators.operators() is plugin_operators


def test_else_it_is_the_rig(rig: None) -> None:
    assert operators.operators() is rig_operators
    # It has state of its own, and asks for none of this.
    operators.operators().set_cos_and_sin(None)
    operators.operators().update_cos_sin(torch.zeros(1))


def test_cos_and_sin_are_set_as_the_plugin_wants(plugin: SimpleNamespace) -> None:
    runner = SimpleNamespace(
        vllm_config="config",
        max_num_reqs=8,
        num_speculative_steps=3,
        dtype=torch.bfloat16,
        device="npu:0",
    )
    positions = torch.arange(3)
    operators.operators().set_cos_and_sin(runner)
    operators.operators().update_cos_sin(positions)
    assert plugin.seen == [
        ("set", "config", 8, 4, torch.bfloat16, "npu:0"),
        ("update", positions),
    ]


def test_operators_of_the_plugin_find_the_managers_own_parameters(
    plugin: SimpleNamespace,
) -> None:
    """Target and draft never mix, and what was there comes back, after an error too."""

    def stores() -> list[Any]:
        return [getattr(plugin.acl_graph, name) for name in plugin_operators._STORES]

    before = plugin.acl_graph._graph_params = object()
    target, draft = graphs.GraphParams("target"), graphs.GraphParams("draft")
    with graphs.capturing(target):
        assert stores() == [target] * 3
        # As its operators write: a list for each number of tokens, and a workspace.
        plugin.acl_graph._graph_params.events[4].append("event")
        assert plugin.acl_graph._graph_params.workspaces.get(4) is None
        with pytest.raises(ValueError, match="ends"), graphs.using(draft):
            assert stores() == [draft] * 3
            raise ValueError("ends")
        assert stores() == [target] * 3
    assert stores() == [before, None, None]
    assert (target.events, draft.events) == ({4: ["event"]}, {})


@pytest.mark.parametrize("provider", ["plugin", "rig"])
def test_each_backend_updates_once(
    provider: str, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(provider)
    told: list[Any] = []

    def update(*args: Any, **kwargs: Any) -> None:
        told.append((*args, kwargs))

    def no_implementation() -> None:
        raise NotImplementedError

    asked = refresh(update, update)
    only_metadata = SimpleNamespace(get_impl_cls=no_implementation)
    asked.attn_groups[0].insert(0, SimpleNamespace(backend=only_metadata))
    done = operators.operators().refreshing(object(), asked, "context", 4)
    assert told == []
    done()
    drafts = {"draft_attn_metadatas": None}
    assert told == [(asked.stream, "context", 4, "config", "drafts", drafts)]
    # The device's update waits for what was launched before; the rig's runs at once.
    waited = ["the current stream"] if provider == "plugin" else []
    assert asked.stream.waited == waited


def test_a_draft_is_marked_as_one(plugin: SimpleNamespace) -> None:
    marked: list[Any] = []

    def update(*_: Any, **__: Any) -> None:
        marked.append(plugin.context.is_draft_model)

    operators.operators().refreshing(None, refresh(update), "context", 4)()
    asked = refresh(update, draft_attn_metadatas=[{"layer": 1}])
    operators.operators().refreshing(None, asked, "context", 4)()
    assert marked == [None, True]


@pytest.mark.parametrize("passes", [None, [{"layer": 5}, {"layer": 6}]])
def test_a_graph_that_keeps_its_operators_is_told_by_itself(
    plugin: SimpleNamespace, passes: list[Any] | None
) -> None:
    """As the plugin's own graphs since 0.29.0rc1; its attention refuses then."""
    told: list[Any] = []
    layer = SimpleNamespace(resolve=lambda metadata: metadata["layer"])

    def refuse(*_: Any, **__: Any) -> None:
        raise NotImplementedError

    graph = SimpleNamespace(
        resolve_tasks=lambda source: tuple(source.get(layer)),
        update=lambda stream, tasks: told.append((stream, tasks)),
    )
    asked = refresh(refuse, draft_attn_metadatas=passes)
    done = operators.operators().refreshing(graph, asked, "context", 4)
    assert told == []
    done()
    assert told == [(asked.stream, (1,) if passes is None else (5, 6))]


def test_without_the_plugin_it_is_said(
    plugin: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vllm_ascend.ops.rotary_embedding", None)
    with pytest.raises(npu.NoNpuError, match="operators are vllm-ascend's"):
        operators.operators().update_cos_sin(torch.zeros(1))
