"""`npu-graph` on the software NPU: a capture gives its workspaces back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
import torch

from ascend_shims.device.graphs import GraphParams, using
from ascend_shims.simnpu import npu

MIB = 1 << 20
SIZES = range(35, 0, -1)


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_DEVICE", "sim")


@pytest.fixture
def budget() -> Iterator[int]:
    """Two workspaces of 8 MiB, and a little."""
    before = npu.memory_allocated()
    with npu.device_memory().limited(before + 20 * MIB):
        yield 20 * MIB


def workspace(size: int) -> int:
    return 8 * MIB + size * 512


def test_many_sizes_are_captured_under_a_small_budget(budget: int) -> None:
    from ascend_shims.patches import npu_graph

    params, pool = GraphParams("target"), npu.graph_pool_handle()
    stream = npu.Stream()
    kept = []
    for size in SIZES:
        graph = npu_graph.CUDAGraph()
        with using(params), npu_graph.graph(graph, pool, stream=stream):
            params.workspace(size, workspace(size))[:8].fill_(size)
        kept.append(graph)
    assert len(params.workspaces) == len(params.weak) == len(SIZES)
    free, total = npu.mem_get_info()
    assert total - free < workspace(35) + 2 * MIB


def test_without_it_two_sizes_fill_the_budget(budget: int) -> None:
    params, pool = GraphParams("target"), npu.graph_pool_handle()
    stream = npu.Stream()
    kept = []
    with pytest.raises(npu.OutOfMemoryError):
        for size in SIZES:
            graph = npu.NPUGraph()
            with using(params), npu.graph(graph, pool, stream=stream):
                params.workspace(size, workspace(size))[:8].fill_(size)
            kept.append(graph)
    assert len(kept) == 2


def test_a_capture_that_raises_gives_its_workspace_back_too(budget: int) -> None:
    from ascend_shims.patches import npu_graph

    params, pool = GraphParams("target"), npu.graph_pool_handle()
    stream = npu.Stream()
    for size in SIZES:
        with (
            pytest.raises(ZeroDivisionError),
            using(params),
            npu_graph.graph(npu_graph.CUDAGraph(), pool, stream=stream),
        ):
            params.workspace(size, workspace(size))
            raise ZeroDivisionError
    assert params.weak == set(SIZES)


def test_what_was_allocated_outside_the_pool_stays_alive(budget: int) -> None:
    from ascend_shims.patches import npu_graph

    params = GraphParams("target")
    graph = npu_graph.CUDAGraph()
    held = torch.arange(4.0)
    address = held.data_ptr()
    with using(params), npu_graph.graph(graph, None, stream=npu.Stream()):
        out = held + 1
    del held
    scratch = [torch.zeros(4) for _ in range(64)]
    assert address not in [one.data_ptr() for one in scratch]
    out.zero_()
    graph.replay()
    assert out.tolist() == [1, 2, 3, 4]


def test_a_size_captured_again_gets_a_workspace_of_its_own(budget: int) -> None:
    from ascend_shims.patches import npu_graph

    params, stream = GraphParams("target"), npu.Stream()
    for _ in range(2):
        graph = npu_graph.CUDAGraph()
        with using(params), npu_graph.graph(graph, None, stream=stream):
            first = params.workspace(4, 64).fill_(1)
            assert params.weak == set()
            assert params.workspace(4, 64) is first
        assert params.weak == {4}


def test_each_name_has_an_object_of_its_own() -> None:
    from ascend_shims.patches import npu_graph

    objects = [getattr(npu_graph, name) for name in npu_graph.__all__]
    assert len({id(one) for one in objects}) == len(npu_graph.__all__) == 17


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, []),
        ("0", []),
        ("1", ["begin", "end", "optimize"]),
        ("fails", ["begin", "end"]),
    ],
)
def test_super_kernels_are_made_if_they_are_asked_for(
    value: str | None, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ascend_shims.patches import npu_graph

    monkeypatch.delenv("ASCEND_SHIMS_SUPER_KERNEL", raising=False)
    if value is not None:
        monkeypatch.setenv("ASCEND_SHIMS_SUPER_KERNEL", value.replace("fails", "1"))
    told: list[str] = []
    for name in ("begin", "end"):
        scope = f"super_kernel_scope_{name}"
        monkeypatch.setattr(npu_graph._npu, scope, lambda _, n=name: told.append(n))
    graph = npu_graph.CUDAGraph()
    monkeypatch.setattr(
        npu_graph.CUDAGraph,
        "super_kernel_optimize",
        lambda _: told.append("optimize"),
    )
    with (
        contextlib.suppress(ZeroDivisionError),
        npu_graph.graph(graph, stream=npu.Stream()),
    ):
        torch.zeros(2).add_(1)
        if value == "fails":
            raise ZeroDivisionError
    assert told == expected


@pytest.mark.parametrize("failing", ["begin", "end"])
def test_a_scope_that_fails_leaves_no_capture_open(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ascend_shims.patches import npu_graph

    def fail(_: str) -> None:
        raise ZeroDivisionError(failing)

    monkeypatch.setenv("ASCEND_SHIMS_SUPER_KERNEL", "1")
    monkeypatch.setattr(npu_graph._npu, f"super_kernel_scope_{failing}", fail)
    graph = npu_graph.CUDAGraph()
    with (
        pytest.raises(ZeroDivisionError, match=failing),
        npu_graph.graph(graph, stream=npu.Stream()),
    ):
        torch.zeros(2).add_(1)
    assert not npu.is_current_stream_capturing()
    monkeypatch.undo()
    graph.reset()
    with npu_graph.graph(graph, stream=npu.Stream()):
        torch.zeros(2).add_(1)
    graph.replay()
