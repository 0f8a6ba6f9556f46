"""The two roots of everything ascend-shims raises on purpose.

Each room defines its own exceptions beneath these, one a situation. A caller
that wants to survive anything of ours catches `ShimsError`.
"""

from __future__ import annotations

__all__ = ["ConfigurationError", "ShimsError"]


class ShimsError(Exception):
    """Anything that ascend-shims raises on purpose."""


class ConfigurationError(ShimsError, ValueError):
    """What the user gave cannot be used; the message says how to give it.

    The command line turns it into one message and exit code 2.
    """
