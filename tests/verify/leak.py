"""One way in which something is left behind."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Leak"]


@dataclass(frozen=True)
class Leak:
    """What a patch does, and the difference that has to be found."""

    code: str
    path: str
    kind: str
    says: str = ""
    """A part of the sentence."""
    at_import: bool = False
    """Done when the patch's module is imported, and not when it is applied."""
