"""vLLM's two ways into the rig: a platform plugin and a general plugin.

vLLM asks its platform plugins first thing in every process, spawned ones
included, and before it decides whether Triton is usable: the one moment that
comes early enough without costing other programs an import. General plugins
come later, when vLLM itself can be imported.
"""

from __future__ import annotations

from .request import asked, is_device, is_quick

__all__ = ["general", "platform"]


def platform() -> str | None:
    """Make Triton usable, and name the platform if the rig is the device.

    Otherwise the platform stays the one that vLLM finds itself.
    """
    if not asked():
        return None

    from . import triton_cpu, vllm_name

    if triton_cpu.register():
        vllm_name.answer()
        if is_quick():
            from . import interpreter

            interpreter.quicken()
    return "ascend_shims.simnpu.platform.SimNPUPlatform" if is_device() else None


def general() -> None:
    """Give a CPU build whose MLA cannot run the one of `cpu_mla`."""
    if not asked():
        return
    try:
        from vllm.platforms import current_platform
        from vllm.v1.attention.backends import registry
        from vllm.v1.attention.backends.mla.prefill import registry as prefill
    except ImportError:
        return
    known = prefill.MLAPrefillBackendEnum
    if not current_platform.is_cpu() or "CPU" in known.__members__:
        return
    if "CPU_MLA" not in registry.AttentionBackendEnum.__members__:
        # Before 0.28 there is none to mend.
        return
    room = "ascend_shims.simnpu.cpu_mla"
    prefill.register_mla_prefill_backend(known.FLASH_ATTN, f"{room}.CPUPrefill")
    registry.register_backend(
        registry.AttentionBackendEnum.CPU_MLA, f"{room}.RigMLABackend"
    )
