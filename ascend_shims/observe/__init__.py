"""What operators see of a process without asking: log line, metrics, span event.

All three say the same `Summary`. Each uses a library only where the process has it
loaded already, and none starts a thread.
"""

from __future__ import annotations

from .observer import Observer
from .summary import Summary

__all__ = ["Observer", "Summary"]
