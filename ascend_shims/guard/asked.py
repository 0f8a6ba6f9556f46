"""What a person is told of the guard's settings before any process takes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["complaints_about"]


def complaints_about(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What of the guard's settings file cannot be used; a guard by name is not made."""
    where = environ.get("ASCEND_SHIMS_GUARD", "").strip()
    if not where or ":" in where:
        return ()
    # It loads what no other command needs.
    from .source import SettingsSource

    return tuple(SettingsSource(Path(where)).complaints())
