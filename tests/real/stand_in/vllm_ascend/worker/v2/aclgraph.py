"""A graph manager that is built for its runner, and refreshes what it replays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vllm.v1.worker.gpu import model_runner
from vllm.v1.worker.gpu.cudagraph_utils import ModelCudaGraphManager

from ascend_shims.device import graphs, replays

replayed: list[int] = []
"""Tokens of each replay."""


class ModelAclGraphManager(ModelCudaGraphManager):
    def __init__(self, *args: Any, model_runner: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.runner = model_runner
        self.params = graphs.GraphParams("the plugin's")

    def capture(self, *args: Any, **kwargs: Any) -> Any:
        with graphs.capturing(self.params):
            return super().capture(*args, **kwargs)

    def run_fullgraph(self, desc: Any) -> Any:
        replayed.append(desc.num_tokens)
        refresh = replays.Refresh(
            params=self.params,
            stream=replays.update_stream(self.runner),
            attn_groups=self.runner.attn_groups,
            vllm_config=self.runner.vllm_config,
            speculative_config=self.runner.speculative_config,
            attn_metadata=self.runner.step,
        )
        call = super().run_fullgraph
        return replays.replay(lambda _, desc: call(desc), self, desc, refresh)


@contextmanager
def graph_manager_wrapper(runner: Any) -> Iterator[None]:
    """Managers made inside are the plugin's, for `runner`."""
    upstream = model_runner.ModelCudaGraphManager

    def made(*args: Any, **kwargs: Any) -> ModelAclGraphManager:
        return ModelAclGraphManager(*args, model_runner=runner, **kwargs)

    model_runner.ModelCudaGraphManager = made
    try:
        yield
    finally:
        model_runner.ModelCudaGraphManager = upstream
