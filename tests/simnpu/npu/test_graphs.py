from __future__ import annotations

import functools
import json
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

from ascend_shims.simnpu import npu
from ascend_shims.simnpu.npu.errors import (
    CaptureError,
    NotModelledError,
    ReplayError,
)

from . import operators

Context = Callable[[], AbstractContextManager[object]]


def captured(body: Callable[[], object], **options: object) -> npu.NPUGraph:
    made = npu.NPUGraph()
    with npu.graph(made, **options):
        body()
    return made


def names(made: npu.NPUGraph, folder: Path) -> list[str]:
    path = folder / "graph.json"
    made.debug_dump(str(path))
    entries: list[str] = json.loads(path.read_text())["entries"]
    return entries


@pytest.mark.parametrize(
    "capture_in", [torch.inference_mode, torch.no_grad, torch.enable_grad, nullcontext]
)
@pytest.mark.parametrize("replay_in", [torch.inference_mode, nullcontext])
def test_replay_computes_from_what_is_in_the_buffers_now(
    capture_in: Context, replay_in: Context
) -> None:
    x = torch.ones(4)
    made = npu.NPUGraph()
    with capture_in(), npu.graph(made):
        y = (x + 1).reshape(2, 2).to(torch.float64).mul_(3)
    assert y.tolist() == [[6.0, 6.0], [6.0, 6.0]]
    place = y.data_ptr()
    for value in (2.0, 5.0):
        x.fill_(value)
        with replay_in():
            made.replay()
        assert y.tolist() == [[3 * (value + 1)] * 2] * 2
    assert y.data_ptr() == place


def test_parameters_that_require_gradients_are_used_as_they_are() -> None:
    weight = torch.nn.Parameter(torch.ones(2, 2))
    x = torch.ones(1, 2)
    made = npu.NPUGraph()
    with torch.no_grad(), npu.graph(made):
        y = x @ weight
    with torch.no_grad():
        weight.fill_(4.0)
    made.replay()
    assert y.tolist() == [[8.0, 8.0]]


def test_numbers_and_lists_are_those_of_the_capture() -> None:
    q, out = torch.ones(2), torch.zeros(2)
    lengths, factor = [1, 2], 3.0
    with torch.no_grad():
        made = captured(lambda: operators.attention(q * factor, lengths, out=out))
    lengths.append(100)
    factor = 7.0
    operators.ran.clear()
    made.replay()
    assert out.tolist() == [9.0, 9.0]
    assert operators.ran == [[1, 2]]


def test_python_code_of_an_operator_does_not_run_again(tmp_path: Path) -> None:
    x, total = torch.ones(2), torch.zeros(())
    made = npu.NPUGraph()
    with torch.inference_mode(), npu.graph(made):
        y = torch.ops.rigtest.scaled(x, total, 2.0)
        z = operators.mean(y)
    assert names(made, tmp_path) == [
        "aten.mul.Tensor",
        "aten.sum.default",
        "aten.add_.Tensor",
        "aten.mean.default",
    ]
    x.fill_(3.0)
    total.zero_()
    made.replay()
    assert (y.tolist(), total.item(), z.item()) == ([6.0, 6.0], 12.0, 6.0)


def test_a_kernel_is_one_entry(tmp_path: Path) -> None:
    q, out = torch.ones(2), torch.zeros(2)
    with torch.no_grad():
        made = captured(lambda: operators.attention(q, [1], out=out))
    assert names(made, tmp_path) == ["rigtest.attention.default"]


def test_constants_are_made_afresh() -> None:
    made = npu.NPUGraph()
    with torch.inference_mode(), npu.graph(made):
        counts = torch.tensor([1, 2])
        counts.add_(1)
    for _ in range(2):
        made.replay()
        assert counts.tolist() == [2, 3]


def test_geometry_that_changes_in_place_is_not_the_graphs() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    made = npu.NPUGraph()
    with torch.inference_mode(), npu.graph(made):
        y = x + 1
        y.t_()
        z = y * 2
        y.unsqueeze_(0)
    x.add_(10)
    for _ in range(2):
        made.replay()
        assert z.tolist() == ((x + 1).t() * 2).tolist()
    assert y.shape == (1, 3, 2)


@pytest.mark.parametrize("expand", [(3, 2), (2, 2)])
def test_results_with_repeated_elements(expand: tuple[int, int]) -> None:
    x = torch.ones(2)
    made = npu.NPUGraph()
    with torch.inference_mode(), npu.graph(made):
        y = (x + 1).expand(expand)
        z = y + y
    x.fill_(4.0)
    made.replay()
    assert z.tolist() == [[10.0, 10.0]] * expand[0]
    assert y.tolist() == [[5.0, 5.0]] * expand[0]


def test_an_operator_whose_new_result_repeats_elements() -> None:
    library = torch.library.Library("rigtest_repeats", "DEF")
    library.define("wide(Tensor x) -> Tensor")
    library.impl("wide", lambda x: (x + 1).expand(3, 2), "CPU")
    npu.kernel("rigtest_repeats::wide")
    x = torch.ones(2)
    made = npu.NPUGraph()
    with torch.inference_mode(), npu.graph(made):
        y = torch.ops.rigtest_repeats.wide(x)
    x.fill_(4.0)
    made.replay()
    assert y.tolist() == [[5.0, 5.0]] * 3


def test_memory_from_numpy_is_read_at_replay() -> None:
    array = np.ones(2, dtype=np.float32)
    source, target = torch.from_numpy(array), torch.zeros(2)
    with torch.no_grad():
        made = captured(lambda: target.copy_(source))
    array[:] = 9
    made.replay()
    assert target.tolist() == [9.0, 9.0]


def test_a_shape_that_depends_on_data_is_refused_at_replay() -> None:
    x = torch.tensor([1.0, 0.0, 2.0])
    with torch.no_grad():
        made = captured(lambda: x.nonzero())
    made.replay()
    x.zero_()
    with pytest.raises(ReplayError, match=r"nonzero.*\[2, 1\].*\[0, 1\]"):
        made.replay()
    x.fill_(1.0)
    with pytest.raises(ReplayError, match="depends on data"):
        made.replay()


def test_inputs_outlive_their_owner_until_the_reset() -> None:
    source, target = torch.full((4,), 3.0), torch.zeros(4)
    with torch.no_grad():
        made = captured(functools.partial(target.copy_, source))
    before = source.data_ptr()
    del source
    assert torch.full((4,), 8.0).data_ptr() != before
    target.zero_()
    made.replay()
    assert target.tolist() == [3.0] * 4


def test_another_thread_is_not_captured(tmp_path: Path) -> None:
    x = torch.zeros(2)
    made = npu.NPUGraph()

    def elsewhere() -> None:
        assert not npu.is_current_stream_capturing()
        x.mul_(2)

    with torch.no_grad(), npu.graph(made):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        x.add_(1)
    assert names(made, tmp_path) == ["aten.add_.Tensor"]


def test_a_stream_outside_the_capture_is_not_captured(tmp_path: Path) -> None:
    x = torch.zeros(2)
    other = npu.Stream()
    made = npu.NPUGraph()
    with torch.no_grad(), npu.graph(made):
        x.add_(1)
        with npu.stream(other):
            assert not npu.is_current_stream_capturing()
            assert npu.capturing_graph() is None
            x.mul_(2)
        assert npu.capturing_graph() is made
    assert names(made, tmp_path) == ["aten.add_.Tensor"]


def test_a_stream_that_is_forked_and_joined_is_captured(tmp_path: Path) -> None:
    x, side = torch.zeros(2), npu.Stream()
    made = npu.NPUGraph()
    with torch.no_grad(), npu.graph(made):
        x.add_(1)
        side.wait_stream(npu.current_stream())
        with npu.stream(side):
            assert npu.is_current_stream_capturing()
            x.mul_(2)
        npu.current_stream().wait_stream(side)
        x.sub_(1)
    assert names(made, tmp_path) == [
        "aten.add_.Tensor",
        "aten.mul_.Tensor",
        "aten.sub_.Tensor",
    ]


def test_a_stream_that_is_not_joined_fails_the_capture() -> None:
    x, side = torch.zeros(2), npu.Stream()
    made = npu.NPUGraph()
    with (
        pytest.raises(CaptureError, match=r"stream \d+> took part and was not joined"),
        npu.graph(made),
    ):
        side.wait_stream(npu.current_stream())
        with npu.stream(side):
            x.mul_(2)
    with pytest.raises(ReplayError, match=r"its capture failed: .*not joined"):
        made.replay()


def in_capture(body: Callable[[], object]) -> Callable[[], object]:
    return lambda: captured(body)


def recorded_outside() -> None:
    event = npu.Event()
    event.record()
    captured(event.wait)


def captured_event_outside() -> npu.Event:
    event = npu.Event()
    captured(lambda: (torch.zeros(1).add_(1), event.record()))
    return event


def begun_twice() -> None:
    made = npu.NPUGraph()
    with npu.graph(made):
        torch.zeros(1).add_(1)
    with npu.graph(made):
        pass


def ends_elsewhere() -> None:
    made, first, other = npu.NPUGraph(), npu.Stream(), npu.Stream()
    with npu.stream(first):
        made.capture_begin()
        try:
            with npu.stream(other):
                made.capture_end()
        finally:
            torch.zeros(1).add_(1)
            made.capture_end()


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "nested": (
        in_capture(lambda: captured(lambda: None)),
        # The inner one synchronizes the device first.
        "which is being captured",
    ),
    "begun in a capture": (
        in_capture(lambda: npu.NPUGraph().capture_begin()),
        "a capture is under way in this thread",
    ),
    "reset in its capture": (
        in_capture(lambda: npu.capturing_graph().reset()),  # type: ignore[union-attr]
        "cannot be reset while it is being captured",
    ),
    "no capture to end": (lambda: npu.NPUGraph().capture_end(), "capture_begin"),
    "begun twice": (begun_twice, "holds a capture already"),
    "default stream": (lambda: npu.NPUGraph().capture_begin(), "default stream"),
    "ends elsewhere": (ends_elsewhere, "cannot end on"),
    "error mode": (
        lambda: npu.NPUGraph().capture_begin(capture_error_mode="strict"),
        "global, thread_local, relaxed",
    ),
    "pool": (
        lambda: captured(lambda: None, pool="mine"),
        "'mine' is no memory pool",
    ),
    "no pool yet": (lambda: npu.NPUGraph().pool(), "nothing was captured"),
    "stream synchronized": (
        in_capture(lambda: npu.current_stream().synchronize()),
        r"synchronize\(\) waits",
    ),
    "device synchronized": (in_capture(npu.synchronize), r"synchronize\(\) waits"),
    "stream queried": (in_capture(lambda: npu.current_stream().query()), "query"),
    "event from outside": (recorded_outside, "recorded outside the capture"),
    "event waited for afterwards": (
        lambda: captured_event_outside().wait(),
        "in a capture that is over",
    ),
    "event synchronized": (
        lambda: captured_event_outside().synchronize(),
        "never happens",
    ),
    "event queried": (lambda: captured_event_outside().query(), "never happens"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_captures_that_are_refused(case: str) -> None:
    refused, message = REFUSED[case]
    with pytest.raises(CaptureError, match=message):
        refused()


def replayed_in_a_capture() -> None:
    made = captured(lambda: torch.zeros(1).add_(1))
    captured(made.replay)


def empty() -> npu.NPUGraph:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return captured(lambda: None)


def was_reset() -> npu.NPUGraph:
    made = captured(lambda: torch.zeros(1).add_(1))
    made.reset()
    return made


def failed() -> npu.NPUGraph:
    made = npu.NPUGraph()
    with pytest.raises(ZeroDivisionError), npu.graph(made):
        torch.zeros(1).add_(1)
        raise ZeroDivisionError("by hand")
    return made


NOT_REPLAYED: dict[str, tuple[Callable[[], object], str]] = {
    "never captured": (lambda: npu.NPUGraph().replay(), "nothing was captured"),
    "empty": (lambda: empty().replay(), "its capture was empty"),
    "reset": (lambda: was_reset().replay(), "it was reset"),
    "failed": (lambda: failed().replay(), "its capture failed: ZeroDivision.*by hand"),
    "in a capture": (replayed_in_a_capture, "cannot be replayed in a capture"),
    "nothing to dump": (lambda: npu.NPUGraph().debug_dump("x"), "nothing to dump"),
    "nothing to optimize": (
        lambda: npu.NPUGraph().super_kernel_optimize(),
        "nothing to optimize",
    ),
}


@pytest.mark.parametrize("case", NOT_REPLAYED)
def test_replays_that_are_refused(case: str) -> None:
    refused, message = NOT_REPLAYED[case]
    with pytest.raises(ReplayError, match=message):
        refused()


def test_what_is_not_modelled_says_what_to_use() -> None:
    with pytest.raises(NotModelledError, match="graph_task_group_begin"):
        captured(lambda: None, auto_dispatch_capture=True)
    with pytest.raises(NotModelledError, match="graph_task_update_begin"):
        npu.NPUGraph().update([{}])


def test_an_empty_capture_warns() -> None:
    with pytest.warns(UserWarning, match="the graph is empty"):
        captured(lambda: None)


def test_a_graph_can_be_used_again_after_a_failure_and_a_reset() -> None:
    made = failed()
    x = torch.zeros(1)
    for _ in range(2):
        with npu.graph(made):
            x.add_(1)
        made.replay()
        made.reset()
    assert x.item() == 4.0


def test_an_error_of_an_operator_that_is_caught_leaves_no_trace(tmp_path: Path) -> None:
    x, wrong = torch.zeros(2), torch.zeros(3)
    made = npu.NPUGraph()
    with torch.no_grad(), npu.graph(made):
        x.add_(1)
        with pytest.raises(RuntimeError):
            x.add_(wrong)
    assert names(made, tmp_path) == ["aten.add_.Tensor"]


def test_another_mode_that_is_entered_and_not_left_is_named() -> None:
    class Other(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            return func(*args, **(kwargs or {}))

    made, other = npu.NPUGraph(), Other()
    with npu.stream(npu.Stream()):
        made.capture_begin()
        other.__enter__()
        torch.zeros(1).add_(1)
        with pytest.raises(CaptureError, match="another dispatch mode"):
            made.capture_end()
        other.__exit__(None, None, None)
        made.capture_end()
    made.replay()


def test_collectives_are_waited_for_at_replay() -> None:
    dist = pytest.importorskip("torch.distributed")
    if not dist.is_available():
        pytest.skip("this torch has no torch.distributed")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        x, gathered = torch.ones(3), [torch.zeros(3)]
        made = npu.NPUGraph()
        with torch.no_grad(), npu.graph(made):
            y = x * 2
            dist.all_reduce(y, async_op=True).wait()
            dist.all_gather(gathered, y)
        x.fill_(5.0)
        made.replay()
        assert gathered[0].tolist() == [10.0] * 3
    finally:
        # A thread of gloo's may still be about to let go of a tensor, which takes the
        # GIL; who takes the group down waits for that thread, and holds the GIL.
        time.sleep(0.2)
        dist.destroy_process_group()
