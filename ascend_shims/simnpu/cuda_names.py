"""`torch.cuda` names, served by the software NPU.

A device that is not CUDA has to serve the names that upstream's runner uses, in
the plainest way, before anything runs at all. That is all that happens here; what
the names should do beyond that is the gap `npu-graph`'s.
"""

from __future__ import annotations

import torch

from . import npu

__all__ = ["NAMES", "serve"]

NAMES = {
    "Event": "Event",
    "Stream": "Stream",
    "stream": "stream",
    "default_stream": "default_stream",
    "current_stream": "current_stream",
    "set_stream": "set_stream",
    "synchronize": "synchronize",
    "current_device": "current_device",
    "mem_get_info": "mem_get_info",
    "graph_pool_handle": "graph_pool_handle",
    "CUDAGraph": "NPUGraph",
    "graph": "graph",
    "is_current_stream_capturing": "is_current_stream_capturing",
}
"""`torch.cuda` name to `torch.npu` name."""


def serve() -> None:
    """Put the software NPU's objects in the place of `torch.cuda`'s, for good."""
    for name, ours in NAMES.items():
        setattr(torch.cuda, name, getattr(npu, ours))
    torch.accelerator.synchronize = npu.synchronize
    torch.accelerator.empty_cache = npu.empty_cache
    torch.accelerator.get_memory_info = npu.mem_get_info
    torch.npu = npu  # type: ignore[attr-defined]
