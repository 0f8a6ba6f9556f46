"""What the interpreters are to do: which modules, which gaps, in which environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ..plan import Plan, PlannedGap
from ..registry.model import Companion, Gap
from ..switches import Switches
from .known import VARYING

__all__ = ["Order", "order_for"]

_BOOTSTRAP = Path(__file__).parents[1] / "bootstrap"


@dataclass(frozen=True)
class Order:
    """The same for all interpreters."""

    roots: tuple[str, ...]
    """Top-level packages that count as upstream."""
    modules: tuple[str, ...]
    """What is imported, in this order."""
    gaps: tuple[dict[str, Any], ...]
    """The gaps to be applied: `id`, `with` (what it needs, and itself), `patches`
    (how many), `targets`."""
    strangers: tuple[str, ...]
    """Packages that a pristine interpreter must not have loaded."""
    environ: Mapping[str, str]

    def job(self, **more: Any) -> dict[str, Any]:
        return {
            "path": list(sys.path),
            "roots": self.roots,
            "modules": self.modules,
            "gaps": self.gaps,
            "strangers": self.strangers,
            "varying": list(VARYING),
            "toolkit": "ascend_shims",
            **more,
        }


def order_for(plan: Plan, switches: Switches) -> Order:
    """What proves that the gaps which `plan` wants leave nothing behind.

    `switches` are what the interpreters start with; the jobs ask for the gaps.
    """
    registry = plan.registry
    return Order(
        roots=registry.upstreams,
        modules=tuple(dict.fromkeys(_modules(plan))),
        gaps=tuple(
            {
                "id": planned.gap.id,
                "with": sorted(_needed(plan, planned)),
                "patches": len(planned.passing),
                "targets": [t for p in planned.passing for t in p.patch.candidates],
            }
            for planned in plan.wanted
        ),
        strangers=tuple(
            dict.fromkeys(
                ["ascend_shims", *(p.partition(".")[0] for p in registry.packages)]
            )
        ),
        environ=_environ(switches),
    )


def _modules(plan: Plan) -> Iterator[str]:
    """Where the gaps patch, what they wait for, and what they rely on.

    Of all gaps and releases: what a release does not have is not imported.
    """
    registry = plan.registry
    yield from registry.upstreams
    owners: list[Gap | Companion] = [*registry.gaps, *registry.companions]
    for owner in owners:
        for patch in owner.patches:
            if patch.waits_for is not None:
                yield patch.waits_for
            yield from (target.partition(":")[0] for target in patch.candidates)
            yield from (one.symbol.partition(":")[0] for one in patch.relies_on)


def _needed(plan: Plan, planned: PlannedGap) -> set[str]:
    found = {planned.gap.id}
    queue = [planned]
    for one in queue:
        for other in (*one.gap.needs.gaps, *one.gap.needs.patched):
            if other not in found and plan[other].wanted:
                found.add(other)
                queue.append(plan[other])
    return found


def _environ(switches: Switches) -> dict[str, str]:
    environ = dict(os.environ)
    environ.update(switches.as_environment())
    # Sets of strings stand in the same order everywhere.
    environ["PYTHONHASHSEED"] = "0"
    # vLLM loads the plugins that this names: all but ours.
    environ["VLLM_PLUGINS"] = ",".join(_other_plugins(environ.get("VLLM_PLUGINS")))
    # `shims run` would bring the toolkit into the pristine interpreter as well.
    path = environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = [entry for entry in path if entry and Path(entry) != _BOOTSTRAP]
    environ.pop("PYTHONPATH", None)
    if kept:
        environ["PYTHONPATH"] = os.pathsep.join(kept)
    return environ


def _other_plugins(allowed: str | None) -> list[str]:
    names = {
        entry.name
        for group in entry_points().groups
        if group.startswith("vllm.")
        for entry in entry_points(group=group)
        if entry.value.partition(":")[0].partition(".")[0] != "ascend_shims"
    }
    if allowed is not None:
        names &= {name.strip() for name in allowed.split(",")}
    return sorted(names)
