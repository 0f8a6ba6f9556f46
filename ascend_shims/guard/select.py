"""Which guard watches: the user's own by dotted name, or the default one."""

from __future__ import annotations

import importlib
import logging
import os
import re
from collections.abc import Mapping

from ..errors import ConfigurationError
from .default import DefaultGuard
from .protocol import Guard
from .source import GUARD_VARIABLE, SettingsSource

__all__ = ["GuardNotFoundError", "load_guard", "make_guard"]

_log = logging.getLogger(__name__)

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class GuardNotFoundError(ConfigurationError):
    """A guard's dotted name does not lead to a class that makes a guard."""


def load_guard(name: str) -> Guard:
    """Make the guard of a dotted name. Raises `GuardNotFoundError`."""
    module, _, qualname = name.partition(":")
    try:
        found: object = importlib.import_module(module)
        for part in qualname.split("."):
            found = getattr(found, part)
        guard = found()  # type: ignore[operator]
    except Exception as error:
        raise GuardNotFoundError(
            f"{GUARD_VARIABLE}={name}: {error!r}. Give `package.module:Class`, a "
            "class that is called without arguments, or the path of a settings file"
        ) from error
    lacking = [hook for hook in _HOOKS if not hasattr(guard, hook)]
    if lacking:
        raise GuardNotFoundError(
            f"{GUARD_VARIABLE}={name}: lacks {', '.join(lacking)}. Inherit from "
            "`ascend_shims.guard.protocol:Observer`, which has every hook"
        )
    return guard  # type: ignore[no-any-return]


_HOOKS = (
    "active",
    "bind",
    "sync_for_step",
    "before_sample",
    "on_sampled",
    "after_sample",
    "end_of_wave_sync",
)


def make_guard(environ: Mapping[str, str] = os.environ) -> Guard:
    """The guard that the environment asks for.

    One that cannot be had is no reason for an engine not to start: that is
    logged as an error, and the default guard watches instead, with the
    detectors named in the environment.
    """
    name = environ.get(GUARD_VARIABLE, "").strip()
    if not _DOTTED.fullmatch(name):
        return DefaultGuard(SettingsSource.from_environment(environ))
    try:
        return load_guard(name)
    except GuardNotFoundError as error:
        _log.error("%s", error)
    rest = {key: value for key, value in environ.items() if key != GUARD_VARIABLE}
    return DefaultGuard(SettingsSource.from_environment(rest))
