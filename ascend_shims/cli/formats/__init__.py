"""A checked release, written for a person or for a machine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...upstream.check import Checked

__all__ = ["render"]


def render(form: str, checked: Checked, *, everything: bool) -> None:
    """Write `checked` to standard output in the format called `form`."""
    module = import_module(f"{__name__}.{form}")
    module.write(checked, everything=everything)
