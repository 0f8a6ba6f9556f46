"""Every step of ours that may be interrupted, counted, and made to raise on demand.

A step is a read or write of a slot, the making or retiring of a layer, a look for
references, a change of the import hooks, the import of a replacement, a log line, the
taking or leaving of a lock, a write to the environment, the start or end of the
responder.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ascend_shims import coexistence, exports, process
from ascend_shims.engine import engine, hooks, layers, references, replacements
from ascend_shims.engine.slot import Slot
from ascend_shims.process import Process
from ascend_shims.processes import responder

__all__ = ["KINDS", "InjectedError", "Steps"]


class InjectedError(Exception):
    """What a step was told to raise."""


KINDS: tuple[type[BaseException], ...] = (
    InjectedError,
    KeyboardInterrupt,
    MemoryError,
    SystemExit,
)
"""What may come out of a step."""


class _Lock:
    """A lock whose taking and leaving are steps. It is never lost to one of them."""

    def __init__(self, lock: Any, step: Callable[[str], None]) -> None:
        self._lock, self._step = lock, step

    def acquire(self) -> bool:
        self._step("lock.acquire")
        return bool(self._lock.acquire())

    def release(self) -> None:
        self._lock.release()
        self._step("lock.release")

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class Steps:
    """Counts steps by what they are, and has one of them raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._error: type[BaseException] | None = None
        self._at = 0
        self._thread = threading.get_ident()
        self.taken = 0
        """How many were made since `arm`."""
        self.raised: str | None = None
        """The step that was made to raise."""
        self.kinds = Counter[str]()
        for owner, names in (
            (Slot, ("read", "write")),
            (layers.Layer, ("check", "build")),
            (hooks.Hooks, ("_install", "_withdraw", "_follow", "finished")),
            (hooks._Finder, ("find_spec",)),
            (references, ("find",)),
            (replacements, ("_module",)),
            (engine, ("choose", "check_reliances")),
            (coexistence.PluginHooks, ("follow", "withdraw")),
            (exports, ("_set",)),
            (process, ("make_plan",)),
            (responder.Responder, ("start", "stop")),
            (threading.Thread, ("start",)),
        ):
            for name in names:
                self._interpose(owner, name)
        for name in ("warning", "exception"):
            self._interpose(logging.getLogger("ascend_shims"), name)

    def _interpose(self, owner: Any, name: str) -> None:
        real = getattr(owner, name)
        said = f"{getattr(owner, '__name__', 'log').rpartition('.')[2]}.{name}"

        def step(*args: Any, **kwargs: Any) -> Any:
            self.step(said)
            return real(*args, **kwargs)

        self._patch.setattr(owner, name, step)

    def lock(self, one: Process) -> None:
        """Have the locks of a process take part."""
        one._lock = _Lock(one._lock, self.step)  # type: ignore[assignment]
        one._engine._lock = _Lock(one._engine._lock, self.step)  # type: ignore[assignment]

    def arm(self, at: int, error: type[BaseException]) -> None:
        """Have the step `at`, counted from now, raise `error`."""
        self.taken, self._at, self._error, self.raised = 0, at, error, None

    def disarm(self) -> None:
        self._error = None

    def step(self, what: str) -> None:
        if self._error is None or threading.get_ident() != self._thread:
            return
        self.taken += 1
        if self.taken == self._at:
            error, self._error = self._error, None
            self.raised = what
            self.kinds[what] += 1
            raise error(f"in step {self._at}: {what}")
