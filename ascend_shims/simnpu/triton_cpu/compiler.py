"""The compiler half of the "cpu" backend: it answers, and compiles nothing."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from triton.backends.compiler import BaseBackend, GPUTarget

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["CPUBackend"]


@dataclasses.dataclass(frozen=True)
class _Options:
    """What Triton and inductor read of a backend's options."""

    backend_name: str = "cpu"
    num_warps: int = 1
    num_ctas: int = 1
    num_stages: int = 1
    debug: bool = False


class CPUBackend(BaseBackend):  # type: ignore[misc]
    """Stands in for a compiler where kernels are interpreted."""

    binary_ext = "none"

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "cpu")

    def hash(self) -> str:
        return "cpu-interpreted"

    def parse_options(self, options: dict[str, Any]) -> _Options:
        known = {field.name for field in dataclasses.fields(_Options)}
        return _Options(**{k: v for k, v in options.items() if k in known})

    def add_stages(self, _stages: Any, _options: object, _language: Any) -> None:
        raise RuntimeError(
            "Triton's cpu backend of ascend-shims compiles nothing: start the "
            "process with TRITON_INTERPRET=1 in its environment"
        )

    def load_dialects(self, _context: object) -> None:
        return None

    def get_module_map(self) -> dict[str, ModuleType]:
        return {}
