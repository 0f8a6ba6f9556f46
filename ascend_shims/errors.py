"""The two roots of everything ascend-shims raises on purpose, and the errors' codes.

Each room defines its own exceptions beneath these, one a situation. A caller
that wants to survive anything of ours catches `ShimsError`.
"""

from __future__ import annotations

import re

__all__ = ["CANNOT_GO_ON", "USAGE", "ConfigurationError", "ShimsError", "code_of"]

CANNOT_GO_ON = "cannot-go-on"
"""The code of what the operating system refuses, whichever exception tells it."""

USAGE = "usage"
"""The code of what the command line itself refuses."""

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class ShimsError(Exception):
    """Anything that ascend-shims raises on purpose."""


class ConfigurationError(ShimsError, ValueError):
    """What the user gave cannot be used; the message says how to give it.

    The command line turns it into one message and exit code 2.
    """


def code_of(error: BaseException | str) -> str:
    """The code under which `shims explain` has a page about an exception.

    Made from the name of its class, which may be given instead: `NoSuchRelease` is
    `no-such-release`, `SwitchError` is `switch`.
    """
    name = error if isinstance(error, str) else type(error).__name__
    return _WORDS.sub("-", name.removesuffix("Error") or name).lower()
