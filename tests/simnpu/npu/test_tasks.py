from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from ascend_shims.simnpu import npu
from ascend_shims.simnpu.npu import streams
from ascend_shims.simnpu.npu.errors import (
    CaptureError,
    DeadlockError,
    ReplayError,
    TaskError,
)

from . import operators


@dataclass
class Layer:
    """A captured attention whose lengths are updated before each replay."""

    waits: bool = True
    q: torch.Tensor = field(default_factory=lambda: torch.ones(2))
    out: torch.Tensor = field(default_factory=lambda: torch.zeros(2))
    after: torch.Tensor = field(default_factory=lambda: torch.zeros(2))
    event: npu.ExternalEvent = field(default_factory=npu.ExternalEvent)
    stream: npu.Stream = field(default_factory=npu.Stream)
    graph: npu.NPUGraph = field(default_factory=npu.NPUGraph)

    def __post_init__(self) -> None:
        with torch.no_grad(), npu.graph(self.graph):
            here = npu.current_stream()
            if self.waits:
                self.event.wait(here)
                self.event.reset(here)
            self.workspace = torch.empty(64, dtype=torch.uint8)
            npu.graph_task_group_begin(here)
            self.call([1])
            self.handle = npu.graph_task_group_end(here)
            torch.add(self.out, 1, out=self.after)
        operators.ran.clear()

    def let_go(self) -> None:
        # pytest keeps what fixtures gave until all of them are torn down.
        self.graph.reset()
        del self.workspace

    def call(self, lengths: list[int], **other: Any) -> None:
        given = {"workspace": self.workspace, "out": self.out, **other}
        operators.attention(self.q, lengths, **given)

    def update(self, lengths: list[int], **other: Any) -> None:
        with npu.stream(self.stream):
            npu.graph_task_update_begin(self.stream, self.handle)
            try:
                self.call(lengths, **other)
            finally:
                npu.graph_task_update_end(self.stream)


@pytest.fixture
def layer() -> Iterator[Layer]:
    made = Layer(waits=False)
    yield made
    made.let_go()


@pytest.fixture
def waiting() -> Iterator[Layer]:
    made = Layer()
    yield made
    made.let_go()


def test_a_replay_without_an_update_has_the_lengths_of_the_capture(
    layer: Layer,
) -> None:
    layer.graph.replay()
    assert operators.ran == [[1]]
    assert layer.out.tolist() == [1.0, 1.0]


def test_an_update_runs_nothing_and_lasts(layer: Layer) -> None:
    layer.out.zero_()
    layer.update([2, 3])
    assert operators.ran == []
    assert layer.out.tolist() == [0.0, 0.0]
    for _ in range(2):
        layer.graph.replay()
    assert operators.ran == [[2, 3], [2, 3]]
    assert layer.after.tolist() == [6.0, 6.0]


def test_lengths_are_taken_by_value_at_the_update(layer: Layer) -> None:
    lengths = [2, 3]
    layer.update(lengths)
    lengths[0] = 100
    layer.graph.replay()
    assert operators.ran == [[2, 3]]


def test_an_input_may_be_another_tensor(layer: Layer) -> None:
    layer.q = torch.full((2,), 10.0)
    layer.update([2])
    layer.q = torch.zeros(2)
    gc.collect()
    layer.graph.replay()
    assert layer.out.tolist() == [20.0, 20.0]


def test_weak_references_to_the_captured_memory_are_the_same_memory(
    layer: Layer,
) -> None:
    weak = npu.weak_ref_tensors([layer.workspace, layer.out])
    layer.update([4], workspace=weak[0], out=weak[1])
    layer.graph.replay()
    assert operators.ran == [[4]]


@pytest.mark.parametrize(
    "other",
    [
        {"out": torch.zeros(2)},
        {"workspace": torch.empty(64, dtype=torch.uint8)},
        {"workspace": None},
    ],
    ids=["out", "workspace", "no workspace"],
)
def test_other_memory_is_refused_and_changes_nothing(
    layer: Layer, other: dict[str, Any]
) -> None:
    (name,) = other
    with pytest.raises(TaskError, match=f"other memory as {name}"):
        layer.update([5], **other)
    layer.graph.replay()
    assert operators.ran == [[1]]
    layer.update([6])
    layer.graph.replay()
    assert operators.ran == [[1], [6]]


def test_host_work_between_begin_and_end_runs(layer: Layer) -> None:
    lengths = torch.tensor([2, 3])
    with npu.stream(layer.stream):
        npu.graph_task_update_begin(layer.stream, layer.handle)
        layer.call(lengths.cumsum(0).tolist())
        npu.graph_task_update_end(layer.stream)
    layer.graph.replay()
    assert operators.ran == [[2, 5]]


def test_what_another_stream_does_meanwhile_runs(layer: Layer) -> None:
    out = torch.zeros(2)
    with npu.stream(layer.stream):
        npu.graph_task_update_begin(layer.stream, layer.handle)
        with npu.stream(npu.default_stream()):
            operators.attention(torch.ones(2), [8], out=out)
        layer.call([9])
        npu.graph_task_update_end(layer.stream)
    assert (operators.ran, out.tolist()) == ([[8]], [8.0, 8.0])


def begin_update(layer: Layer) -> None:
    npu.graph_task_update_begin(layer.stream, layer.handle)


def end_update(layer: Layer) -> None:
    npu.graph_task_update_end(layer.stream)


def other_operator(layer: Layer) -> None:
    with npu.stream(layer.stream):
        begin_update(layer)
        try:
            torch.ops.rigtest.other(layer.out)
        finally:
            end_update(layer)


def called_twice(layer: Layer) -> None:
    with npu.stream(layer.stream):
        begin_update(layer)
        try:
            layer.call([1])
            layer.call([1])
        finally:
            end_update(layer)


def not_called(layer: Layer) -> None:
    begin_update(layer)
    end_update(layer)


def called_elsewhere(layer: Layer) -> None:
    begin_update(layer)
    layer.call([1])
    end_update(layer)


def updated_twice_at_once(layer: Layer) -> None:
    begin_update(layer)
    try:
        begin_update(layer)
    finally:
        with npu.stream(layer.stream):
            layer.call([1])
        end_update(layer)


def after_reset(layer: Layer) -> None:
    layer.graph.reset()
    begin_update(layer)


def after_death(layer: Layer) -> None:
    layer.graph = npu.NPUGraph()
    gc.collect()
    begin_update(layer)


def update_in_capture(layer: Layer) -> None:
    with npu.graph(npu.NPUGraph()):
        npu.graph_task_update_begin(npu.current_stream(), layer.handle)


def group_outside(layer: Layer) -> None:
    npu.graph_task_group_begin(layer.stream)


def group_end_outside(layer: Layer) -> None:
    npu.graph_task_group_end(layer.stream)


def group_twice(layer: Layer) -> None:
    with npu.graph(npu.NPUGraph()):
        npu.graph_task_group_begin(npu.current_stream())
        npu.graph_task_group_begin(npu.current_stream())


def group_not_begun(layer: Layer) -> None:
    with npu.graph(npu.NPUGraph()):
        npu.graph_task_group_end(npu.current_stream())


def group_of_nothing(layer: Layer) -> None:
    with npu.graph(npu.NPUGraph()):
        npu.graph_task_group_begin(npu.current_stream())
        npu.graph_task_group_end(npu.current_stream())


REFUSED: dict[str, tuple[Callable[[Layer], None], str]] = {
    "other operator": (other_operator, "rigtest.other.default was called in the upd"),
    "called twice": (called_twice, "no further operator was to come"),
    "not called": (not_called, "called 0 of its 1 operators"),
    "called on another stream": (called_elsewhere, "with that stream current"),
    "updated twice at once": (updated_twice_at_once, "an update is under way"),
    "end without begin": (end_update, "call graph_task_update_begin first"),
    "after a reset": (after_reset, "was reset, is gone"),
    "after the graph's death": (after_death, "was reset, is gone"),
    "update in a capture": (update_in_capture, "update on another stream"),
    "no handle": (
        lambda layer: npu.graph_task_update_begin(layer.stream, object()),  # type: ignore[arg-type]
        "is no task group",
    ),
    "group outside a capture": (group_outside, "is not being captured"),
    "group's end outside a capture": (group_end_outside, "is not being captured"),
    "group in a group": (group_twice, "a task group is open already"),
    "group not begun": (group_not_begun, "call graph_task_group_begin first"),
    "group of nothing": (group_of_nothing, "no operator was called between"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_groups_and_updates_that_are_refused(layer: Layer, case: str) -> None:
    refused, message = REFUSED[case]
    with pytest.raises(TaskError, match=message):
        refused(layer)


def test_a_group_that_stays_open_fails_the_capture() -> None:
    graph = npu.NPUGraph()
    with pytest.raises(CaptureError, match="a task group was open"), npu.graph(graph):
        npu.graph_task_group_begin(npu.current_stream())
        operators.attention(torch.ones(2), [1], out=torch.zeros(2))
    with pytest.raises(ReplayError, match="a task group was open"):
        graph.replay()


def test_no_replay_and_no_capture_in_an_update(layer: Layer) -> None:
    with npu.stream(layer.stream):
        begin_update(layer)
        with pytest.raises(ReplayError, match="a task update is under way"):
            layer.graph.replay()
        with pytest.raises(CaptureError, match="a task update is under way"):
            npu.NPUGraph().capture_begin()
        layer.call([1])
        end_update(layer)


def test_a_group_of_several_operators() -> None:
    outs = [torch.zeros(1), torch.zeros(1)]
    graph, side = npu.NPUGraph(), npu.Stream()
    with npu.graph(graph):
        npu.graph_task_group_begin(npu.current_stream())
        for out in outs:
            operators.attention(torch.ones(1), [1], out=out)
        handle = npu.graph_task_group_end(npu.current_stream())
    with npu.stream(side):
        npu.graph_task_update_begin(side, handle)
        for number, out in enumerate(outs):
            operators.attention(torch.ones(1), [5 + number], out=out)
        npu.graph_task_update_end(side)
    graph.replay()
    assert [out.item() for out in outs] == [5.0, 6.0]


def finish(layer: Layer, lengths: list[int]) -> None:
    layer.update(lengths)
    layer.event.record(layer.stream)


def test_an_update_before_the_replay(waiting: Layer) -> None:
    finish(waiting, [7])
    waiting.graph.replay()
    npu.synchronize()
    assert operators.ran == [[7]]


def test_an_update_after_the_replay(waiting: Layer) -> None:
    waiting.after.zero_()
    for lengths in ([7], [8]):
        operators.ran.clear()
        waiting.graph.replay()
        assert operators.ran == []
        assert not npu.current_stream().query()
        finish(waiting, lengths)
        assert operators.ran == [lengths]
        npu.synchronize()
        assert waiting.after.tolist() == [lengths[0] + 1.0] * 2


def test_replays_queue_up_and_each_waits_for_its_own_update(waiting: Layer) -> None:
    waiting.graph.replay()
    waiting.graph.replay()
    finish(waiting, [7])
    assert operators.ran == [[7]]
    finish(waiting, [8])
    assert operators.ran == [[7], [8]]


def test_what_comes_before_the_wait_runs_at_once() -> None:
    x, event, graph = torch.zeros(1), npu.ExternalEvent(), npu.NPUGraph()
    with npu.graph(graph):
        x.add_(1)
        event.wait()
        event.reset()
        x.add_(10)
    x.zero_()
    graph.replay()
    assert x.item() == 1.0
    event.record(npu.Stream())
    assert x.item() == 11.0


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "PATIENCE", 0.01)


WAITS: dict[str, Callable[[npu.Event], object]] = {
    "stream": lambda event: npu.current_stream().synchronize(),
    "device": lambda event: npu.synchronize(),
    "event": lambda event: event.synchronize(),
    "capture": lambda event: npu.graph(npu.NPUGraph()).__enter__(),
}


@pytest.mark.parametrize("case", WAITS)
def test_waiting_for_a_parked_replay_names_the_event(
    waiting: Layer, impatient: None, case: str
) -> None:
    waiting.graph.replay()
    event = npu.Event()
    event.record()
    assert not event.query()
    with pytest.raises(DeadlockError) as caught:
        WAITS[case](event)
    assert f"it waits for {waiting.event}, which nobody has recorded" in str(
        caught.value
    )
    with pytest.raises(ReplayError, match="while a replay waits"):
        waiting.graph.reset()
    finish(waiting, [7])
    event.synchronize()
    assert event.query()
    waiting.graph.reset()


def test_the_event_is_named_through_other_streams(
    waiting: Layer, impatient: None
) -> None:
    other, third = npu.Stream(), npu.Stream()
    waiting.graph.replay()
    other.wait_stream(npu.current_stream())
    third.wait_stream(other)
    with pytest.raises(DeadlockError) as caught:
        third.synchronize()
    assert str(waiting.event) in str(caught.value)
    assert str(third) in str(caught.value)
    finish(waiting, [7])
    third.synchronize()


def test_another_thread_may_record_the_event(waiting: Layer) -> None:
    waiting.graph.replay()
    timer = threading.Timer(0.05, finish, (waiting, [7]))
    timer.start()
    npu.synchronize()
    assert operators.ran == [[7]]
    timer.join()


def test_a_record_that_is_itself_parked_opens_in_its_turn(waiting: Layer) -> None:
    """The update's own stream waits for a second event."""
    second = npu.ExternalEvent()
    waiting.graph.replay()
    second.wait(waiting.stream)
    waiting.update([7])
    waiting.event.record(waiting.stream)
    assert operators.ran == []
    second.record(npu.Stream())
    assert operators.ran == [[7]]


def test_an_external_event_recorded_in_a_graph() -> None:
    event, graph, x = npu.ExternalEvent(), npu.NPUGraph(), torch.zeros(1)
    with npu.graph(graph):
        x.add_(1)
        event.record()
    other = npu.Stream()
    event.wait(other)
    assert not other.query()
    graph.replay()
    assert other.query()


def test_a_replay_that_fails_when_it_goes_on_tells_whoever_recorded() -> None:
    event, graph, x = npu.ExternalEvent(), npu.NPUGraph(), torch.ones(2)
    with npu.graph(graph):
        event.wait()
        event.reset()
        x.nonzero()
    x[0] = 0
    graph.replay()
    with pytest.raises(ReplayError, match="depends on data"):
        event.record(npu.Stream())
    npu.synchronize()


def test_a_parked_replay_goes_on_in_the_midst_of_a_capture() -> None:
    """And is not captured by it."""
    layer = Layer()
    layer.graph.replay()
    layer.update([7])
    x, other = torch.zeros(1), npu.NPUGraph()
    with npu.stream(npu.Stream()):
        other.capture_begin()
        x.add_(1)
        layer.event.record(layer.stream)
        other.capture_end()
    assert operators.ran == [[7]]
    other.replay()
    assert operators.ran == [[7]]
    assert x.item() == 2.0
