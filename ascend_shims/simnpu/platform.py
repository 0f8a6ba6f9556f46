"""The platform that vLLM finds when `ASCEND_SHIMS_DEVICE=sim`.

It is upstream's CPU platform, since tensors live on the CPU, with what an NPU
brings of its own: graphs, an attention backend of its own, rope operators, a worker
that captures, and a name for Ray.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm.platforms.cpu import CpuPlatform

if TYPE_CHECKING:
    from vllm.config import VllmConfig

__all__ = ["SimNPUPlatform"]

_ROOM = "ascend_shims.simnpu"

_KEPT = (
    ("compilation_config", "cudagraph_capture_sizes"),
    ("compilation_config", "cudagraph_mode"),
    ("scheduler_config", "enable_chunked_prefill"),
    ("scheduler_config", "max_num_batched_tokens"),
    ("cache_config", "enable_prefix_caching"),
)
"""What upstream's CPU platform takes away, and this device has."""


class SimNPUPlatform(CpuPlatform):  # type: ignore[misc]
    device_name = "simnpu"
    ray_device_key = "NPU"

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        return "simnpu"

    @classmethod
    def get_attn_backend_cls(
        cls, selected_backend: Any, attn_selector_config: Any, *args: Any, **kwargs: Any
    ) -> str:
        """Upstream's CPU backends where they are asked for by name, or where the
        device has no operator (encoders); else the device's own."""
        attn_type = getattr(attn_selector_config, "attn_type", None) or "decoder"
        if selected_backend is not None or attn_type != "decoder":
            path: str = super().get_attn_backend_cls(
                selected_backend, attn_selector_config, *args, **kwargs
            )
            return path
        if attn_selector_config.use_mla:
            return f"{_ROOM}.mla.MLABackend"
        return f"{_ROOM}.attention.FIABackend"

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        return f"{_ROOM}.communicator.SimNPUCommunicator"

    @classmethod
    def support_static_graph_mode(cls) -> bool:
        return True

    @classmethod
    def support_hybrid_kv_cache(cls) -> bool:
        return True

    def graph_pool_handle(self) -> Any:
        from . import npu

        return npu.graph_pool_handle()

    @classmethod
    def opaque_attention_op(cls) -> bool:
        # A graph records the operators inside attention, not the layer as a whole.
        return False

    @classmethod
    def check_and_update_config(cls, vllm_config: VllmConfig) -> None:
        """As for a CPU, but what the device can do stays as configured: graphs,
        chunked prefill and prefix caching of MLA."""
        parallel = vllm_config.parallel_config
        if parallel.worker_cls == "auto":
            parallel.worker_cls = f"{_ROOM}.worker.SimNPUWorker"
        kept = [
            (
                getattr(vllm_config, part),
                name,
                getattr(getattr(vllm_config, part), name),
            )
            for part, name in _KEPT
        ]
        super().check_and_update_config(vllm_config)
        for part, name, value in kept:
            setattr(part, name, value)
