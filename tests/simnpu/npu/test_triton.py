from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from triton.runtime.interpreter import GridExecutor

from ascend_shims.simnpu import npu
from ascend_shims.simnpu.npu.errors import TaskError

from . import kernels

PRISTINE = vars(GridExecutor)["__call__"]


def launch(x: torch.Tensor, out: torch.Tensor, number: int, grid: Any = (1,)) -> None:
    kernels.add[grid](x, x, out, x.numel(), number, BLOCK=4)


def test_a_launch_is_replayed_with_its_numbers() -> None:
    x, out, graph, number = torch.ones(4), torch.zeros(4), npu.NPUGraph(), 1
    with npu.graph(graph):
        launch(x, out, number)
    assert vars(GridExecutor)["__call__"] is PRISTINE
    x.fill_(5.0)
    number = 100
    graph.replay()
    assert out.tolist() == [11.0] * 4


def test_a_grid_that_is_computed_is_that_of_the_capture() -> None:
    x, out, graph, blocks = torch.ones(8), torch.zeros(8), npu.NPUGraph(), [1]
    with npu.graph(graph):
        launch(x, out, 0, lambda meta: (blocks[0] * 4 // meta["BLOCK"],))
    blocks[0] = 2
    out.zero_()
    graph.replay()
    assert out.tolist() == [2.0] * 4 + [0.0] * 4


def test_a_launch_in_an_operator_is_captured_once() -> None:
    library = torch.library.Library("rigtest_triton", "DEF")
    library.define("twice(Tensor x, Tensor(a!) out) -> ()")
    library.impl("twice", lambda x, out: launch(x, out, 0), "CPU")
    for kind in ("composite", "kernel"):
        x, out, graph = torch.ones(4), torch.zeros(4), npu.NPUGraph()
        if kind == "kernel":
            npu.kernel("rigtest_triton::twice")
        with npu.graph(graph):
            torch.ops.rigtest_triton.twice(x, out)
        assert graph._recording is not None
        assert len(graph._recording.entries) == 1
        x.fill_(3.0)
        graph.replay()
        assert out.tolist() == [6.0] * 4


def test_a_launch_of_another_thread_is_not_captured() -> None:
    x, out, graph = torch.ones(4), torch.zeros(4), npu.NPUGraph()
    with npu.graph(graph):
        x.add_(1)
        thread = threading.Thread(target=launch, args=(x, out, 0))
        thread.start()
        thread.join()
    assert graph._recording is not None
    assert [entry.name for entry in graph._recording.entries] == ["aten.add_.Tensor"]


def test_an_exception_leaves_the_interpreter_as_it_was() -> None:
    graph = npu.NPUGraph()
    with pytest.raises(ValueError, match="by hand"), npu.graph(graph):
        assert vars(GridExecutor)["__call__"] is not PRISTINE
        raise ValueError("by hand")
    assert vars(GridExecutor)["__call__"] is PRISTINE


def test_somebody_elses_patch_stays() -> None:
    graph = npu.NPUGraph()

    def other(self: Any, *args: Any, **kwargs: Any) -> None:
        raise AssertionError

    try:
        with npu.graph(graph):
            torch.zeros(1).add_(1)
            GridExecutor.__call__ = other
        assert vars(GridExecutor)["__call__"] is other
    finally:
        GridExecutor.__call__ = PRISTINE


def test_a_launch_in_a_task_group_is_refused() -> None:
    x = torch.ones(4)
    with (
        pytest.raises(TaskError, match="only operators can be updated"),
        npu.graph(npu.NPUGraph()),
    ):
        npu.graph_task_group_begin(npu.current_stream())
        launch(x, x, 0)


def test_a_launch_uses_memory_of_the_pool_without_holding_it() -> None:
    x, graph = torch.ones(4), npu.NPUGraph()
    with npu.graph(graph):
        out = torch.empty(4)
        launch(x, out, 0)
    weak = npu.weak_ref_tensor(out)
    del out
    assert npu.memory_allocated() == 0
    weak.zero_()
    graph.replay()
    assert weak.tolist() == [2.0] * 4
    graph.reset()
