from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.simnpu import npu
from ascend_shims.simnpu.npu.errors import MemoryBudgetError
from ascend_shims.simnpu.npu.memory import GRANULE, Memory, parse_bytes, rounded
from ascend_shims.simnpu.npu.pools import Pool

MIB = 1 << 20


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512MiB", 512 * MIB),
        ("2 GiB", 2 << 30),
        ("1.5g", 3 << 29),
        ("64kb", 64 << 10),
        ("1T", 1 << 40),
        ("4096", 4096),
        ("4096 B", 4096),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1", "0", "1 PiB", "MiB", "1,5g"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(MemoryBudgetError, match="for example 512MiB"):
        parse_bytes(text)


def test_the_budget_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_SIM_MEMORY", "3MiB")
    assert Memory().budget == 3 * MIB
    monkeypatch.delenv("ASCEND_SHIMS_SIM_MEMORY")
    assert Memory().budget == 64 << 30


def test_what_is_allocated_counts_until_its_last_view_dies() -> None:
    before = npu.memory_allocated()
    free, total = npu.mem_get_info()
    tensor = npu.allocate(1000)
    assert (tensor.dtype, tensor.numel()) == (torch.uint8, 1000)
    assert npu.memory_allocated() == before + 1024
    assert npu.mem_get_info() == (free - 1024, total)
    view = tensor[10:20].view(2, 5)
    del tensor
    assert npu.memory_allocated() == before + 1024
    del view
    assert npu.memory_allocated() == before
    assert npu.mem_get_info() == (free, total)


def test_what_is_accounted_counts_once() -> None:
    before = npu.memory_allocated()
    tensor = torch.zeros(256)
    for each in (tensor, tensor[3:], npu.allocate(0)):
        npu.account(each)
    assert npu.memory_allocated() == before + 1024
    mine = npu.allocate(512)
    npu.account(mine)
    assert npu.memory_allocated() == before + 1536
    del tensor, mine, each
    assert npu.memory_allocated() == before


def test_the_peak() -> None:
    npu.reset_peak_memory_stats()
    before = npu.max_memory_allocated()
    one = npu.allocate(1024)
    del one
    two = npu.allocate(512)
    assert npu.max_memory_allocated() == before + 1024
    npu.reset_peak_memory_stats()
    assert npu.max_memory_allocated() == before + 512
    del two


def test_out_of_memory_says_how_much_there_is() -> None:
    with npu.device_memory().limited(4096):
        kept = npu.allocate(1024)
        with pytest.raises(torch.OutOfMemoryError) as caught:
            npu.allocate(3073)
        assert "3584 bytes were asked for, 3072 of 4096 are free (1024 are" in str(
            caught.value
        )
        with pytest.raises(npu.OutOfMemoryError):
            npu.account(torch.zeros(4096))
        assert npu.memory_allocated() == 1024
        npu.allocate(3072)
        del kept


def test_threads_keep_the_books_together() -> None:
    before = npu.memory_allocated()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            held = [npu.allocate(512) for _ in range(50)]
            del held[::2]
        except BaseException as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert npu.memory_allocated() == before


def test_tensors_that_die_in_a_garbage_collection() -> None:
    before = npu.memory_allocated()
    for _ in range(20):
        cycle: list[object] = [npu.allocate(512)]
        cycle.append(cycle)
    del cycle
    gc.collect()
    assert npu.memory_allocated() == before


def workspaces(
    sizes: list[int], keep: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[list[npu.NPUGraph], list[torch.Tensor]]:
    """Capture one graph a size, each with a workspace, all on one pool."""
    pool = npu.graph_pool_handle()
    graphs, held = [], []
    for size in sizes:
        graph = npu.NPUGraph()
        with npu.graph(graph, pool=pool):
            workspace = torch.empty(size, dtype=torch.uint8)
            workspace.fill_(1)
        held.append(keep(workspace))
        del workspace
        graphs.append(graph)
    return graphs, held


SIZES = [2 * MIB] * 16


def test_strongly_held_workspaces_need_a_block_each() -> None:
    with npu.device_memory().limited(5 * MIB):
        with pytest.raises(npu.OutOfMemoryError, match=r"2097152 bytes were asked for"):
            workspaces(SIZES, lambda workspace: workspace)
        gc.collect()
        assert npu.device_memory().reserved == 0


@pytest.mark.parametrize("sizes", [SIZES, [16 * MIB >> n for n in range(8)]])
def test_weakly_held_workspaces_share_one_block(sizes: list[int]) -> None:
    with npu.device_memory().limited(sum(sizes[:2]) + MIB):
        graphs, held = workspaces(sizes, npu.weak_ref_tensor)
        assert npu.memory_allocated() == 0
        assert npu.device_memory().reserved <= sizes[0] + 2 * MIB
        assert held[0].data_ptr() == held[1].data_ptr()
        for graph, weak in zip(graphs, held, strict=True):
            weak.zero_()
            graph.replay()
            assert bool((weak == 1).all())
        npu.synchronize()
    for graph in graphs:
        assert npu.device_memory().reserved > 0
        graph.reset()
    assert npu.device_memory().reserved == 0


def test_memory_from_outside_the_pool_is_held_until_the_reset() -> None:
    graph, target = npu.NPUGraph(), torch.zeros(512, dtype=torch.uint8)
    source = npu.allocate(512).fill_(7)
    with npu.graph(graph):
        target.copy_(source)
    del source
    assert npu.memory_allocated() == 512
    graph.replay()
    assert target.unique().tolist() == [7]
    graph.reset()
    assert npu.memory_allocated() == 0


def test_memory_of_another_graphs_pool_is_held_too() -> None:
    first, second = npu.NPUGraph(), npu.NPUGraph()
    with npu.graph(first):
        made = torch.empty(128, dtype=torch.uint8).fill_(3)
    with npu.graph(second):
        other = made + 1
    del made
    assert npu.memory_allocated() == 512
    second.replay()
    assert other.unique().tolist() == [4]
    second.reset()
    assert npu.memory_allocated() == 0
    first.reset()


def test_a_pool_outlives_its_graphs_while_a_tensor_does() -> None:
    graph = npu.NPUGraph()
    with npu.graph(graph):
        held = torch.empty(600, dtype=torch.uint8)
        torch.empty(2000, dtype=torch.uint8)
        held.fill_(5)
    assert npu.device_memory().reserved == 1024 + 2048
    del graph
    assert npu.device_memory().reserved == 1024
    assert held.unique().tolist() == [5]
    del held
    assert npu.device_memory().reserved == 0


def test_an_exception_in_a_capture_gives_everything_back() -> None:
    graph = npu.NPUGraph()
    with pytest.raises(ValueError, match="by hand"), npu.graph(graph):
        torch.empty(5000, dtype=torch.uint8).fill_(0)
        raise ValueError("by hand")
    assert npu.device_memory().reserved == 0


def test_out_of_memory_in_a_capture_leaves_other_graphs_usable() -> None:
    pool, x = npu.graph_pool_handle(), torch.zeros(1)
    good, bad = npu.NPUGraph(), npu.NPUGraph()
    with npu.graph(good, pool=pool):
        x.add_(1)
    with (
        npu.device_memory().limited(1024),
        pytest.raises(npu.OutOfMemoryError),
        npu.graph(bad, pool=pool),
    ):
        torch.empty(4096, dtype=torch.uint8)
    good.replay()
    assert x.item() == 2.0
    good.reset()


def test_host_memory_is_not_the_devices() -> None:
    graph, x = npu.NPUGraph(), torch.zeros(1)
    with npu.graph(graph):
        x.add_(1)
        torch.empty(4096, device="meta")
        torch.empty(0)
    assert npu.device_memory().reserved == 0


def test_a_shape_is_served_as_it_was_asked_for() -> None:
    like = torch.zeros(2, 3, 4, dtype=torch.float64).transpose(0, 2)
    graph, x = npu.NPUGraph(), torch.zeros(1)
    with npu.graph(graph):
        x.add_(1)
        made = [
            torch.empty_like(like),
            like.new_empty(5, 7),
            torch.empty_strided((2, 2), (3, 7), dtype=torch.int32),
            torch.empty(2, 3, 4, 5, memory_format=torch.channels_last),
        ]
    wanted = [
        torch.empty_like(like),
        like.new_empty(5, 7),
        torch.empty_strided((2, 2), (3, 7), dtype=torch.int32),
        torch.empty(2, 3, 4, 5, memory_format=torch.channels_last),
    ]
    for one, other in zip(made, wanted, strict=True):
        assert (one.dtype, one.shape, one.stride()) == (
            other.dtype,
            other.shape,
            other.stride(),
        )
    sizes = [rounded(one.untyped_storage().nbytes()) for one in wanted]
    assert npu.memory_allocated() == sum(sizes)
    del made, one


def test_weak_references() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    weak = npu.weak_ref_tensor(tensor.t())
    assert (weak.shape, weak.stride()) == ((3, 2), (1, 3))
    weak[0, 0] = 9
    assert tensor[0, 0] == 9
    mine = npu.allocate(100)
    one, (two,), named = (
        npu.weak_ref_tensors([mine])[0],
        npu.weak_ref_tensors((mine,)),
        npu.weak_ref_tensors({"a": mine})["a"],
    )
    assert {one.data_ptr(), two.data_ptr(), named.data_ptr()} == {mine.data_ptr()}
    del mine
    assert npu.memory_allocated() == 0
    assert npu.weak_ref_tensor(3) == 3
    with torch.inference_mode():
        inside = npu.weak_ref_tensor(torch.zeros(2))
    inside.add_(1)
    with pytest.raises(TypeError, match="not set"):
        npu.weak_ref_tensors({1})


class Carrier:
    """Shaped as vLLM's `IntermediateTensors`."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        self.tensors = tensors


def test_weak_references_in_what_carries_tensors() -> None:
    mine = npu.allocate(100)
    carried = npu.weak_ref_tensors(Carrier({"hidden": mine}))
    assert isinstance(carried, Carrier)
    assert carried.tensors["hidden"].data_ptr() == mine.data_ptr()
    del mine
    assert npu.memory_allocated() == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["take", "drop"]),
            st.integers(1, 6000),
            st.sampled_from([1, 2]),
        ),
        max_size=40,
    )
)
def test_a_pool_never_lends_a_byte_twice_and_ends_empty(
    actions: list[tuple[str, int, int]],
) -> None:
    memory = Memory(1 << 20)
    pool = Pool((0, 0), memory)
    pool.join()
    held: list[torch.Tensor] = []
    for action, number, stream in actions:
        if action == "take":
            held.append(pool.allocate(number, stream))
            assert held[-1].numel() == number
        elif held:
            del held[number % len(held)]
        spans = sorted((one.data_ptr(), one.numel()) for one in held)
        for (start, length), (following, _) in itertools.pairwise(spans):
            assert start + length <= following
        assert memory.allocated == sum(rounded(one.numel()) for one in held)
        assert memory.reserved >= memory.allocated
        assert memory.reserved % GRANULE == 0
    pool.leave()
    held.clear()
    assert (memory.allocated, memory.reserved) == (0, 0)
