"""The driver half of the "cpu" backend: one device, one stream, no launcher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from ascend_shims.simnpu.request import asked

if TYPE_CHECKING:
    import torch

__all__ = ["CPUDriver"]


class CPUDriver(DriverBase):  # type: ignore[misc]
    """What Triton, inductor and vLLM ask of the active driver."""

    @staticmethod
    def is_active() -> bool:
        return asked()

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise RuntimeError(
            f"Triton's cpu backend of ascend-shims has no C++ launcher (asked for "
            f"{ty!r}): start the process with TRITON_INTERPRET=1 in its environment"
        )

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cpu", 0, 1)

    def get_active_torch_device(self) -> torch.device:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        import torch

        return torch.cpu

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _device: int) -> None:
        return None

    def get_current_stream(self, _device: int) -> int:
        return 0

    def get_benchmarker(self) -> Any:
        from triton.testing import do_bench

        return do_bench
