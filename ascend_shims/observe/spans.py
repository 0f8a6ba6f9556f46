"""An event in the span that is current, where the program traces with OpenTelemetry."""

from __future__ import annotations

import sys

from .summary import Summary

__all__ = ["add_event"]


def add_event(summary: Summary, ms: int) -> None:
    """Add `ascend_shims.apply` to the current span, if one is being recorded."""
    trace = sys.modules.get("opentelemetry.trace")
    # It is still being imported where it lacks this.
    current = getattr(trace, "get_current_span", None)
    if current is None:
        return
    span = current()
    if not span.is_recording():
        return
    # Attributes are flat, and None is none.
    said = {
        "version": summary.version,
        "process": summary.process,
        "pid": summary.pid,
        "vllm": summary.vllm or "",
        "device": summary.device,
        "plan": summary.plan,
        "ms": ms,
        **{f"gaps.{state}": count for state, count in summary.gaps.items()},
    }
    attributes = {f"ascend_shims.{name}": value for name, value in said.items()}
    span.add_event("ascend_shims.apply", attributes)
