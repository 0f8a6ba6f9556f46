from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.simnpu import npu
from ascend_shims.simnpu.npu import hazards

from . import operators

A, B = npu.Stream(), npu.Stream()


def on(stream: npu.Stream, body: Callable[[], object]) -> None:
    with npu.stream(stream):
        body()


def kinds(body: Callable[[torch.Tensor], object]) -> list[str]:
    x = torch.zeros(4, 4)
    with torch.no_grad(), hazards.watching() as found:
        body(x)
        npu.synchronize()
    return [hazard.kind for hazard in found]


def unjoined(
    first: Callable[[torch.Tensor], object], second: Callable[[torch.Tensor], object]
) -> Callable[[torch.Tensor], object]:
    def body(x: torch.Tensor) -> None:
        on(A, lambda: first(x))
        on(B, lambda: second(x))

    return body


def write(x: torch.Tensor) -> None:
    x.add_(1)


def read(x: torch.Tensor) -> None:
    x.sum()


def early(x: torch.Tensor) -> None:
    npu.Event().wait(A)


def late_record(x: torch.Tensor) -> None:
    """The event was recorded before the write that matters."""
    on(A, lambda: write(x))
    event = A.record_event()
    on(A, lambda: write(x))
    B.wait_event(event)
    on(B, lambda: read(x))


def wrong_way(x: torch.Tensor) -> None:
    on(A, lambda: write(x))
    A.wait_stream(B)
    on(B, lambda: read(x))


def replayed(x: torch.Tensor) -> None:
    graph = npu.NPUGraph()
    with npu.graph(graph):
        write(x)
    npu.synchronize()
    on(A, graph.replay)
    on(B, lambda: read(x))
    npu.synchronize()
    graph.reset()


def reused(x: torch.Tensor) -> None:
    """A weak reference reads what the next owner of the memory writes."""
    graph = npu.NPUGraph()
    with npu.graph(graph):
        weak = npu.weak_ref_tensor(torch.empty(512, dtype=torch.uint8))
        torch.empty(512, dtype=torch.uint8).fill_(1)
    on(B, lambda: read(weak))
    npu.synchronize()
    graph.reset()


def overtaken(x: torch.Tensor) -> None:
    event = npu.ExternalEvent()
    event.wait(A)
    on(A, lambda: write(x))
    event.record(B)


FOUND: dict[str, tuple[Callable[[torch.Tensor], object], list[str]]] = {
    "read after write": (unjoined(write, read), ["read-after-write"]),
    "write after read": (unjoined(read, write), ["write-after-read"]),
    # In place: reads too, but one report is enough.
    "write after write": (unjoined(write, write), ["write-after-write"]),
    "out=": (
        unjoined(lambda x: torch.ones(4, 4, out=x), read),
        ["read-after-write"],
    ),
    "overlapping views": (
        unjoined(lambda x: x[:, 1].add_(1), lambda x: x[1].sum()),
        ["read-after-write"],
    ),
    "in a composite": (
        unjoined(lambda x: torch.ops.rigtest.scaled(x, x[0, 0], 1.0), read),
        ["read-after-write"],
    ),
    "a kernel": (
        unjoined(
            lambda x: operators.attention(torch.ones(4, 4), [1], out=x),
            read,
        ),
        ["read-after-write"],
    ),
    "unrecorded event": (early, ["event-not-recorded"]),
    "recorded too early": (late_record, ["read-after-write"]),
    "waits the wrong way round": (wrong_way, ["read-after-write"]),
    "a replay": (replayed, ["read-after-write"]),
    "reused memory": (reused, ["read-after-write"]),
    "overtakes a parked replay": (overtaken, ["overtakes-parked"]),
}


@pytest.mark.parametrize("case", FOUND)
def test_found(case: str) -> None:
    body, expected = FOUND[case]
    assert kinds(body) == expected


def joined_by_event(x: torch.Tensor) -> None:
    on(A, lambda: write(x))
    B.wait_event(A.record_event())
    on(B, lambda: write(x))


def joined_by_stream(x: torch.Tensor) -> None:
    on(A, lambda: write(x))
    B.wait_stream(A)
    on(B, lambda: write(x))
    A.wait_stream(B)
    on(A, lambda: read(x))


def joined_through_a_third(x: torch.Tensor) -> None:
    third = npu.Stream()
    on(A, lambda: write(x))
    third.wait_stream(A)
    B.wait_stream(third)
    on(B, lambda: write(x))


def joined_by_the_host(wait: Callable[[npu.Event], object]) -> Callable[..., None]:
    def body(x: torch.Tensor) -> None:
        on(A, lambda: write(x))
        wait(A.record_event())
        on(B, lambda: write(x))

    return body


def new_memory(x: torch.Tensor) -> None:
    for _ in range(20):
        on(A, lambda: torch.ones(64).add_(1))
        on(B, lambda: torch.ones(64).add_(1))


def first_use_of_a_guard(x: torch.Tensor) -> None:
    """A buffer's guard is synchronized before anybody recorded it."""
    event = npu.Event()
    event.synchronize()
    event.record(A)
    event.synchronize()


def forked_in_a_capture(x: torch.Tensor) -> None:
    graph = npu.NPUGraph()
    with npu.graph(graph):
        write(x)
        B.wait_stream(npu.current_stream())
        on(B, lambda: write(x))
        npu.current_stream().wait_stream(B)
        write(x)
    npu.synchronize()
    for _ in range(2):
        on(A, graph.replay)
    npu.synchronize()
    graph.reset()


def parked_and_joined(x: torch.Tensor) -> None:
    event, graph = npu.ExternalEvent(), npu.NPUGraph()
    with npu.graph(graph):
        event.wait()
        event.reset()
        write(x)
    npu.synchronize()
    on(A, graph.replay)
    done = A.record_event()
    B.wait_event(done)
    event.record(npu.Stream())
    on(B, lambda: read(x))
    npu.synchronize()
    graph.reset()


NONE: dict[str, Callable[[torch.Tensor], object]] = {
    "two reads": unjoined(read, read),
    "joined by an event": joined_by_event,
    "joined by a stream": joined_by_stream,
    "joined through a third stream": joined_through_a_third,
    "host waits for the event": joined_by_the_host(lambda event: event.synchronize()),
    "host waits for the stream": joined_by_the_host(lambda event: A.synchronize()),
    "host waits for the device": joined_by_the_host(lambda event: npu.synchronize()),
    "different halves": unjoined(lambda x: write(x[:2]), lambda x: write(x[2:])),
    "different columns": unjoined(lambda x: write(x[:, 0]), lambda x: write(x[:, 1])),
    "only the shape": unjoined(write, lambda x: torch.zeros_like(x)),
    "only a view": unjoined(write, lambda x: x.reshape(-1)[:2].view(1, 2).t()),
    "only metadata": unjoined(write, lambda x: x.detach().t_().unsqueeze_(0)),
    "new memory at old addresses": new_memory,
    "first use of a guard": first_use_of_a_guard,
    "forked in a capture": forked_in_a_capture,
    "parked and joined": parked_and_joined,
}


@pytest.mark.parametrize("case", NONE)
def test_none_invented(case: str) -> None:
    assert kinds(NONE[case]) == []


def test_a_launch_writes_what_changes() -> None:
    kernels = pytest.importorskip("tests.simnpu.npu.kernels")
    one, two, out = torch.ones(4), torch.ones(4), torch.zeros(4)
    with hazards.watching() as found:
        on(A, lambda: kernels.add[(1,)](one, two, out, 4, 1, BLOCK=4))
        on(B, lambda: one.sum())
        assert found == []
        on(B, lambda: out.sum())
        npu.synchronize()
    assert [hazard.kind for hazard in found] == ["read-after-write"]
    assert "triton._add" in found[0].message


def test_nothing_is_watched_afterwards() -> None:
    with hazards.watching() as found:
        pass
    unjoined(write, write)(torch.zeros(2))
    assert found == []
    npu.synchronize()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([A, B]), st.booleans(), st.booleans()), max_size=12
    )
)
def test_exactly_the_pairs_that_nothing_orders(
    steps: list[tuple[npu.Stream, bool, bool]],
) -> None:
    """Reads and writes of one buffer on two streams, sometimes joined."""
    x = torch.zeros(2)
    done: list[tuple[set[npu.Stream], bool]] = []
    expected = False
    with torch.no_grad(), hazards.watching() as found:
        for stream, writes, joins in steps:
            if joins:
                other = B if stream == A else A
                stream.wait_stream(other)
                for before, _ in done:
                    if other in before:
                        before.add(stream)
            expected |= any(
                stream not in before and (wrote or writes) for before, wrote in done
            )
            on(stream, lambda writes=writes: write(x) if writes else read(x))  # type: ignore[misc]
            done.append(({stream}, writes))
            if expected:
                break
        npu.synchronize()
    assert bool(found) == expected


@pytest.mark.parametrize(("value", "count"), [("1", 1), ("0", 0)])
def test_a_process_that_watches_itself(value: str, count: int) -> None:
    code = """
import torch
from ascend_shims.simnpu import npu
x = torch.zeros(2)
npu.synchronize()
with npu.stream(npu.Stream()):
    x.add_(1)
x.sum()
print(len(npu.found_in_process()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ASCEND_SHIMS_SIM_HAZARDS": value},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(count)]
