"""Public reports of class D, faults on the device's side: where each is a test.

Most concern one gap and stand with its tests; what is left is here.
"""

from __future__ import annotations

import ast
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ascend_shims.device import lengths, operators

HERE = Path(__file__).parent

REPORTS = {
    "D03": ("patches/test_kv_cache", "test_a_connector_gets_whole_granules"),
    "D04": ("real/test_kv_cache", "test_a_dump_of_hidden_states_lies_on_its_own"),
    "D06": (
        "patches/test_npu_graph",
        "test_many_sizes_are_captured_under_a_small_budget",
    ),
    "D08": (
        "real/test_npu_graph",
        "test_what_graphs_were_captured_with_is_not_grown_later",
    ),
    "D10": ("test_device_reports", "test_d10_whichever_backend_comes_first"),
    "D12": ("device/test_rope", "test_rows_are_upstreams_and_rotate_as_upstream_does"),
    "D13": ("device/test_rope", "test_partial_rotary"),
    "D17": (
        "test_device_reports",
        "test_d17_the_next_step_changes_nothing_of_this_one",
    ),
    "D18": ("patches/test_profile_run_mc2", "test_a_run_of_the_capacity_comes_first"),
    "D20": ("guard/test_ranks", "test_both_leave_before_the_same_step"),
    "D23": (
        "patches/test_kv_cache_split",
        "test_on_a_shared_backing_every_page_keeps_its_bytes",
    ),
    "D24": ("test_device_reports", "test_d24_what_a_graph_needs_is_left_to_upstream"),
}


@pytest.mark.parametrize("report", REPORTS)
def test_every_report_is_a_test(report: str) -> None:
    file, name = REPORTS[report]
    tree = ast.parse((HERE / f"{file}.py").read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert name in names


def backend(kind: str, told: list[str]) -> SimpleNamespace:
    """An attention backend: `full` updates its graphs, `indexer` has nothing to
    update, `metadata` has no implementation at all."""

    def update(*_: Any, **__: Any) -> None:
        told.append(kind)

    def implementation() -> Any:
        if kind == "metadata":
            raise NotImplementedError
        if kind == "indexer":
            return SimpleNamespace()
        return SimpleNamespace(update_graph_params=update)

    return SimpleNamespace(backend=SimpleNamespace(get_impl_cls=implementation))


@pytest.mark.parametrize(
    "kinds",
    [
        kinds
        for count in (1, 2, 3)
        for kinds in itertools.permutations(("indexer", "metadata", "full"), count)
    ],
    ids="-".join,
)
def test_d10_whichever_backend_comes_first(kinds: tuple[str, ...]) -> None:
    told: list[str] = []
    refresh: Any = SimpleNamespace(
        attn_groups=[[backend(kind, told)] for kind in kinds],
        stream="stream",
        vllm_config="config",
        speculative_config=None,
        draft_attn_metadatas=None,
    )
    operators.update_backends(refresh, "context", 4)
    assert told == ["full"] * ("full" in kinds)


def test_d17_the_next_step_changes_nothing_of_this_one() -> None:
    """Lengths are read when an operator is enqueued, however late it runs."""
    device = torch.zeros(4, dtype=torch.int32)
    host = lengths.beside(device)
    host.set([3, 5])
    first = host.host[:2].tolist()
    host.set([4, 6, 1])
    assert first == [3, 5]
    assert host.host.tolist() == [4, 6, 1, 0]


def test_d24_what_a_graph_needs_is_left_to_upstream() -> None:
    """Nothing of ours stands in for the profile of graph memory: upstream has one
    from 0.29 on, and before that none is asked for."""
    registry = (HERE.parent / "gap_registry.yaml").read_text(encoding="utf-8")
    assert "profile_cudagraph_memory" not in registry
    assert "capture_model" in registry
