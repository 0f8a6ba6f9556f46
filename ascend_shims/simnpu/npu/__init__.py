"""`torch.npu` in software: streams, events, graphs and memory on the CPU.

Names and parameters are those of torch_npu. The README of the package above says
what is modelled and what is not. Beside torch_npu's names: `kernel` says that an
operator stands for one kernel, `allocate`, `account` and `Memory.limited` are for
whoever builds a device on top.
"""

from __future__ import annotations

from .devices import (
    DeviceProperties,
    current_device,
    device_count,
    get_device_name,
    get_device_properties,
    is_available,
    manual_seed,
    manual_seed_all,
    set_device,
)
from .errors import OutOfMemoryError
from .events import Event, ExternalEvent
from .graphs import (
    NPUGraph,
    capturing_graph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    super_kernel_scope_begin,
    super_kernel_scope_end,
)
from .kernels import kernel
from .memory import (
    account,
    allocate,
    device_memory,
    empty_cache,
    max_memory_allocated,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
)
from .streams import (
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
    synchronize,
)
from .tasks import (
    graph_task_group_begin,
    graph_task_group_end,
    graph_task_update_begin,
    graph_task_update_end,
)
from .watched import found_in_process, watch_if_asked
from .weakrefs import weak_ref_tensor, weak_ref_tensors

__all__ = [
    "DeviceProperties",
    "Event",
    "ExternalEvent",
    "NPUGraph",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "account",
    "allocate",
    "capturing_graph",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "device_memory",
    "empty_cache",
    "found_in_process",
    "get_device_name",
    "get_device_properties",
    "graph",
    "graph_pool_handle",
    "graph_task_group_begin",
    "graph_task_group_end",
    "graph_task_update_begin",
    "graph_task_update_end",
    "is_available",
    "is_current_stream_capturing",
    "kernel",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "set_stream",
    "stream",
    "super_kernel_scope_begin",
    "super_kernel_scope_end",
    "synchronize",
    "weak_ref_tensor",
    "weak_ref_tensors",
]

watch_if_asked()
