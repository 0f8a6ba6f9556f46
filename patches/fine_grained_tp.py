"""`fine-grained-tp`: every step of fine-grained tensor parallelism replays a graph.

Output projection and MLP may be split over data-parallel ranks. These then exchange
the tokens of each step, layer by layer, by collectives that take as many from every
rank, and hang where one has more. Captured graphs run equally many on all ranks; an
eager step runs what each rank was given.

- A graph manager is asked, as soon as it is built, for a graph for every step that
  may come. One that has none for some is refused: its configuration cannot work.
- Steps are looked at where data-parallel ranks agree on how to run them, be they real
  ones, dummy ones or those of an idle rank, of the model or of its draft. Agreement
  is the last thing before the first layer, and all ranks are told the same; so an
  eager step raises on every rank at once, and none is left waiting for another.

Until its graphs are captured a manager has none to run; all ranks warm up alike. A
profile run is eager by design.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ascend_shims.device.moe import moe
from ascend_shims.errors import ConfigurationError, ShimsError

__all__ = [
    "EagerStepError",
    "UncapturedStepError",
    "refuse_uncaptured",
    "require_graph",
]


class UncapturedStepError(ConfigurationError):
    """With this configuration a step may come for which no graph is captured."""


class EagerStepError(ShimsError, RuntimeError):
    """A step was about to run outside captured graphs."""


_SETTINGS: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
"""By graph manager: the settings that bind it to graphs; empty where none does."""


def refuse_uncaptured(
    call: Callable[..., None], manager: Any, *args: Any, **kwargs: Any
) -> None:
    """After `CudaGraphManager.__init__`. Raises `UncapturedStepError`."""
    call(manager, *args, **kwargs)
    settings = _settings_of(manager)
    doubt = next(_doubts(manager), None) if settings else None
    if doubt is not None:
        raise UncapturedStepError(
            f"{settings} needs a captured graph for every step, and {doubt}"
        )


def require_graph(
    call: Callable[..., Any], cudagraph_manager: Any, *args: Any, **kwargs: Any
) -> Any:
    """After `dispatch_cg_and_sync_dp`: what ranks agreed on, the descriptor first.

    Raises `EagerStepError`.
    """
    agreed = call(cudagraph_manager, *args, **kwargs)
    batch = agreed[0]
    # Upstream asks for eager passes by name where it profiles.
    if batch.cg_mode or not batch.num_tokens or kwargs.get("need_eager"):
        return agreed
    if cudagraph_manager is None or not cudagraph_manager._graphs_captured:
        return agreed
    if settings := _settings_of(cudagraph_manager):
        raise EagerStepError(
            f"a step of {batch.num_tokens} tokens was about to run outside captured "
            f"graphs, here or on another data-parallel rank, and with {settings} the "
            "ranks exchange tokens in graphs alone; set compilation_config."
            "cudagraph_mode and cudagraph_capture_sizes so that each step has one"
        )
    return agreed


def _settings_of(manager: Any) -> str:
    settings = _SETTINGS.get(manager)
    if settings is None:
        exchanged = moe().exchanged_across_dp(manager.vllm_config)
        settings = _SETTINGS[manager] = " and ".join(
            f"finegrained_tp_config.{name}={size}" for name, size in exchanged.items()
        )
    return settings


def _doubts(manager: Any) -> Iterator[str]:
    """Why a step may find no graph, and what to set instead."""
    config, mode = manager.vllm_config, manager.cudagraph_mode
    is_draft = _is_draft(manager)
    if is_draft and not mode and config.num_speculative_tokens == 1:
        return  # for passes beyond the first, which do not come
    if not mode:
        whose = "those of its draft have" if is_draft else "the model has"
        asked = config.compilation_config.cudagraph_mode
        yield f"{whose} none with cudagraph_mode={asked}; {_SET_MODE}"
        return
    if not is_draft:
        yield from _eager_by_design(config)
        if not (mode.mixed_mode() or moe().decodes_only(config)):
            yield f"cudagraph_mode={mode} captures decodes alone; {_SET_MODE}"
    yield from _uncaptured(manager)


_SET_MODE = (
    "set compilation_config.cudagraph_mode to FULL or FULL_AND_PIECEWISE, and "
    "enforce_eager to false"
)


def _eager_by_design(config: Any) -> Iterator[str]:
    """Steps that upstream runs eagerly whatever was captured."""
    if config.model_config.is_encoder_decoder:
        yield "an encoder-decoder model encodes outside graphs; choose another model"
    if config.parallel_config.use_ubatching:
        yield (
            "microbatches of ranks with unequal load run outside graphs; set "
            "enable_dbo to false and ubatch_size to 0"
        )
    speculative = config.speculative_config
    if speculative is not None and speculative.method == "draft_model":
        yield (
            "a standalone draft model runs outside graphs; set "
            "speculative_config.method to another one"
        )


def _uncaptured(manager: Any) -> Iterator[str]:
    """Steps for which upstream's own choice finds no graph."""
    config = manager.vllm_config
    steps = list(_steps(manager))
    with _as_if_captured(manager):
        # Each number of adapters has the same graphs as none.
        bare = [
            num_tokens
            for num_reqs, num_tokens, uniform in steps
            if not manager.dispatch(num_reqs, num_tokens, uniform, 0).cg_mode
        ]
    if bare:
        sizes = config.compilation_config.cudagraph_capture_sizes or (0,)
        yield (
            f"one of {bare[0]} tokens has none; include {steps[-1][1]}, the most "
            "tokens that a step may have, in compilation_config."
            f"cudagraph_capture_sizes, of which the largest is {max(sizes)}, or lower "
            "max_num_batched_tokens or max_num_seqs"
        )


def _steps(manager: Any) -> Iterator[tuple[int, int, int | None]]:
    """Requests, tokens, and tokens of each request where these are alike.

    Of the steps with so many tokens the one that fits the fewest graphs. Where only
    decodes are captured it is these that come: prompts were ruled out before.
    """
    scheduler = manager.vllm_config.scheduler_config
    if manager.cudagraph_mode.mixed_mode():
        for num_tokens in range(1, scheduler.max_num_batched_tokens + 1):
            yield min(num_tokens, scheduler.max_num_seqs), num_tokens, None
        return
    query_len = manager.decode_query_len
    for num_reqs in range(1, scheduler.max_num_seqs + 1):
        yield num_reqs, num_reqs * query_len, query_len


@contextmanager
def _as_if_captured(manager: Any) -> Iterator[None]:
    before = manager._graphs_captured
    manager._graphs_captured = True
    try:
        yield
    finally:
        manager._graphs_captured = before


def _is_draft(manager: Any) -> bool:
    from vllm.v1.worker.gpu.cudagraph_utils import ModelCudaGraphManager

    return not isinstance(manager, ModelCudaGraphManager)
