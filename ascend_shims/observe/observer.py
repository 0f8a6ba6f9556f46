"""Tells operators what a process came to, and takes it back."""

from __future__ import annotations

import logging
from collections.abc import Callable

from . import line, spans
from .metrics import Metrics
from .summary import Summary

__all__ = ["Observer"]

log = logging.getLogger("ascend_shims")


class Observer:
    """One process's log line, metrics and span event.

    Args:
        look: the state of this process now, read from the live bindings. It is asked
            at every scrape, so it must be cheap.
    """

    def __init__(self, look: Callable[[], Summary]) -> None:
        self._metrics = Metrics(look)
        self._told: Summary | None = None
        self._unheard: tuple[Summary, int] | None = None

    def applied(self, summary: Summary, ms: int) -> None:
        """`apply()` has come to `summary`. Says so once, in each process."""
        if summary == self._told:
            return
        self._told = summary
        try:
            self._unheard = None if line.write(summary, ms) else (summary, ms)
            spans.add_event(summary, ms)
        except Exception as error:  # noqa: BLE001 - what is applied is not less so
            log.warning("what was applied could not be told: %s", error)

    def vllm_is_here(self, *, idle: bool) -> None:
        """vLLM calls its plugins: what had to wait for its logging and metrics."""
        if self._unheard is not None and line.write(*self._unheard):
            self._unheard = None
        self.follow(idle=idle)

    def follow(self, *, idle: bool) -> None:
        """Show metrics while something is applied, waiting or failed."""
        if idle:
            self._metrics.hide()
        else:
            self._metrics.show()
