"""A replacement that makes a function of what lies beneath."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["passing"]


def passing(beneath: Callable[..., Any]) -> Callable[..., Any]:
    def method(*args: Any, **kwargs: Any) -> Any:
        return beneath(*args, **kwargs)

    return method
