"""The worker of the software NPU: upstream's for the CPU, and it captures graphs."""

from __future__ import annotations

import gc
import os
from typing import Any

import torch
import vllm.v1.worker.cpu.shm  # noqa: F401 - leaves placeholders in torch.cuda

from . import cuda_names, npu

# A device serves `torch.cuda` names after upstream has put placeholders there, and
# before the runner is loaded, which is when the gap npu-graph comes on top.
cuda_names.serve()

from vllm.platforms import current_platform  # noqa: E402
from vllm.utils import torch_utils  # noqa: E402
from vllm.v1.worker.cpu_worker import CPUWorker  # noqa: E402
from vllm.v1.worker.gpu_worker import (  # noqa: E402
    init_worker_distributed_environment,
)
from vllm.v1.worker.workspace import init_workspace_manager  # noqa: E402

__all__ = ["SimNPUWorker"]


class SimNPUWorker(CPUWorker):  # type: ignore[misc]
    def init_device(self) -> None:
        """Join the other ranks, register the device's operators, make the runner."""
        from . import moe, ops, rope
        from .runner import SimNPUModelRunner

        # Graphs cannot be captured on the default stream. Upstream gives a process
        # one of its own on CUDA, and a CPU none.
        own = npu.Stream()
        npu.set_stream(own)
        torch_utils._current_stream_tls.value = own
        ops.register()
        moe.register()
        if self.vllm_config.attention_config.backend is None:
            rope.register()

        self.device = torch.device("cpu")
        # Names the shared memory that ranks on one machine exchange through.
        where = self.distributed_init_method
        os.environ["VLLM_DIST_IDENT"] = (
            os.path.basename(where.removeprefix("file://"))  # noqa: PTH119
            if where.startswith("file://")
            else where.split(":")[-1]
        )
        init_worker_distributed_environment(
            self.vllm_config,
            self.rank,
            where,
            self.local_rank,
            current_platform.dist_backend,
        )
        torch_utils.set_random_seed(self.model_config.seed)
        init_workspace_manager(self.device, 1)
        self.model_runner: Any = SimNPUModelRunner(self.vllm_config, self.device)

    def compile_or_warm_up_model(self) -> Any:
        """Capture graphs, then let upstream finish."""
        if not self.model_config.enforce_eager and self._has_graphs():
            self.model_runner.capture_model()
            # Upstream thaws all objects after a capture, and collects again and again.
            gc.freeze()
        return super().compile_or_warm_up_model()

    def _has_graphs(self) -> bool:
        manager = self.model_runner.cudagraph_manager
        return manager is not None and manager.needs_capture()
