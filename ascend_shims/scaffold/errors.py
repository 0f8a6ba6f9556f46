"""Why no gap is made."""

from __future__ import annotations

from ..errors import ConfigurationError

__all__ = ["ScaffoldError"]


class ScaffoldError(ConfigurationError):
    """A new gap cannot be made from what was said; nothing was written."""
