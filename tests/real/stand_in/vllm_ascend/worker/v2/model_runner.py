"""The plugin's runner: it closes three gaps by subclassing.

`STAND_IN_DROPS` names methods that a release has given up although its text still has
them, as beneath a condition.
"""

from __future__ import annotations

import os
from typing import Any

from vllm.v1.worker.gpu import cudagraph_utils, model_runner
from vllm.v1.worker.gpu.input_batch import InputBatch
from vllm.v1.worker.gpu.model_runner import GPUModelRunner

from .aclgraph import graph_manager_wrapper
from .rotary import update_cos_sin

_runners: list[Any] = []


class AscendInputBatch(InputBatch):
    @classmethod
    def make_dummy(
        cls, num_reqs: int, num_tokens: int, input_buffers: Any, *args: Any, **more: Any
    ) -> Any:
        make = InputBatch.make_dummy
        batch = make(num_reqs, num_tokens, input_buffers, *args, **more)
        for runner in _runners:
            if input_buffers is runner.input_buffers:
                update_cos_sin(runner, batch)
        return batch


class NPUModelRunner(GPUModelRunner):
    supports_standardized_shared_kv_backing = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.step: Any = None
        if "prepare_inputs" in vars(NPUModelRunner):
            _runners.append(self)

    def warming_up_model(self) -> None:
        self.profile_run()

    def initialize_kv_cache(self, *args: Any, **kwargs: Any) -> Any:
        prepare = (
            self.model_state.prepare_attn if hasattr(self, "model_state") else None
        )
        with graph_manager_wrapper(self):
            made = super().initialize_kv_cache(*args, **kwargs)
        prepare = prepare or self.model_state.prepare_attn

        def prepare_attn(*args: Any, **kwargs: Any) -> Any:
            self.step = prepare(*args, **kwargs)
            return self.step

        self.model_state.prepare_attn = prepare_attn
        return made

    def prepare_inputs(self, *args: Any, **kwargs: Any) -> Any:
        batch = super().prepare_inputs(*args, **kwargs)
        update_cos_sin(self, batch)
        return batch


for name in filter(None, os.environ.get("STAND_IN_DROPS", "").split(",")):
    delattr(NPUModelRunner, name)
if "prepare_inputs" in vars(NPUModelRunner):
    cudagraph_utils.InputBatch = AscendInputBatch
    model_runner.InputBatch = AscendInputBatch
