"""Gaps by state on the page of metrics that vLLM serves.

    ascend_shims_gaps{process="engine-core",pid="42",state="applied"} 9.0

They are read when somebody scrapes, from the live bindings of every process of the
deployment.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..states import State
from .multiprocess import MULTIPROCESS, beside
from .summary import Summary

__all__ = ["Metrics"]

log = logging.getLogger("ascend_shims")

_ABOUT = ("process", "pid")
_INFO = ("version", "vllm", "device", "plan")


class Metrics:
    """A collector of prometheus_client's, where that and vLLM are loaded."""

    def __init__(self, look: Callable[[], Summary]) -> None:
        self._look = look
        self._take_out: Callable[[], None] | None = None

    def show(self) -> None:
        """Be part of the page. Does nothing where there is none yet, or already."""
        if self._take_out is not None or "vllm" not in sys.modules:
            return
        pages = sys.modules.get("prometheus_client.multiprocess")
        owner = getattr(pages, "MultiProcessCollector", None)
        if owner is None:
            return
        registry = sys.modules["prometheus_client.registry"].REGISTRY
        try:
            registry.register(self)
        except ValueError:
            # Another copy of the toolkit is there.
            return
        end = beside(owner, self.collect_shared)

        def take_out() -> None:
            end()
            with contextlib.suppress(KeyError):  # somebody has thrown out all there was
                registry.unregister(self)

        self._take_out = take_out

    def hide(self) -> None:
        """Leave the page as it was."""
        take_out, self._take_out = self._take_out, None
        if take_out is not None:
            take_out()

    def describe(self) -> list[Any]:
        """The names that are ours; nothing is looked at."""
        return list(self._families([], 0))

    def collect(self) -> Iterator[Any]:
        """What stands where, on the page of one process."""
        # Where a page has both collectors, one of them speaks.
        if MULTIPROCESS not in os.environ:
            yield from self._looked_up()

    def collect_shared(self) -> Iterator[Any]:
        """The same, on the page that several processes share."""
        if MULTIPROCESS in os.environ:
            yield from self._looked_up()

    def _looked_up(self) -> Iterator[Any]:
        if self._take_out is None:
            return
        # Only where somebody scrapes.
        from .family import summaries

        try:
            others, silent = summaries()
            told = [self._look(), *others]
        except Exception as error:  # noqa: BLE001 - vLLM's own are not less so
            log.warning("no metrics of this process: %s", error)
            return
        yield from self._families(told, silent)

    def _families(self, told: list[Summary], silent: int) -> Iterator[Any]:
        core = sys.modules["prometheus_client.metrics_core"]
        gaps = core.GaugeMetricFamily(
            "ascend_shims_gaps", "Gaps by state.", labels=[*_ABOUT, "state"]
        )
        info = core.GaugeMetricFamily(
            "ascend_shims_info", "Always 1.", labels=[*_ABOUT, *_INFO]
        )
        for one in told:
            about = [one.process, str(one.pid)]
            for state in State:
                gaps.add_metric([*about, state.value], one.gaps.get(state, 0))
            named = [str(getattr(one, name) or "") for name in _INFO]
            info.add_metric([*about, *named], 1)
        yield gaps
        yield info
        yield core.GaugeMetricFamily(
            "ascend_shims_silent", "Processes that did not answer.", value=silent
        )
