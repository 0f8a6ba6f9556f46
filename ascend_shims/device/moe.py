"""What a device says of experts, and of layers split over data-parallel ranks.

Patches ask `moe()`. Where torch_npu imports vllm-ascend answers, else the rig, and
both look the same. vllm-ascend keeps one token capacity a process: two runners in one
process have that of the first.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

from .npu import npu, plugin_module

__all__ = ["MoE", "moe"]

_RIG = "ascend_shims.simnpu"


class MoE(Protocol):
    """The questions."""

    def mc2_tokens(self, vllm_config: Any) -> int | None:
        """How many tokens experts exchange by MC2 or fused MC2 at most.

        None where they exchange by other means, or the model has none.
        """

    def balanced(self) -> AbstractContextManager[Any]:
        """Inside, each expert gets its share of the tokens, whatever the router says:
        the inputs of dummy runs are alike, and would all go to the same few."""

    def exchanged_across_dp(self, vllm_config: Any) -> Mapping[str, int]:
        """How many data-parallel ranks output projection and MLP are split over, by
        the setting that says so; only what is split."""

    def decodes_only(self, vllm_config: Any) -> bool:
        """Whether the scheduler leaves no prompt to this engine."""


def moe() -> MoE:
    """vllm-ascend's answers where torch_npu imports, else the rig's.

    Raises `NoNpuError`.
    """
    if npu().__name__.startswith(_RIG):
        return cast(MoE, importlib.import_module(f"{_RIG}.moe"))
    return _Plugin()


class _Plugin:
    def mc2_tokens(self, vllm_config: Any) -> int | None:
        context = plugin_module("ascend_forward_context")
        # Without effect where the plugin's own runner has done it.
        context.set_mc2_tokens_capacity(
            vllm_config,
            vllm_config.scheduler_config.max_num_seqs,
            vllm_config.num_speculative_tokens + 1,
        )
        capacity: int | None = context.get_mc2_tokens_capacity()
        if capacity is None:
            return None
        method = context.select_moe_comm_method(capacity, vllm_config)
        kinds = context.MoECommType
        return capacity if method in (kinds.MC2, kinds.FUSED_MC2) else None

    def balanced(self) -> AbstractContextManager[Any]:
        context = plugin_module("ascend_forward_context")
        return cast(
            AbstractContextManager[Any], context.override_mrv2_in_profile_run(True)
        )

    def exchanged_across_dp(
        self,
        vllm_config: Any,  # noqa: ARG002 - the plugin has read it
    ) -> Mapping[str, int]:
        config = (
            plugin_module("ascend_config").get_ascend_config().finegrained_tp_config
        )
        # The other two, of embedding and output head, are not bound to graphs.
        names = ("oproj_tensor_parallel_size", "mlp_tensor_parallel_size")
        sizes = {name: getattr(config, name) for name in names}
        return {name: size for name, size in sizes.items() if size > 1}

    def decodes_only(self, vllm_config: Any) -> bool:
        utils = plugin_module("utils")
        return bool(utils.is_pd_decode_recompute_scheduler_enabled(vllm_config))
