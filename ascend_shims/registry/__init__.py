"""The list of gaps: what it says, reading it, and checking it.

Names come from their modules on first use, so that importing this package costs
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .loading import load as load
    from .loading import packaged as packaged
    from .model import Companion as Companion
    from .model import Condition as Condition
    from .model import Gap as Gap
    from .model import Needs as Needs
    from .model import Patch as Patch
    from .model import Provider as Provider
    from .model import Registry as Registry
    from .model import Reliance as Reliance
    from .model import Sign as Sign
    from .problems import Problem as Problem
    from .problems import RegistryError as RegistryError

_HOMES = {
    "Companion": "model",
    "Condition": "model",
    "Gap": "model",
    "Needs": "model",
    "Patch": "model",
    "Problem": "problems",
    "Provider": "model",
    "Registry": "model",
    "RegistryError": "problems",
    "Reliance": "model",
    "Sign": "model",
    "load": "loading",
    "packaged": "loading",
}

__all__ = [
    "Companion",
    "Condition",
    "Gap",
    "Needs",
    "Patch",
    "Problem",
    "Provider",
    "Registry",
    "RegistryError",
    "Reliance",
    "Sign",
    "load",
    "packaged",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value
