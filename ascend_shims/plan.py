"""What would be applied, and why not where not. Nothing is touched.

    registry x environment x switches -> Plan

A plan is a pure function of three values, so it can be drawn up for a machine
that is not this one.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from .environment import Environment
from .environment.versions import Fit, fit_all
from .registry.model import Gap, Patch, Registry
from .states import State
from .switches import Switches

__all__ = ["REVERT", "Plan", "PlannedGap", "PlannedPatch", "make_plan"]

REVERT = "revert()"
"""Who says that a gap is off where the program took it back."""


@dataclass(frozen=True, slots=True)
class PlannedPatch:
    """One patch and whether its gate is open."""

    patch: Patch
    position: int
    """Place of the patch in its gap."""
    gate: Literal["open", "by-contract", "closed"]
    """`by-contract`: the version says nothing, so the target itself decides."""
    reason: str


@dataclass(frozen=True, slots=True)
class PlannedGap:
    """One gap: wanted, or the state that keeps it out and the reason."""

    gap: Gap
    position: int
    """Place of the gap in the registry; layers fold in this order."""
    state: State | None
    """None where the gap is to be applied."""
    reason: str
    patches: tuple[PlannedPatch, ...]

    @property
    def wanted(self) -> bool:
        return self.state is None

    @property
    def passing(self) -> tuple[PlannedPatch, ...]:
        """The patches whose gate is not closed."""
        return tuple(p for p in self.patches if p.gate != "closed")


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision for every gap of a registry."""

    registry: Registry
    environment: Environment
    switches: Switches
    gaps: tuple[PlannedGap, ...]

    def __getitem__(self, gap_id: str) -> PlannedGap:
        for planned in self.gaps:
            if planned.gap.id == gap_id:
                return planned
        raise KeyError(gap_id)

    @property
    def wanted(self) -> tuple[PlannedGap, ...]:
        return tuple(planned for planned in self.gaps if planned.wanted)

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that two processes share if they agree."""
        decided = [
            [planned.gap.id, [p.position for p in planned.passing]]
            for planned in self.wanted
        ]
        return hashlib.sha256(json.dumps(decided).encode()).hexdigest()[:12]


def _gate(gap: Gap, patch: Patch, environment: Environment) -> tuple[str, str]:
    ranges = [gap.versions, patch.versions]
    packages = dict.fromkeys(package for r in ranges for package in r)
    versions = {package: environment.version(package) for package in packages}
    said = ", ".join(str(environment.distributions[p]) for p in packages)
    fits = [fit_all(versions, each) for each in ranges]
    if Fit.OUTSIDE in fits:
        range_ = ranges[fits.index(Fit.OUTSIDE)]
        wanted = ", ".join(f"{package} {spec}" for package, spec in range_.items())
        return "closed", f"{said} is outside {wanted}"
    if Fit.UNKNOWN in fits:
        return "by-contract", f"{said}: the version tells nothing, the target decides"
    return "open", said or "for every release"


def _planned_patches(gap: Gap, environment: Environment) -> tuple[PlannedPatch, ...]:
    planned = []
    for position, patch in enumerate(gap.patches):
        gate, reason = _gate(gap, patch, environment)
        planned.append(PlannedPatch(patch, position, gate, reason))  # type: ignore[arg-type]
    return tuple(planned)


def _absent(gap: Gap, environment: Environment) -> str | None:
    """The package that a gap is about and that is not here, if any."""
    roots = {target.partition(".")[0] for p in gap.patches for target in p.candidates}
    roots |= set(gap.versions)
    return next(
        (
            root
            for root in sorted(roots)
            if root in environment.distributions
            and not environment.distributions[root].present
        ),
        None,
    )


def _decide(
    gap: Gap,
    patches: tuple[PlannedPatch, ...],
    environment: Environment,
    switches: Switches,
) -> tuple[State | None, str]:
    if gap.status == "landed":
        return State.LANDED, gap.unpatched or "upstream does it itself"
    if gap.status == "retired":
        return State.OBSOLETE, gap.unpatched or "retired"
    choice = switches.choice(gap.id)
    if choice.on is False and choice.said_by == REVERT:
        return State.REVERTED, "taken back by revert()"
    if choice.on is False:
        return State.OFF, f"switched off by {choice.said_by}"
    if choice.on is None and gap.default == "off":
        return State.OFF, "off by default; ASCEND_SHIMS_ONLY or ASCEND_SHIMS=on applies"
    if gap.needs.device and environment.device.kind == "none":
        return State.NOT_APPLICABLE, f"no NPU: {environment.device.reason}"
    if not patches:
        return State.NOT_APPLICABLE, f"no patch yet: {gap.unpatched}"
    missing = _absent(gap, environment)
    if missing:
        return State.NOT_APPLICABLE, f"{missing} is not installed"
    if all(planned.gate == "closed" for planned in patches):
        return State.VERSION_SKIPPED, patches[0].reason
    return None, next(p.reason for p in patches if p.gate != "closed")


def make_plan(registry: Registry, environment: Environment, switches: Switches) -> Plan:
    """Decide every gap. Pure: reads nothing but its arguments.

    A gap that needs another one is dropped with it, transitively.
    """
    decided: dict[str, PlannedGap] = {}
    for position, gap in enumerate(registry.gaps):
        patches = _planned_patches(gap, environment)
        state, reason = _decide(gap, patches, environment, switches)
        decided[gap.id] = PlannedGap(gap, position, state, reason, patches)
    dropped = True
    while dropped:
        dropped = False
        for planned in [p for p in decided.values() if p.wanted]:
            needed = [
                decided[other]
                for other in planned.gap.needs.gaps
                if decided[other].state not in (None, State.LANDED)
            ]
            if not needed:
                continue
            reason = f"needs {needed[0].gap.id}, which is {needed[0].state}"
            decided[planned.gap.id] = PlannedGap(
                planned.gap,
                planned.position,
                State.NOT_APPLICABLE,
                reason,
                planned.patches,
            )
            dropped = True
    return Plan(registry, environment, switches, tuple(decided.values()))
