"""Dispatch modes: the base of ours, and how to keep out of sight of all."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from torch.utils import _python_dispatch as dispatch

__all__ = ["Mode", "is_innermost", "quiet", "stack_is_empty"]

if TYPE_CHECKING:

    class Mode:
        """Sees every operator that its thread calls while it is entered."""

        def __enter__(self) -> Any: ...
        def __exit__(self, *exception: object) -> None: ...
else:

    class Mode(dispatch.TorchDispatchMode):
        """Sees every operator that its thread calls while it is entered."""


def quiet() -> AbstractContextManager[object]:
    """No dispatch mode of this thread is active inside."""
    return dispatch._disable_current_modes()


def stack_is_empty() -> bool:
    """Whether this thread has entered no mode."""
    return not dispatch._get_current_dispatch_mode_stack()


def is_innermost(mode: Mode) -> bool:
    """Whether a mode can be left: those entered after it have been."""
    stack: list[object] = [*dispatch._get_current_dispatch_mode_stack()]
    return bool(stack) and stack[-1] is mode
