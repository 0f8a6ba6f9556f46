"""The line in the log: `ascend_shims.apply {"schema": 1, …}`."""

from __future__ import annotations

import json
import logging

from .summary import Summary

__all__ = ["write"]

log = logging.getLogger("ascend_shims")


def write(summary: Summary, ms: int) -> bool:
    """Log what a process came to. Returns whether anybody was listening.

    That is whoever listens to our logger. Without one it is vLLM, which shows its own
    lines alone: with its prefix, in its format, from its level on.
    """
    taker = _taker()
    if taker is None:
        return False
    said = json.dumps({**summary.as_dict(), "ms": ms})
    record = log.makeRecord(
        log.name, logging.INFO, __file__, 0, "%s", (f"ascend_shims.apply {said}",), None
    )
    taker.handle(record)
    return True


def _taker() -> logging.Logger | None:
    if log.isEnabledFor(logging.INFO) and log.hasHandlers():
        return log
    # Not by `getLogger`, which would make it.
    theirs = logging.root.manager.loggerDict.get("vllm")
    if not isinstance(theirs, logging.Logger) or not theirs.hasHandlers():
        return None
    return theirs if theirs.isEnabledFor(logging.INFO) else None
