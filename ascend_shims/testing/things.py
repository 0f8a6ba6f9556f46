"""What a patch leaves outside of namespaces: variables, import hooks, threads.

Of variables and threads only those of shims; import hooks of anybody, unless the
module that defines them has just been imported.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from .definitions import defined_in

__all__ = ["Thing", "differing", "things"]

Thing = tuple[str, Any]
"""Where it is, and its name there."""

_VARIABLES = ("ASCEND_SHIMS", "VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY")
_THREADS = "ascend-shims"


def things() -> dict[Thing, Any]:
    """What there is now."""
    found: dict[Thing, Any] = {}
    for name, value in os.environ.items():
        if name.startswith(_VARIABLES):
            found["os.environ", name] = value
    hooks: dict[str, Iterable[Any]] = {
        "sys.meta_path": sys.meta_path,
        "sys.path_hooks": sys.path_hooks,
    }
    for where, present in hooks.items():
        found.update({(where, id(hook)): hook for hook in present})
    # Whoever applies anew has another thread, which does what the one before did.
    running = Counter(thread.name for thread in threading.enumerate())
    for name, count in running.items():
        if name.startswith(_THREADS):
            found["threads", name] = count
    return found


def differing(
    was: Mapping[Thing, Any], now: Mapping[Thing, Any], imported: Set[str]
) -> Iterator[tuple[Thing, str]]:
    """What is not as it was, with a line about each."""
    for key in {**was, **now}:
        where, name = key
        old, new = was.get(key), now.get(key)
        if old == new:
            continue
        if where == "os.environ":
            yield key, f"os.environ[{name!r}]: was {_set(old)}, is {_set(new)}"
        elif where == "threads":
            if (new or 0) > (old or 0):
                yield key, f"threads: {name} is running"
        elif new is None:
            yield key, f"{where}: {_hook(old)} is gone"
        elif defined_in(new) not in imported:
            yield key, f"{where}: {_hook(new)} is new"


def _set(value: str | None) -> str:
    return "not set" if value is None else repr(value)


def _hook(hook: Any) -> str:
    kind = hook if hasattr(hook, "__qualname__") else type(hook)
    return f"{kind.__module__}.{kind.__qualname__}"
