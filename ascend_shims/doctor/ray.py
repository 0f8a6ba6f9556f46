"""Whether switches reach the workers that Ray starts.

vLLM gives a Ray worker those variables of the driver that begin with one of some
prefixes. Ours is not among them, so the plugin adds it while something is applied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .finding import Finding, notice, ok, problem

__all__ = ["PREFIXES", "RaySeen", "judge_ray"]

_AREA = "ray"
PREFIXES = "VLLM_RAY_EXTRA_ENV_VAR_PREFIXES_TO_COPY"


@dataclass(frozen=True, slots=True)
class RaySeen:
    """Ray, and what vLLM is told to copy."""

    installed: bool
    prefixes: str = ""
    names: str = ""
    """`VLLM_RAY_EXTRA_ENV_VARS_TO_COPY`."""
    switches: tuple[str, ...] = ()
    """Names of our variables that are set."""
    left_out: frozenset[str] = frozenset()
    """Variables that a file of vLLM keeps from workers."""
    left_out_by: str = ""
    wants: bool = False
    """Whether this environment patches anything, so that the plugin adds the prefix."""


def judge_ray(seen: RaySeen) -> Iterator[Finding]:
    if not seen.installed:
        yield ok(_AREA, "ray-absent", "Ray is not installed")
        return
    kept_out = [name for name in seen.switches if name in seen.left_out]
    if kept_out:
        yield problem(
            _AREA,
            "ray-left-out",
            f"{seen.left_out_by} keeps {', '.join(kept_out)} from Ray workers",
            f"take {', '.join(kept_out)} out of that file",
        )
    prefixes = _parts(seen.prefixes)
    named = _parts(seen.names)
    lacking = [
        name
        for name in seen.switches
        if name not in named and not name.startswith(tuple(prefixes) or "\0")
    ]
    if not lacking:
        said = "Ray workers get every switch that is set"
        if not seen.switches:
            said = "no switch is set that Ray workers would have to get"
        yield ok(_AREA, "ray", said)
        return
    fix = f"export {PREFIXES}={','.join([*prefixes, 'ASCEND_SHIMS'])}"
    if seen.wants:
        yield notice(
            _AREA,
            "ray-prefix-later",
            f"{PREFIXES} does not have ASCEND_SHIMS; the plugin adds it in the "
            "process that starts the workers",
            f"{fix}, to have it in every process",
        )
        return
    yield notice(
        _AREA,
        "ray-prefix-absent",
        f"Ray workers do not get {', '.join(lacking)}, since {PREFIXES} does not have "
        "ASCEND_SHIMS",
        fix,
    )


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]
