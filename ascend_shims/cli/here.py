"""What every command shares: the plan for a new process here, and JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from ..plan import Plan
from ..switches import SwitchError, Switches, read_switches
from .named import RegistryPath

__all__ = [
    "NPU_LACKS",
    "assumed",
    "lacks_npu",
    "own_plan",
    "own_switches",
    "print_json",
    "registry_option",
]

_ASKED = "ASCEND_SHIMS_DEVICE=npu"
"""Who asked for an NPU; a reason is nothing else where torch_npu is installed."""

NPU_LACKS = "Next: shims doctor   (the NPU that is asked for is not here)"

registry_option = click.option(
    "--registry",
    type=RegistryPath(exists=True, path_type=Path),
    help="Another registry, or a folder of the project that has one.",
)


def lacks_npu(kind: str, reason: str) -> bool:
    """Whether a device is an NPU that is asked for where there is none: the reason
    says what lacks."""
    if kind != "npu" or not reason.startswith(_ASKED):
        return False
    return reason != _ASKED or not any(Path("/dev").glob("davinci[0-9]*"))


def assumed(
    _context: click.Context, _parameter: click.Parameter, values: Iterable[str]
) -> dict[str, str]:
    """A click callback: `vllm=0.29.0` and lists of that, as a mapping."""
    switches = read_switches({"ASCEND_SHIMS_ASSUME": ",".join(values)})
    if switches.complaints:
        said = switches.complaints[0].removeprefix("ASCEND_SHIMS_ASSUME: ")
        raise click.BadParameter(said)
    return dict(switches.assume)


def own_switches(
    assume: Mapping[str, str] | None = None, registry: Path | None = None
) -> Switches:
    """What the environment says, with options of the command line on top.

    Raises `SwitchError` where the environment says something that cannot be
    understood: a person is here to mend it.
    """
    switches = read_switches(os.environ)
    if switches.complaints:
        said = [one.replace("; the default holds", "") for one in switches.complaints]
        raise SwitchError("\n".join(said))
    if registry is not None and registry.is_dir():
        from ..registry.discovery import in_folder

        registry = in_folder(registry)
    # Also for a process that is started somewhere else.
    named = registry.absolute() if registry is not None else None
    switches = switches.narrowed(registry=named, said_by="--registry")
    return msgspec.structs.replace(
        switches, assume={**switches.assume, **(assume or {})}
    )


def own_plan(switches: Switches) -> Plan:
    """What `apply()` would do in a new process. Raises `ConfigurationError`."""
    # Most commands need no plan, and the engine costs a tenth of a second.
    from ..process import the_process

    plan = the_process().plan(switches)
    unknown = [
        *switches.unknown(gap.id for gap in plan.registry.gaps),
        *_not_asked_about(switches, plan),
    ]
    if unknown:
        raise SwitchError("\n".join(unknown))
    if any(planned.gap.id == _GUARD for planned in plan.wanted):
        _check_guard()
    return plan


_GUARD = "runtime-guard"


def _check_guard() -> None:
    """Raise `GuardConfigurationError` where the gap that takes them cannot use the
    guard's settings."""
    from ..guard.asked import complaints_about

    complaints = complaints_about(os.environ)
    if complaints:
        from ..guard.config import GuardConfigurationError

        raise GuardConfigurationError(
            "\n".join(
                f"the runtime guard cannot use {complaint}; correct it, or unset "
                "ASCEND_SHIMS_GUARD"
                for complaint in complaints
            )
        )


def _not_asked_about(switches: Switches, plan: Plan) -> list[str]:
    """Packages whose version is assumed, and on which nothing depends."""
    from difflib import get_close_matches

    from ..process import packages_of

    relevant = sorted(packages_of(plan.registry))
    return [
        f"a version of {package} is assumed, and no gap depends on that; "
        + (f"did you mean {near[0]}?" if near else f"there are {', '.join(relevant)}")
        for package in switches.assume
        if package not in relevant
        for near in (get_close_matches(package, relevant, n=1),)
    ]


def print_json(value: dict[str, Any]) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, indent=2))
