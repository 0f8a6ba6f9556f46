"""`input-buffers`: exact sequence lengths on the host.

NPU attention takes the lengths of all requests as host memory. Upstream computes
them on the device, from what the host knows anyway: how many tokens of a request
are computed and how many are scheduled. So the host side is written from the same
numbers, for real, padded and dummy batches.

Each `InputBuffers` has a host side of its own, so a draft that counts its lengths up
never changes the target's.

One number the host does not know: how many draft tokens of a step were rejected. It
is needed in two places, and copied for both where it is made, in
`postprocess_sampled`, without a wait:

- A draft's passes after its first start from the accepted tokens. The copy is waited
  for when their metadata are built; by then the first pass is on its way to the
  device. A step in which nothing can be rejected copies and waits for nothing.
- With asynchronous scheduling the next step is scheduled before the scheduler has
  seen this one's result. Its lengths wait for the count of computed tokens, for
  requests that had draft tokens, and no longer than attention itself would have to:
  it cannot be launched without its lengths. Without draft tokens the scheduler's
  numbers are exact, and nothing waits.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch

from ascend_shims.device.computed import ComputedTokens
from ascend_shims.device.lengths import HostLengths, beside, host_side

__all__ = [
    "add_host_lengths",
    "count_draft_up",
    "forget_slot",
    "lengths_of_block_draft",
    "lengths_of_context",
    "lengths_of_draft_decode",
    "lengths_of_draft_prefill",
    "lengths_of_dummy",
    "lengths_of_multi_module_draft",
    "lengths_of_part",
    "lengths_of_standalone_decode",
    "lengths_of_standalone_prefill",
    "lengths_of_step",
    "settle_draft",
    "start_copies",
]

_COMPUTED: weakref.WeakKeyDictionary[Any, ComputedTokens] = weakref.WeakKeyDictionary()
"""By the request states of a runner, where steps are scheduled ahead."""

_COUNTING: ContextVar[Callable[[], None] | None] = ContextVar("counting", default=None)
"""What has to happen before the metadata of a standalone draft's next pass."""


def add_host_lengths(
    call: Callable[..., None], buffers: Any, *args: Any, **kwargs: Any
) -> None:
    """After `InputBuffers.__init__`: `seq_lens_cpu` and `seq_lens_np`.

    Both are int32 `[max_num_reqs]` on the host and share memory.
    """
    call(buffers, *args, **kwargs)
    lengths = beside(buffers.seq_lens)
    buffers.host_lengths = lengths
    buffers.seq_lens_cpu = lengths.host
    buffers.seq_lens_np = lengths.np


def lengths_of_step(
    call: Callable[..., Any], runner: Any, *args: Any, **kwargs: Any
) -> Any:
    """After `GPUModelRunner.prepare_inputs`: the lengths of a real batch."""
    batch = call(runner, *args, **kwargs)
    # Under context parallelism the rank runs its part, on buffers of its own.
    manager = getattr(runner, "pcp_manager", None)
    whole = getattr(manager, "_global_batch", None) or batch
    # More logits than one: all but the last are of draft tokens.
    at_risk = np.diff(whole.cu_num_logits_np[: whole.num_reqs + 1]) > 1
    too_many = _overcounted(runner, whole, at_risk)
    _write(runner.input_buffers, whole, _bound(whole) - too_many)
    runner.input_buffers.host_lengths.at_risk = bool(at_risk.any())
    if whole is not batch:
        by_slot = np.zeros(runner.req_states.max_num_reqs, dtype=np.int32)
        by_slot[whole.idx_mapping_np] = too_many
        part = by_slot[batch.idx_mapping_np[: batch.num_reqs]]
        buffers = getattr(manager, "_input_buffers", None) or runner.input_buffers
        _write(buffers, batch, _bound(batch) - part)
    return batch


def lengths_of_dummy(
    call: Callable[..., Any],
    cls: type,
    num_reqs: int,
    num_tokens: int,
    input_buffers: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """After `InputBatch.make_dummy`: those of a capture, a warm-up, an idle step."""
    batch = call(cls, num_reqs, num_tokens, input_buffers, *args, **kwargs)
    _write(input_buffers, batch, _bound(batch))
    # Whatever its lengths, every token of it stands at position 0.
    batch.host_positions_are_zero = True
    return batch


def lengths_of_context(
    call: Callable[..., None], input_batch: Any, *args: Any, **kwargs: Any
) -> None:
    """After `set_dummy_context`: a dummy batch whose requests have a past."""
    call(input_batch, *args, **kwargs)
    lengths = getattr(input_batch, "host_lengths", None)
    if lengths is not None:
        lengths.set(_bound(input_batch))
        had_past = input_batch.num_computed_tokens_np.any()
        input_batch.host_positions_are_zero = not had_past


def lengths_of_part(
    call: Callable[..., Any], manager: Any, input_batch: Any, *args: Any, **kwargs: Any
) -> Any:
    """After `PCPManager.prepare_inputs_to_capture`: a dummy batch on its buffers."""
    part = call(manager, input_batch, *args, **kwargs)
    _write(manager.input_buffers, part, _bound(part))
    part.host_positions_are_zero = True
    return part


def start_copies(
    call: Callable[..., Any], runner: Any, *args: Any, **kwargs: Any
) -> Any:
    """Around `GPUModelRunner.postprocess_sampled`: what was rejected, on its way."""
    lengths = getattr(runner.input_buffers, "host_lengths", None)
    if lengths is not None and getattr(runner, "speculator", None) is not None:
        named = _named(call, runner, *args, **kwargs)
        lengths.start_rejected(named["num_rejected"])
    result = call(runner, *args, **kwargs)
    computed = _COMPUTED.get(runner.req_states)
    if computed is not None:
        computed.start(runner.req_states.num_computed_tokens.gpu)
    return result


def forget_slot(
    call: Callable[..., None], req_states: Any, req_id: str, *args: Any, **kwargs: Any
) -> None:
    """After `RequestState.add_request`: the slot is another request's."""
    call(req_states, req_id, *args, **kwargs)
    computed = _COMPUTED.get(req_states)
    if computed is not None:
        computed.forget(req_states.req_id_to_index[req_id])


def lengths_of_draft_prefill(
    call: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """After an autoregressive draft's `prepare_prefill_inputs`: the target's."""
    result = call(*args, **kwargs)
    named = _named(call, *args, **kwargs)
    batch = named["input_batch"]
    target = _target(batch.seq_lens)
    _draft(named["input_buffers"]).set(target.np[: batch.num_reqs])
    return result


def lengths_of_draft_decode(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """After its `prepare_decode_inputs`: the accepted tokens and the first draft's."""
    result = call(*args, **kwargs)
    named = _named(call, *args, **kwargs)
    limit = named["max_model_len"]
    # Without an advance the draft reads the target's cache, and adds nothing to it.
    advance = named["advance_draft_positions"]
    _follow(
        named,
        named["target_seq_lens"],
        named["draft_tokens"].shape[0],
        lambda lengths: np.minimum(lengths + 1, limit) if advance else lengths,
    )
    return result


def count_draft_up(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """After its `update_draft_inputs`: one token more, but for the last pass."""
    result = call(*args, **kwargs)
    named = _named(call, *args, **kwargs)
    if named["advance_draft_positions"]:
        _draft(named["input_buffers"]).count_up(
            named["num_reqs"],
            named["max_model_len"],
            named["num_speculative_steps"] - 1,
        )
    return result


def lengths_of_multi_module_draft(
    call: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """After multi-module MTP's `prepare_input_buffers`.

    Tokens of the step before take the places of rejected ones, but for one.
    """
    result = call(*args, **kwargs)
    named = _named(call, *args, **kwargs)
    target = _target(named["input_batch"].seq_lens)
    lengths = target.np[: named["num_reqs"]].copy()
    rejected = target.rejected(named["num_rejected"])
    _draft(named["input_buffers"]).set_when_known(
        len(lengths), lambda: lengths - np.maximum(rejected() - 1, 0)
    )
    return result


def lengths_of_block_draft(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """After `prepare_dflash_inputs`: the accepted tokens and a block of queries.

    DFlash in its forms and DSpark draft all tokens in one pass.
    """
    result = call(*args, **kwargs)
    named = _named(call, *args, **kwargs)
    batch = named["input_batch"]
    num_reqs = named.get("num_reqs_override")
    num_reqs = batch.num_reqs if num_reqs is None else num_reqs
    added, limit = named["num_query_per_req"], named["max_model_len"]
    if getattr(batch, "host_positions_are_zero", False):
        # Upstream goes by the position of the last token here, not by the length.
        lengths = np.full(num_reqs, min(1 + added, limit), dtype=np.int32)
        _draft(named["input_buffers"]).set(lengths)
    else:
        _follow(
            named,
            batch.seq_lens,
            num_reqs,
            lambda lengths: np.minimum(lengths + added, limit),
        )
    return result


def lengths_of_standalone_prefill(
    call: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    """After a standalone draft's `prepare_prefill_inputs`: one token more.

    Rejected tokens keep their places in this pass.
    """
    result = call(*args, **kwargs)
    named = _named(call, *args, **kwargs)
    batch = named["input_batch"]
    lengths = _target(batch.seq_lens).np[: batch.num_reqs]
    _draft(named["input_buffers"]).set(np.minimum(lengths + 1, named["max_model_len"]))
    return result


def lengths_of_standalone_decode(
    call: Callable[..., Any], speculator: Any, *args: Any, **kwargs: Any
) -> Any:
    """Around its `_multi_step_decode`, which counts up before each pass."""
    named = _named(call, speculator, *args, **kwargs)
    batch, num_reqs = named["input_batch"], named["num_reqs"]
    buffers, limit = speculator.input_buffers, speculator.max_model_len
    _follow(
        {"input_buffers": buffers, "num_rejected": named["num_rejected"]},
        batch.seq_lens,
        num_reqs,
        lambda lengths: np.minimum(lengths + 1, limit),
    )
    with _before_each_pass(lambda: _draft(buffers).add_one(num_reqs, limit)):
        return call(speculator, *args, **kwargs)


def settle_draft(
    call: Callable[..., Any], speculator: Any, *args: Any, **kwargs: Any
) -> Any:
    """Before a speculator builds metadata: its lengths are there, waited for."""
    count = _COUNTING.get()
    if count is not None:
        count()
    _draft(speculator.input_buffers).settle()
    return call(speculator, *args, **kwargs)


def _write(buffers: Any, batch: Any, exact: np.ndarray[Any, Any]) -> None:
    lengths = _draft(buffers)
    lengths.set(exact)
    padded = len(batch.seq_lens)
    batch.host_lengths = lengths
    batch.seq_lens_cpu = lengths.host[:padded]
    batch.seq_lens_np = lengths.np[:padded]


def _bound(batch: Any) -> np.ndarray[Any, Any]:
    """Lengths for the scheduler's count of computed tokens, int32 `[num_reqs]`."""
    bound: torch.Tensor = batch.seq_lens_cpu_upper_bound
    lengths: np.ndarray[Any, Any] = bound.numpy()[: batch.num_reqs]
    return lengths


def _overcounted(
    runner: Any, batch: Any, at_risk: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Computed tokens that the scheduler does not yet know to be rejected."""
    if not runner.scheduler_config.async_scheduling:
        return np.zeros(batch.num_reqs, dtype=np.int32)
    states = runner.req_states
    computed = _COMPUTED.get(states)
    if computed is None:
        computed = _COMPUTED[states] = ComputedTokens(states.max_num_reqs)
    bound = batch.num_computed_tokens_np[: batch.num_reqs]
    slots = batch.idx_mapping_np[: batch.num_reqs]
    exact = computed.exact(slots, bound, at_risk)
    difference: np.ndarray[Any, Any] = bound - exact
    return difference


def _follow(
    named: dict[str, Any],
    target_seq_lens: torch.Tensor,
    num_reqs: int,
    rule: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]],
) -> None:
    """Lengths of a draft by a rule from the target's accepted tokens."""
    target = _target(target_seq_lens)
    lengths = target.np[:num_reqs].copy()
    rejected = target.rejected(named["num_rejected"])
    _draft(named["input_buffers"]).set_when_known(
        num_reqs, lambda: rule(lengths - rejected())
    )


def _draft(buffers: Any) -> HostLengths:
    if getattr(buffers, "host_lengths", None) is None:
        # Buffers older than the gap: they get their host side now.
        add_host_lengths(lambda _: None, buffers)
    lengths: HostLengths = buffers.host_lengths
    return lengths


def _target(seq_lens: torch.Tensor) -> HostLengths:
    # Whoever prepared the batch has written it.
    found = host_side(seq_lens)
    assert found is not None
    return found


@contextmanager
def _before_each_pass(count: Callable[[], None]) -> Iterator[None]:
    token = _COUNTING.set(count)
    try:
        yield
    finally:
        _COUNTING.reset(token)


_signatures: weakref.WeakKeyDictionary[Callable[..., Any], inspect.Signature] = (
    weakref.WeakKeyDictionary()
)
"""What is called is a wrapper of another gap, maybe, and is to go with it."""


def _signature(call: Callable[..., Any]) -> inspect.Signature:
    found = _signatures.get(call)
    if found is None:
        found = _signatures[call] = inspect.signature(call)
    return found


def _named(call: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Arguments by their names: releases differ in where these stand."""
    bound = _signature(call).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.arguments
