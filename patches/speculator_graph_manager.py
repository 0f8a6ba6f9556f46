"""`speculator-graph-manager`: graph managers that know their speculator.

A draft model captures graphs as well, and their attention operators need the lengths
of each pass. Every graph manager that a speculator makes knows it from then on, and
captures into parameters of its own: target, draft prefill and draft decode never
mix, though they capture for the same numbers of tokens.

Where a replay finds its lengths:

- An autoregressive draft's first pass, its prefill, runs on the target's batch; so
  upstream gives it the target's metadata, and so do we.
- All others are built by the speculator just before the replay, and remembered here.
- A backend may say that it updates a draft's metadata on the device. Upstream then
  captures all passes of a step in one graph and builds nothing for a replay. Lengths
  on the host cannot be updated so, and are built here, for each pass.

What a graph does to the draft's lengths on the device, a replay does to those on the
host.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import msgspec

from ascend_shims.device import graphs, replays

from . import graph_manager

__all__ = ["adopt", "capture", "params_of", "remember_pass", "replay"]

_MANAGER = "cudagraph_manager"


class _Owned(msgspec.Struct):
    """What one manager knows."""

    speculator: weakref.ref[Any]
    params: graphs.GraphParams
    role: str
    """`prefill`, `decode`, `query`, or nothing where a speculator has but one."""


_OWNED: weakref.WeakKeyDictionary[Any, _Owned] = weakref.WeakKeyDictionary()
_PASSES: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
"""Attention metadata that a speculator has built last."""


def adopt(
    call: Callable[..., None], speculator: Any, *args: Any, **kwargs: Any
) -> None:
    """After a speculator's `init_cudagraph_manager`: what it made knows it."""
    call(speculator, *args, **kwargs)
    runner = graph_manager.being_built()
    if runner is None:
        return
    speculator.update_stream = replays.update_stream(runner)
    for name, manager in vars(speculator).items():
        if not name.endswith(_MANAGER) or manager is None:
            continue
        role = name.removesuffix(_MANAGER).rstrip("_")
        manager.speculator = weakref.proxy(speculator)
        manager.update_stream = speculator.update_stream
        params = graphs.GraphParams(f"draft {role}".rstrip())
        _OWNED[manager] = _Owned(weakref.ref(speculator), params, role)


def capture(call: Callable[..., Any], manager: Any, *args: Any, **kwargs: Any) -> Any:
    """Around `CudaGraphManager.capture`: into the manager's own parameters."""
    owned = _OWNED.get(manager)
    if owned is None:
        return call(manager, *args, **kwargs)
    with graphs.capturing(owned.params):
        return call(manager, *args, **kwargs)


def remember_pass(
    call: Callable[..., Any], speculator: Any, *args: Any, **kwargs: Any
) -> Any:
    """After a speculator has built metadata: what the next replay is refreshed by."""
    metadata = call(speculator, *args, **kwargs)
    if metadata is not None:
        _PASSES[speculator] = metadata
    return metadata


def replay(call: Callable[..., Any], manager: Any, desc: Any) -> Any:
    """Around `CudaGraphManager.run_fullgraph`: with the lengths of each pass."""
    owned = _OWNED.get(manager)
    speculator = owned.speculator() if owned is not None else None
    if owned is None or speculator is None:
        return call(manager, desc)
    passes = _passes(speculator, owned.role, desc)
    refresh = replays.Refresh(
        params=owned.params,
        stream=speculator.update_stream,
        attn_groups=speculator.attn_groups,
        vllm_config=speculator.vllm_config,
        speculative_config=speculator.speculative_config,
        attn_metadata=passes[0],
        draft_attn_metadatas=passes,
    )
    return replays.replay(call, manager, desc, refresh)


def params_of(manager: Any) -> graphs.GraphParams | None:
    """The parameters of a manager's graphs; None where it knows no speculator."""
    owned = _OWNED.get(manager)
    return owned.params if owned is not None else None


def _passes(speculator: Any, role: str, desc: Any) -> list[Any]:
    """Metadata of each pass that the graph for `desc` makes."""
    if role == "prefill":
        return [graph_manager.step_of(speculator.model_state)]
    on_device = _updates_on_device(speculator)
    if role != "decode":
        return [_build(speculator, desc, 0) if on_device else _PASSES[speculator]]
    if not on_device:
        passes = [_PASSES[speculator]]
        _count_up(speculator, desc, speculator.num_speculative_steps - 1)
        return passes
    # A schedule may ask for fewer draft tokens than there could be.
    num_tokens = getattr(desc, "num_speculative_tokens", 0)
    num_passes = (num_tokens or speculator.num_speculative_steps) - 1
    passes = []
    for index in range(num_passes):
        passes.append(_build(speculator, desc, index + 1))
        _count_up(speculator, desc, num_passes)
    return passes


def _count_up(speculator: Any, desc: Any, num_passes: int) -> None:
    if speculator.advance_draft_positions:
        lengths = speculator.input_buffers.host_lengths
        # A graph counts for its padding as well.
        lengths.count_up(desc.num_reqs, speculator.max_model_len, num_passes)


def _updates_on_device(speculator: Any) -> bool:
    # Until 0.31 under another name, and for autoregressive drafts alone.
    names = ("supports_decode_metadata_update", "use_fused_multi_step_decode")
    return any(getattr(speculator, name, False) for name in names)


def _build(speculator: Any, desc: Any, step: int) -> Any:
    """Metadata for the draft's lengths as they are now on the host.

    Pass `step` of an autoregressive draft; 0 for one that drafts all at once.
    """
    target = speculator.target_input_buffers.host_lengths
    num_reqs = target.num_reqs
    queries = {} if step else {"causal": speculator._group_causal}
    num_queries = 1 if step else speculator.num_query_per_req
    common = {"seq_lens_cpu_upper_bound": target.host, "step": step or num_queries}
    if hasattr(speculator, "_build_uniform_attn_metadata"):
        return speculator._build_uniform_attn_metadata(
            batch_desc=desc,
            num_reqs=num_reqs,
            num_query_per_req=num_queries,
            **common,
            **queries,
        )
    return speculator._build_draft_attn_metadata(
        num_reqs=num_reqs,
        num_reqs_padded=desc.num_reqs or num_reqs,
        num_tokens_padded=desc.num_tokens,
        **common,
    )
