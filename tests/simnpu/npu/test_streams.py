from __future__ import annotations

import threading

import pytest
import torch

from ascend_shims.simnpu import npu
from ascend_shims.simnpu.npu.errors import DeviceError, EventError, NotModelledError


def test_the_current_stream_is_that_of_the_thread() -> None:
    stream = npu.Stream()
    seen: list[npu.Stream] = []
    with npu.stream(stream):
        thread = threading.Thread(target=lambda: seen.append(npu.current_stream()))
        thread.start()
        thread.join()
        assert npu.current_stream() == stream
    assert npu.current_stream() == npu.default_stream()
    assert seen == [npu.default_stream()]


def test_the_current_stream_comes_back_after_an_exception() -> None:
    outer, inner = npu.Stream(), npu.Stream()
    with npu.stream(outer):
        with pytest.raises(ValueError, match="by hand"), npu.stream(inner):
            raise ValueError("by hand")
        assert npu.current_stream() == outer
        with npu.stream(None):
            assert npu.current_stream() == outer
    before = npu.current_stream()
    npu.set_stream(None)
    assert npu.current_stream() == before


def test_streams_are_told_apart_by_number() -> None:
    one, other = npu.Stream(), npu.Stream(priority=-1)
    again = npu.Stream(stream_id=one.stream_id, device_index=0, device_type=20)
    assert one == again
    assert one != other
    assert len({one, again, other}) == 2
    assert one != one.stream_id
    assert other.priority == -1
    with pytest.raises(NotModelledError, match="no stream number 100000"):
        npu.Stream(stream_id=100000)
    with pytest.raises(NotModelledError, match="is_sync_launch"):
        npu.Stream(is_sync_launch=1)


@pytest.mark.parametrize(
    "device", [None, 0, "npu", "npu:0", "cpu", torch.device("cpu")]
)
def test_the_one_device(device: object) -> None:
    npu.set_device(device)
    assert npu.Stream(device).device == torch.device("cpu")
    assert npu.current_stream(device) == npu.default_stream(device)
    npu.synchronize(device)
    assert npu.get_device_properties(device).total_memory == npu.mem_get_info()[1]


@pytest.mark.parametrize("device", [1, "npu:1", "cuda", torch.device("meta")])
def test_there_is_no_other_device(device: object) -> None:
    with pytest.raises(DeviceError, match="there is one NPU here"):
        npu.set_device(device)


def test_what_the_device_says_of_itself() -> None:
    assert npu.is_available()
    assert npu.device_count() == 1
    assert npu.current_device() == 0
    assert npu.get_device_name() == npu.get_device_properties().name


def test_events_keep_time_when_asked() -> None:
    start, end, plain = npu.Event(True), npu.Event(enable_timing=True), npu.Event()
    with pytest.raises(EventError, match="has not happened"):
        start.elapsed_time(end)
    assert start.query()
    start.record()
    end.record()
    plain.record()
    nanoseconds = end.recorded_time() - start.recorded_time()
    assert nanoseconds >= 0
    assert start.elapsed_time(end) == pytest.approx(nanoseconds / 1e6, abs=1e-3)
    with pytest.raises(EventError, match=r"Event\(enable_timing=True\)"):
        start.elapsed_time(plain)


def test_events_stay_in_their_process() -> None:
    for call in (
        lambda: npu.Event(interprocess=True),
        lambda: npu.Event().ipc_handle(),
        lambda: npu.Event.from_ipc_handle(0, b""),
    ):
        with pytest.raises(NotModelledError, match="stay in their process"):
            call()


def test_seeds_repeat() -> None:
    npu.manual_seed(3)
    one = torch.rand(4)
    npu.manual_seed_all(3)
    assert torch.equal(one, torch.rand(4))
