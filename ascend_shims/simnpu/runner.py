"""The model runner of the software NPU: upstream's own, under a name of its own."""

from __future__ import annotations

from vllm.v1.worker.gpu.model_runner import GPUModelRunner

__all__ = ["SimNPUModelRunner"]


class SimNPUModelRunner(GPUModelRunner):  # type: ignore[misc]
    """What a device plugin puts in the place of upstream's runner.

    It overrides nothing: what the device needs is the gaps' to bring.
    """

    def warming_up_model(self) -> None:
        """Run the largest step once, as upstream's CPU worker asks for."""
        self.profile_run()
