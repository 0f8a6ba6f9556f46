"""Ray, and what vLLM is told to give its workers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ...environment.modules import find_module
from ...switches import OF_COMMANDS
from ..ray import PREFIXES, RaySeen
from ..switched import OURS

__all__ = ["read_ray"]

_FILE = "ray_non_carry_over_env_vars.json"


def read_ray(environ: Mapping[str, str], *, wants: bool) -> RaySeen:
    if find_module("ray") is None:
        return RaySeen(installed=False)
    file = _settings(environ) / _FILE
    return RaySeen(
        installed=True,
        prefixes=environ.get(PREFIXES, ""),
        names=environ.get("VLLM_RAY_EXTRA_ENV_VARS_TO_COPY", ""),
        switches=tuple(
            name
            for name, value in sorted(environ.items())
            if name in OURS - OF_COMMANDS and value.strip()
        ),
        left_out=_left_out(file),
        left_out_by=str(file),
        wants=wants,
    )


def _settings(environ: Mapping[str, str]) -> Path:
    """vLLM's folder for settings."""
    base = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(environ.get("VLLM_CONFIG_ROOT") or f"{base}/vllm").expanduser()


def _left_out(file: Path) -> frozenset[str]:
    try:
        names = json.loads(file.read_text("utf-8"))
        return frozenset(map(str, names))
    except (OSError, ValueError, TypeError):
        return frozenset()
