"""The attention backend of the software NPU, after the device's fused operator.

K and V are two tensors, lengths are numbers on the host, and the operator works in
a workspace that its caller allocates. In a graph, each call is a task that can be
told new lengths before a replay: `FIAImpl.update_graph_params` does that for all
layers of a graph, under the name and with the parameters of vllm-ascend's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from vllm.v1.attention.backend import (
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadataBuilder,
    CommonAttentionMetadata,
)
from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

from ascend_shims.device import graphs
from ascend_shims.device.lengths import host_view

from . import npu, ops
from .errors import HostLengthsMissingError
from .request import checks

__all__ = ["FIABackend", "FIAImpl", "FIAMetadata", "FIAMetadataBuilder", "update"]


@dataclass
class FIAMetadata:
    """One step of one KV cache group."""

    num_actual_tokens: int
    query_ends: list[int]
    """Where each request's query tokens end, as numbers on the host."""
    kv_lengths: list[int]
    """Tokens of each request with this step's, as numbers on the host."""
    seq_lens: torch.Tensor
    """The same on the device, int32 `[num_reqs]`, for checks alone."""
    block_table: torch.Tensor
    slot_mapping: torch.Tensor
    causal: bool = True


class FIAMetadataBuilder(AttentionMetadataBuilder[FIAMetadata]):  # type: ignore[misc]
    # Whatever the batch: each replay is told its lengths.
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.ALWAYS

    metadata: ClassVar[type[FIAMetadata]] = FIAMetadata

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> FIAMetadata:
        """Raises `HostLengthsMissingError` where lengths are on the device only."""
        common = common_attn_metadata
        query_ends, kv_lengths = _host_lists(common)
        return self.metadata(
            num_actual_tokens=common.num_actual_tokens,
            query_ends=query_ends,
            kv_lengths=kv_lengths,
            seq_lens=common.seq_lens,
            block_table=common.block_table_tensor,
            slot_mapping=common.slot_mapping,
            causal=common.causal is not False,
        )


def _host_lists(common: CommonAttentionMetadata) -> tuple[list[int], list[int]]:
    """Ends of the queries, and lengths, of each request, as numbers on the host.

    Raises `HostLengthsMissingError`.
    """
    lengths = host_view(common.seq_lens)
    if lengths is None:
        raise HostLengthsMissingError(
            "attention takes exact sequence lengths on the host (seq_lens_cpu), and "
            "the batch has them on the device only; switch the gap input-buffers on"
        )
    ends = common.query_start_loc_cpu[1 : common.num_reqs + 1].tolist()
    return ends, lengths[: common.num_reqs].tolist()


class FIABackend(CPUAttentionBackend):  # type: ignore[misc]
    """Upstream's own shapes and block sizes; another operator beneath."""

    takes_split_kv = True

    @staticmethod
    def get_name() -> str:
        # Upstream keeps one name for backends that it does not know.
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[FIAImpl]:
        return FIAImpl

    @staticmethod
    def get_builder_cls() -> type[FIAMetadataBuilder]:
        return FIAMetadataBuilder


class FIAImpl(AttentionImpl):  # type: ignore[misc]
    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = "decoder",
        kv_sharing_target_layer_name: str | None = None,
        sinks: torch.Tensor | None = None,
        **_: Any,
    ) -> None:
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_kv_heads or num_heads
        self.alibi = None if alibi_slopes is None else torch.tensor(alibi_slopes)
        self.sliding_window = sliding_window or -1
        self.kv_cache_dtype = kv_cache_dtype
        self.softcap = logits_soft_cap or 0.0
        self.attn_type = attn_type
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.sinks = sinks

    def forward(
        self,
        layer: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: Any,
        attn_metadata: FIAMetadata | None,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Attention of `query` `[tokens, heads, head_size]`, written to `output`.

        Raises `PackedCacheError` and `StridedCacheError` for caches that the
        device's operator does not take.
        """
        if attn_metadata is None:
            return output.zero_()
        k_cache, v_cache = halves(kv_cache)
        num_tokens = attn_metadata.num_actual_tokens
        arguments = {
            "query": query[:num_tokens],
            "k_cache": k_cache,
            "v_cache": v_cache,
            "block_table": attn_metadata.block_table,
            "out": output.view(len(output), self.num_heads, -1)[:num_tokens],
            "scale": self.scale,
            "causal": attn_metadata.causal,
            "window": self.sliding_window,
            "softcap": self.softcap,
            "sinks": self.sinks,
            "alibi": self.alibi,
        }
        operator = torch.ops.simnpu.fused_infer_attention
        size = ops.workspace_size(num_tokens, self.num_heads, self.head_size)
        run(operator, layer.layer_name, attn_metadata, size, arguments)
        return output

    def do_kv_cache_update(
        self,
        layer: Any,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: Any,
        slot_mapping: torch.Tensor,
    ) -> None:
        k_cache, v_cache = halves(kv_cache)
        torch.ops.simnpu.write_cache(key, value, k_cache, v_cache, slot_mapping)

    @staticmethod
    def update_graph_params(
        update_stream: Any,
        forward_context: Any,
        num_tokens: int,
        vllm_config: Any = None,
        speculative_config: Any = None,
        draft_attn_metadatas: Any = None,
    ) -> None:
        """Tell the graph for `num_tokens` the lengths of the step at hand."""
        update(update_stream, forward_context, num_tokens, draft_attn_metadatas)


def halves(kv_cache: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The two tensors of a layer's cache.

    Raises `PackedCacheError` where there is one.
    """
    if isinstance(kv_cache, tuple) and len(kv_cache) == 2:
        return kv_cache
    raise ops.packed(kv_cache)


@dataclass(frozen=True)
class _Task:
    """An attention operator in a graph."""

    layer: str
    graph: Any
    operator: Callable[..., None]
    arguments: dict[str, Any]


def run(
    operator: Callable[..., None],
    layer: str,
    metadata: Any,
    size: int,
    arguments: dict[str, Any],
) -> None:
    """Run an attention operator; while a graph is captured, as a task of its own.

    `metadata` brings `query_ends`, `kv_lengths` and `seq_lens`, `size` is that of
    the workspace in bytes.
    """
    num_tokens = metadata.num_actual_tokens
    if not npu.is_current_stream_capturing():
        workspace = torch.empty(size, dtype=torch.uint8)
        operator(**arguments, **_lengths(metadata), workspace=workspace)
        return
    params = graphs.current()
    workspace = params.workspace(num_tokens, size)
    stream = npu.current_stream()
    event = None
    if params.is_updated:
        event = npu.ExternalEvent()
        event.wait(stream)
        event.reset(stream)
    npu.graph_task_group_begin(stream)
    operator(**arguments, **_lengths(metadata), workspace=workspace)
    handle = npu.graph_task_group_end(stream)
    kept = {name: _weak(value) for name, value in arguments.items()}
    kept["workspace"] = _weak(workspace)
    task = _Task(layer, npu.capturing_graph(), operator, kept)
    params.add(num_tokens, event, handle, task)


def update(
    stream: Any,
    forward_context: Any,
    num_tokens: int,
    draft_attn_metadatas: Sequence[dict[str, Any]] | None = None,
) -> None:
    """Update the current store's graph for `num_tokens` and let it go on."""
    params = graphs.current()
    replayed = graphs.replayed()
    seen: dict[str, int] = {}
    for event, handle, task in zip(
        params.events.get(num_tokens, ()),
        params.handles.get(num_tokens, ()),
        params.attn_params.get(num_tokens, ()),
        strict=True,
    ):
        if replayed is not None and task.graph is not replayed:
            continue
        steps = draft_attn_metadatas or [forward_context.attn_metadata]
        # A draft's graph may run one layer several times, once a draft token.
        pass_ = seen.get(task.layer, 0)
        seen[task.layer] = pass_ + 1
        metadata = steps[min(pass_, len(steps) - 1)][task.layer]
        with npu.stream(stream):
            npu.graph_task_update_begin(stream, handle)
            task.operator(**task.arguments, **_lengths(metadata))
            npu.graph_task_update_end(stream)
            if event is not None:
                event.record(stream)


def _lengths(metadata: Any) -> dict[str, Any]:
    truth = metadata.seq_lens if checks() else None
    return {
        "query_ends": metadata.query_ends,
        "kv_lengths": metadata.kv_lengths,
        "device_lengths": truth,
    }


def _weak(value: Any) -> Any:
    return npu.weak_ref_tensor(value) if isinstance(value, torch.Tensor) else value
