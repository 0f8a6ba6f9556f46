"""Lengths on the host beside those on the device."""

from __future__ import annotations

import gc

import pytest
import torch

from ascend_shims.device.lengths import HostLengthsError, beside, host_view


def test_a_view_of_the_device_side_finds_the_same_part_of_the_host_side() -> None:
    device = torch.zeros(8, dtype=torch.int32)
    lengths = beside(device)
    lengths.set([5, 4, 3])
    found = host_view(device[1:4])
    assert found is not None
    assert found.tolist() == [4, 3, 0]
    assert found.data_ptr() == lengths.host[1:].data_ptr()


def test_what_is_shorter_clears_what_was_longer() -> None:
    lengths = beside(torch.zeros(4, dtype=torch.int32))
    lengths.set([9, 9, 9, 9])
    lengths.set([1])
    assert lengths.host.tolist() == lengths.np.tolist() == [1, 0, 0, 0]


def test_each_buffer_has_its_own() -> None:
    one, other = (torch.zeros(2, dtype=torch.int32) for _ in range(2))
    kept = beside(one), beside(other)
    kept[0].set([7])
    first, second = host_view(one), host_view(other)
    assert first is not None
    assert second is not None
    assert (first.tolist(), second.tolist()) == ([7, 0], [0, 0])


def test_a_buffer_without_a_host_side_has_none() -> None:
    assert host_view(torch.zeros(3, dtype=torch.int32)) is None


def test_it_goes_with_its_owner() -> None:
    device = torch.zeros(3, dtype=torch.int32)
    lengths = beside(device)
    assert host_view(device) is not None
    del lengths
    gc.collect()
    assert host_view(device) is None


def test_it_can_be_written_inside_and_outside_inference_mode() -> None:
    with torch.inference_mode():
        lengths = beside(torch.zeros(3, dtype=torch.int32))
        lengths.set([1, 2])
    lengths.host[2] = 3
    assert lengths.np.tolist() == [1, 2, 3]


def test_too_many_lengths_are_refused() -> None:
    with pytest.raises(HostLengthsError, match="3 lengths do not fit a buffer of 2"):
        beside(torch.zeros(2, dtype=torch.int32)).set([1, 2, 3])


def test_lengths_that_are_not_known_yet_are_asked_for_when_looked_at() -> None:
    device = torch.zeros(4, dtype=torch.int32)
    lengths = beside(device)
    asked = []

    def known() -> list[int]:
        asked.append(True)
        return [5, 6]

    lengths.set_when_known(2, known)
    lengths.add_one(3, 7)
    lengths.add_one(3, 7)
    assert asked == []
    found = host_view(device)
    assert found is not None
    assert found.tolist() == [7, 7, 2, 0]
    lengths.settle()
    assert asked == [True]


def test_what_is_not_known_yet_is_dropped_for_what_is() -> None:
    lengths = beside(torch.zeros(2, dtype=torch.int32))
    lengths.set_when_known(1, lambda: pytest.fail("nobody looks at these"))
    lengths.set([3])
    lengths.settle()
    assert lengths.np.tolist() == [3, 0]


@pytest.mark.parametrize("passes", [1, 2, 4])
def test_the_last_of_some_passes_adds_nothing(passes: int) -> None:
    lengths = beside(torch.zeros(2, dtype=torch.int32))
    for _ in range(2):
        lengths.set([3])
        for _ in range(passes):
            lengths.count_up(1, 100, passes)
        assert lengths.np.tolist() == [2 + passes, 0]
