"""The plugin's worker: the rig's, and it makes the plugin's runner."""

from __future__ import annotations

from ascend_shims.simnpu.worker import SimNPUWorker


class NPUWorker(SimNPUWorker):
    def init_device(self) -> None:
        from ascend_shims.simnpu import runner

        from .v2.model_runner import NPUModelRunner

        runner.SimNPUModelRunner = NPUModelRunner
        super().init_device()
