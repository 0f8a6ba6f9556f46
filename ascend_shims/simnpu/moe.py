"""Experts on the software NPU, and layers split over data-parallel ranks.

With expert parallelism tokens reach their experts by MC2, one operator whose buffers
are for its full token capacity and are allocated when it is first used. More tokens
than that go another way, which needs no such buffers; fused MC2 takes any number. The
rules are vllm-ascend's for the device, except that one rank alone exchanges as well,
so that one process shows what many do.

Output projection and MLP may be split over data-parallel ranks, which then exchange
their tokens in each of these layers, and hang where one has more than another.

`register` puts both before upstream's own layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from . import npu
from .errors import SimNPUError

__all__ = [
    "BUFFER",
    "DesynchronizedError",
    "balanced",
    "capacity",
    "decodes_only",
    "even",
    "exchange",
    "exchanged_across_dp",
    "mc2_tokens",
    "register",
    "send",
]

BUFFER = 8 << 20
"""Bytes of the communication buffers, whatever the number of tokens."""

_MOST = 512
"""Tokens that a rank of tensor parallelism sends by MC2 at most."""

_LAYERS = {
    "oproj_tensor_parallel_size": "o_proj",
    "mlp_tensor_parallel_size": "down_proj",
}
"""What can be split over data-parallel ranks, by the setting that says so."""

_BALANCED: ContextVar[bool] = ContextVar("balanced", default=False)

_buffers: list[torch.Tensor] = []
"""One for the process, as a device has one a communicator."""


class DesynchronizedError(SimNPUError):
    """Ranks exchange different numbers of tokens, which hangs. Gap: fine-grained-tp."""


def mc2_tokens(vllm_config: Any) -> int | None:
    """The token capacity of MC2; None where no tokens go by it."""
    is_used = vllm_config.parallel_config.enable_expert_parallel
    return (
        capacity(vllm_config) if is_used and vllm_config.model_config.is_moe else None
    )


@contextmanager
def balanced() -> Iterator[None]:
    """Each expert gets its share of the tokens inside."""
    token = _BALANCED.set(True)
    try:
        yield
    finally:
        _BALANCED.reset(token)


def exchanged_across_dp(vllm_config: Any) -> Mapping[str, int]:
    """Of `additional_config["finegrained_tp_config"]`: what is split, and how far."""
    sizes = _additional(vllm_config).get("finegrained_tp_config", {})
    return {name: sizes[name] for name in _LAYERS if sizes.get(name, 0) > 1}


def decodes_only(vllm_config: Any) -> bool:  # noqa: ARG001 - no such scheduler here
    return False


def capacity(vllm_config: Any) -> int:
    """Tokens that the buffers of MC2 are for: those of the largest graph, or else of
    the largest decode step."""
    if vllm_config.compilation_config.cudagraph_capture_sizes:
        tokens = vllm_config.compilation_config.max_cudagraph_capture_size
    else:
        requests = vllm_config.scheduler_config.max_num_seqs
        tokens = requests * (vllm_config.num_speculative_tokens + 1)
    ranks: int = vllm_config.parallel_config.tensor_parallel_size
    a_rank: int = min(-(-tokens // ranks), _MOST)
    return a_rank * ranks


def send(num_tokens: int, vllm_config: Any) -> None:
    """Send `num_tokens` tokens to their experts.

    Raises `OutOfMemoryError` where there is no room for the buffers of MC2.
    """
    most = mc2_tokens(vllm_config)
    if most is None or _buffers:
        return
    if num_tokens <= most or _additional(vllm_config).get("enable_fused_mc2"):
        _buffers.append(npu.allocate(BUFFER))


def even(router_logits: torch.Tensor) -> torch.Tensor:
    """Logits `[tokens, experts]` that prefer the experts in turn: as many tokens for
    each, however many of them a token goes to."""
    num_tokens, num_experts = router_logits.shape
    turn = torch.arange(num_experts) - torch.arange(num_tokens)[:, None]
    return -(turn % num_experts).to(router_logits.dtype)


def exchange(num_tokens: int) -> None:
    """Exchange `num_tokens` tokens with the other data-parallel ranks.

    A graph has this rank's number for good, and does not ask. Raises
    `DesynchronizedError`.
    """
    from vllm.distributed.parallel_state import get_dp_group

    group = get_dp_group()
    if group.world_size == 1 or npu.is_current_stream_capturing():
        return
    counts = torch.zeros(group.world_size, dtype=torch.int32)
    counts[group.rank_in_group] = num_tokens
    torch.distributed.all_reduce(counts, group=group.cpu_group)
    if len(set(counts.tolist())) > 1:
        raise DesynchronizedError(
            f"data-parallel ranks exchange {counts.tolist()} tokens, which hangs; "
            "switch the gap fine-grained-tp on, which refuses such a step"
        )


def register() -> None:
    """Serve upstream's layers that are built from now on, once a process."""
    from vllm.model_executor.custom_op import PluggableLayer, op_registry_oot
    from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner
    from vllm.model_executor.layers.linear import RowParallelLinear

    for mixin, cls in ((_Sending, MoERunner), (_Exchanging, RowParallelLinear)):
        if cls.__name__ in op_registry_oot:
            continue
        served = type(cls.__name__, (mixin, cls), {"__module__": __name__})
        PluggableLayer.register_oot(served, name=cls.__name__)


class _Configured:
    """A layer that remembers what it was built for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from vllm.config import get_current_vllm_config

        super().__init__(*args, **kwargs)
        self._vllm_config = get_current_vllm_config()


class _Sending(_Configured):
    """Mixed in before an expert layer."""

    def forward(
        self,
        hidden_states: torch.Tensor,
        router_logits: torch.Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        send(len(hidden_states), self._vllm_config)
        if _BALANCED.get():
            router_logits = even(router_logits)
        return super().forward(  # type: ignore[misc]
            hidden_states, router_logits, *args, **kwargs
        )


class _Exchanging(_Configured):
    """Mixed in before a row-parallel layer."""

    prefix: str

    def forward(self, input_: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        split = exchanged_across_dp(self._vllm_config)
        if any(self.prefix.endswith(_LAYERS[name]) for name in split):
            exchange(len(input_))
        return super().forward(input_, *args, **kwargs)  # type: ignore[misc]


def _additional(vllm_config: Any) -> Mapping[str, Any]:
    # Upstream takes other objects, too, of which nothing is known here.
    config = vllm_config.additional_config
    return config if isinstance(config, Mapping) else {}
