"""Launches of Triton kernels, which pass beneath torch's dispatcher.

Triton's interpreter runs a kernel from `GridExecutor.__call__`. While somebody wants
to know of launches, and only then, that method is replaced.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import torch

from . import trees
from .entries import Launch
from .modes import quiet

__all__ = ["Hook", "Launching", "Run", "follow", "frozen", "unfollow"]


class Launching(msgspec.Struct, frozen=True):
    """A launch that is about to happen."""

    executor: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def tensors(self) -> list[torch.Tensor]:
        """The tensors among its arguments."""
        return trees.tensors((self.args, self.kwargs))


Run = Callable[[Launching], None]

Hook = Callable[[Launching, Run], None]
"""Is given a launch and what makes a launch happen."""

_hooks: list[Hook] = []
_original: Any = None
_replacement: Any = None
_lock = threading.Lock()


def follow(hook: Hook) -> None:
    """Give each launch of this process to `hook`, until `unfollow`."""
    with _lock:
        _hooks.append(hook)
        if len(_hooks) == 1:
            _install()


def unfollow(hook: Hook) -> None:
    with _lock:
        _hooks.remove(hook)
        if not _hooks:
            _uninstall()


def _executor() -> Any:
    try:
        from triton.runtime.interpreter import GridExecutor
    except ImportError:
        return None
    return GridExecutor


def _install() -> None:
    global _original, _replacement
    owner = _executor()
    if owner is None:
        return
    original = vars(owner)["__call__"]

    def launch(self: Any, /, *args: Any, **kwargs: Any) -> None:
        run: Run = functools.partial(_run, original)
        for hook in tuple(_hooks):
            run = _through(hook, run)
        run(Launching(self, args, kwargs))

    _original, _replacement = original, launch
    owner.__call__ = launch


def _run(original: Any, launching: Launching) -> None:
    # The interpreter's own look at its arguments is no operator.
    with quiet():
        original(launching.executor, *launching.args, **launching.kwargs)


def _through(hook: Hook, run: Run) -> Run:
    return lambda launching: hook(launching, run)


def _uninstall() -> None:
    global _original, _replacement
    owner = _executor()
    if owner is not None and vars(owner)["__call__"] is _replacement:
        owner.__call__ = _original
    _original = _replacement = None


def frozen(
    launching: Launching, alias: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[Launch, Launching]:
    """The launch for the graph, and the one to run now, which fixes its grid.

    That one has the graph's tensors, too: the interpreter keeps what it was given
    until the next garbage collection, and must not keep memory from its pool so long.
    """
    executor = copy.copy(launching.executor)
    entry = Launch(
        executor,
        trees.mapped(launching.args, alias),
        trees.mapped(launching.kwargs, alias),
    )
    grid = executor.grid
    if not callable(grid):
        return entry, Launching(executor, entry.args, entry.kwargs)

    def remember(meta: Any) -> Any:
        # A grid that is a function may look at what changes; the launch may not.
        executor.grid = grid(meta)
        return executor.grid

    now = copy.copy(launching.executor)
    now.grid = remember
    return entry, Launching(now, entry.args, entry.kwargs)
