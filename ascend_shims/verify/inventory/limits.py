"""What the system keeps for the process: children, limits, timers and the like."""

from __future__ import annotations

import faulthandler
import gc
import locale
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .names import name_of
from .parts import Derived
from .raw import is_module, namespace

__all__ = ["children", "follow_forks", "limits"]

_UNKNOWN = "unknown"


def limits() -> Iterator[tuple[str, Any]]:
    """By name; values of plain kinds, or the very objects."""
    yield "umask", _umask()
    for name in sorted(n for n in dir(resource) if n.startswith("RLIMIT_")):
        yield f"limit {name}", repr(resource.getrlimit(getattr(resource, name)))
    for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF"):
        left, interval = signal.getitimer(getattr(signal, name))
        # How much is left of it is another number each time.
        yield f"timer {name}", f"every {interval:g} s" if left else "off"
    yield "os.getpriority()", os.getpriority(os.PRIO_PROCESS, 0)
    if hasattr(os, "sched_getaffinity"):
        yield "os.sched_getaffinity()", repr(sorted(os.sched_getaffinity(0)))
    yield "locale", locale.setlocale(locale.LC_ALL)
    yield "faulthandler.is_enabled()", faulthandler.is_enabled()
    for name in ("_trace_hook", "_profile_hook"):
        yield f"threading.{name}", namespace(threading).get(name)
    for name in ("argv", "dont_write_bytecode"):
        yield f"sys.{name}", namespace(sys)[name]
    if hasattr(sys, "get_int_max_str_digits"):
        yield "sys.get_int_max_str_digits()", sys.get_int_max_str_digits()
    yield "at-fork callbacks", _at_fork()
    yield from _loaded("_tracemalloc", "is_tracing")
    yield from _loaded("_socket", "getdefaulttimeout")
    events = sys.modules.get("asyncio.events")
    policy = namespace(events).get("_event_loop_policy") if is_module(events) else None
    yield "asyncio's event loop policy", policy


def _loaded(module: str, name: str) -> Iterator[tuple[str, Any]]:
    """What a function of C code says, where its module is loaded."""
    there = sys.modules.get(module)
    found = namespace(there).get(name) if is_module(there) else None
    yield f"{module}.{name}()", found() if found is not None else None


def _umask() -> str:
    """Asking the system would set it for a moment."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return _UNKNOWN
    for line in lines.splitlines():
        name, _, value = line.partition(":")
        if name == "Umask":
            return value.strip()
    return _UNKNOWN


def children() -> Iterator[str]:
    """The names of the process's children, those included that have ended."""
    own = str(os.getpid())
    try:
        entries = [one for one in os.listdir("/proc") if one.isdigit()]  # noqa: PTH208
    except OSError:
        return
    for entry in entries:
        try:
            told = Path(f"/proc/{entry}/stat").read_bytes()
        except OSError:
            continue  # ended meanwhile
        # The name is in parentheses, and may hold some itself.
        name, _, rest = told.decode(errors="replace").rpartition(")")
        if rest.split()[1] == own:
            yield name.partition("(")[2]


def _nothing() -> None:
    """Stands in Python's lists, and does nothing."""


_lists: list[list[Callable[[], Any]]] = []


def follow_forks() -> None:
    """Find the lists of what Python calls around a fork, which nothing gives out: by
    a function of ours in them."""
    if not _lists and hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_nothing, after_in_parent=_nothing, after_in_child=_nothing
        )
        _lists.extend(one for one in gc.get_referrers(_nothing) if type(one) is list)


def _at_fork() -> Derived:
    """All three lists in one: which is which cannot be told."""
    parts: dict[str, Any] = {}
    for callback in (each for one in _lists for each in one):
        if not _is_toolkits(callback):
            name = name_of(callback)
            number = sum(label.partition("#")[0] == name for label in parts)
            parts[f"{name}#{number + 1}" if number else name] = callback
    return Derived("list", [*parts], [*parts.values()])


def _is_toolkits(callback: Any) -> bool:
    """The toolkit follows forks from its first `apply()` on, and does nothing then."""
    function = getattr(callback, "__func__", callback)
    module = getattr(function, "__module__", None)
    return type(module) is str and module.startswith("ascend_shims.")
