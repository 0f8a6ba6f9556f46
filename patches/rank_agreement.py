"""`rank-agreement`: ranks that do not carry the same patches do not start.

One rank with a patch and one without compute with different shapes, or wait for each
other in a collective. So when the ranks have met, and before they exchange anything
else, each tells the others what it carries.

Every gap that is in force has a layer here. The topmost opens a list, each beneath adds
its gap, and what is told is what runs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import ascend_shims
from ascend_shims.ranks.meeting import meet
from ascend_shims.ranks.told import RankTold, tell

__all__ = ["agree", "answer", "answer_call"]

_log = logging.getLogger(__name__)

_PATIENCE = 60.0

_ASKED = "update_environment_variables"

Versions = dict[str, str]
"""Versions of the gaps whose layers a call has come through so far, by id."""

_STARTING: ContextVar[Versions | None] = ContextVar("starting", default=None)
_ANSWERING: ContextVar[Versions | None] = ContextVar("answering", default=None)


def agree(
    gap: str, version: str, call: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Any:
    """After `init_distributed_environment`: all ranks carry the same, or all raise."""
    is_topmost = _STARTING.get() is None
    # Before the ranks meet, so that none keeps the others waiting.
    report = ascend_shims.status() if is_topmost and _is_wanted() else None
    versions, result = _through(_STARTING, gap, version, call, args, kwargs)
    if versions is not None and report is not None:
        _compare(report, versions)
    return result


def answer(
    gap: str,
    version: str,
    call: Callable[..., Any],
    /,
    worker: Any,
    envs_list: Any,
    **kwargs: Any,
) -> Any:
    """Around `WorkerWrapperBase.update_environment_variables`: who updates by nothing
    wants to know what this rank carries.

    Ray gives the methods of its actors one more keyword.
    """
    args = (worker, envs_list)
    versions, result = _through(_ANSWERING, gap, version, call, args, kwargs)
    return result if versions is None else _answer(worker, envs_list, versions, result)


def answer_call(
    gap: str,
    version: str,
    call: Callable[..., Any],
    /,
    obj: Any,
    method: Any,
    args: Any,
    kwargs: Any,
) -> Any:
    """Around `run_method`, by which some executors call: the same."""
    if method != _ASKED or len(args) != 1:
        return call(obj, method, args, kwargs)
    passed = (obj, method, args, kwargs)
    versions, result = _through(_ANSWERING, gap, version, call, passed, {})
    return result if versions is None else _answer(obj, args[0], versions, result)


def _answer(worker: Any, envs_list: Any, versions: Versions, result: Any) -> Any:
    if any(envs_list):
        return result
    rank = getattr(worker, "rpc_rank", 0)
    return _told(rank, ascend_shims.status(), versions).as_text()


def _through(
    var: ContextVar[Versions | None],
    gap: str,
    version: str,
    call: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Versions | None, Any]:
    """What the call returns, and to the topmost layer the versions of all."""
    versions = var.get()
    if versions is not None:
        versions[gap] = version
        return None, call(*args, **kwargs)
    versions = {gap: version}
    token = var.set(versions)
    try:
        return versions, call(*args, **kwargs)
    finally:
        var.reset(token)


def _is_wanted() -> bool:
    said = os.environ.get("ASCEND_SHIMS_RANKS", "").strip().lower()
    return said not in ("off", "0", "false", "no")


def _compare(report: Any, versions: Versions) -> None:
    import torch.distributed as dist

    if not dist.is_initialized() or dist.get_world_size() == 1:
        return
    store = dist.distributed_c10d._get_default_store()
    told = _told(dist.get_rank(), report, versions)
    meet(store, dist.get_world_size(), told, _patience())


def _patience() -> float:
    """Seconds that a rank waits for the others, which have all met a moment ago."""
    said = os.environ.get("ASCEND_SHIMS_RANKS_PATIENCE", "").strip()
    try:
        return max(float(said), 0.0) if said else _PATIENCE
    except ValueError:
        _log.warning(
            "ASCEND_SHIMS_RANKS_PATIENCE=%s is not a number of seconds; %g it is",
            said,
            _PATIENCE,
        )
        return _PATIENCE


def _told(rank: int, report: Any, versions: Versions) -> RankTold:
    states = ((one.id, one.state, one.reason) for one in report.gaps)
    return tell(rank, report.plan, states, versions)
