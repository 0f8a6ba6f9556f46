"""What would be applied, and why not where not. Nothing is touched.

    registry x environment x switches -> Plan

A plan is a pure function of three values, so it can be drawn up for a machine
that is not this one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from .environment import Claim, Environment
from .environment.versions import Fit, fit_all
from .errors import ConfigurationError
from .registry.found import is_brought
from .registry.model import Companion, Gap, Patch, Provider, Registry
from .states import State
from .switches import Switches

__all__ = [
    "REVERT",
    "NotAllowedError",
    "Plan",
    "PlannedGap",
    "PlannedPatch",
    "check_allowed",
    "claim_of",
    "make_plan",
]

REVERT = "revert()"
"""Who says that a gap is off where the program took it back."""


_OWN_PACKAGE = "ascend_shims.patches"


class NotAllowedError(ConfigurationError):
    """A registry names a package, whose code would run, that nobody has allowed."""


class PlannedPatch(msgspec.Struct, frozen=True):
    """One patch and whether its gate is open."""

    patch: Patch
    position: int
    """Place of the patch in its gap, of what companions bring behind its own."""
    gate: Literal["open", "by-contract", "closed"]
    """`by-contract`: the version says nothing, so the target itself decides."""
    reason: str
    companion: Companion | None = None
    """Who brings it; None for a patch of the gap's own."""


class PlannedGap(msgspec.Struct, frozen=True):
    """One gap: wanted, or the state that keeps it out and the reason."""

    gap: Gap
    position: int
    """Place of the gap in the registry; layers fold in this order."""
    state: State | None
    """None where the gap is to be applied."""
    reason: str
    patches: tuple[PlannedPatch, ...]
    """The gap's own."""
    brought: tuple[PlannedPatch, ...] = ()
    """Those of its companions."""

    @property
    def wanted(self) -> bool:
        return self.state is None

    @property
    def left_to_a_plugin(self) -> bool:
        """Whether only what a plugin does keeps the gap out."""
        return self.state in (State.PROVIDED, State.CONFLICT)

    @property
    def passing(self) -> tuple[PlannedPatch, ...]:
        """The patches whose gate is not closed, its companions' last."""
        return tuple(p for p in self.all_patches if p.gate != "closed")

    @property
    def count_own(self) -> int:
        """How many of these are the gap's own."""
        return sum(p.gate != "closed" for p in self.patches)

    @property
    def all_patches(self) -> tuple[PlannedPatch, ...]:
        return (*self.patches, *self.brought)


class Plan(msgspec.Struct, frozen=True):
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
            [planned.gap.id, [p.position for p in planned.passing[: planned.count_own]]]
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


def _planned_patches(
    registry: Registry, gap: Gap, environment: Environment
) -> tuple[PlannedPatch, ...]:
    """The gap's own patches, and then those of its companions."""
    pairs: list[tuple[Patch, Companion | None]] = [(one, None) for one in gap.patches]
    for companion in registry.companions_of(gap):
        pairs += [(patch, companion) for patch in companion.patches]
    planned = []
    for position, (patch, brings) in enumerate(pairs):
        gate, reason = _gate(gap, patch, environment)
        planned.append(PlannedPatch(patch, position, gate, reason, brings))  # type: ignore[arg-type]
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


def claim_of(provider: Provider) -> Claim:
    """What has to be looked for in the plugin that a provider is in."""
    return Claim(provider.symbol, provider.reads)


def _provided(gap: Gap, environment: Environment) -> str | None:
    """What the installed plugin closes the gap with, in words, if it does."""
    for provider in gap.provided_by:
        claim = claim_of(provider)
        found = environment.providers.closing.get(claim)
        versions = {p: environment.version(p) for p in provider.versions}
        if found and fit_all(versions, provider.versions) is not Fit.OUTSIDE:
            plugin = environment.distributions.get(claim.package, claim.package)
            told = "by its source" if found.told_by == "source" else "as loaded"
            return f"{plugin} closes it, {told}: {found.symbol}"
    return None


def _overridden(
    patches: tuple[PlannedPatch, ...], environment: Environment
) -> str | None:
    """Why a patch of ours would never run, if that is so.

    Lazy patches serve some configurations only, and so does what overrides them.
    """
    passing = [p.patch for p in patches if p.gate != "closed" and not p.patch.lazy]
    for target in (target for patch in passing for target in patch.candidates):
        override = environment.providers.before.get(target)
        if override:
            return f"{override} overrides {target} and never calls it"
    return None


def _decide(
    gap: Gap,
    patches: tuple[PlannedPatch, ...],
    environment: Environment,
    switches: Switches,
) -> tuple[State | None, str]:
    # What stays ours of a landed gap is applied like any other patch.
    if gap.status == "landed" and not patches:
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
    provided = _provided(gap, environment)
    if provided and switches.prefer == "plugin":
        return State.PROVIDED, provided
    if provided and not patches:
        return State.PROVIDED, f"{provided}; there is no patch of ours to prefer"
    if not patches:
        return State.NOT_APPLICABLE, f"no patch yet: {gap.unpatched}"
    missing = _absent(gap, environment)
    if missing:
        return State.NOT_APPLICABLE, f"{missing} is not installed"
    if all(planned.gate == "closed" for planned in patches):
        return State.VERSION_SKIPPED, patches[0].reason
    overridden = _overridden(patches, environment)
    if overridden and provided:
        return State.PROVIDED, f"{provided}; ours cannot be preferred: {overridden}"
    if overridden:
        return State.CONFLICT, f"our patch would never run: {overridden}"
    reason = next(p.reason for p in patches if p.gate != "closed")
    if provided:
        reason += f"; preferred (ASCEND_SHIMS_PREFER=shims), though {provided}"
    return None, reason


def _unmet(gap: Gap, decided: Mapping[str, PlannedGap]) -> Iterator[str]:
    """What is missing of what a gap needs, one reason each."""
    for other in gap.needs.gaps:
        state = decided[other].state
        if state not in (None, State.LANDED, State.PROVIDED):
            yield f"needs {other}, which is {state}"
    for other in gap.needs.patched:
        state = decided[other].state
        if state is State.PROVIDED:
            yield (
                f"builds on our patches of {other}, which is provided; "
                "ASCEND_SHIMS_PREFER=shims applies both"
            )
        elif state is not None:
            yield f"needs {other}, which is {state}"


def check_allowed(registry: Registry, switches: Switches) -> None:
    """Raise `NotAllowedError` unless code of the registry's package may run here.

    A registry is data, which may come from anywhere; it does not choose whose code is
    imported. Who installed a plugin that brings both has agreed to that.
    """
    package, path = registry.package, switches.registry
    allowed = package in (_OWN_PACKAGE, *switches.allow)
    if not allowed and not (path and is_brought(path, package)):
        raise NotAllowedError(
            f"{switches.registry} takes its patches from the package "
            f"{registry.package!r}, which is not allowed; if you trust it, say "
            f"ASCEND_SHIMS_ALLOW={registry.package}, or "
            f"apply(registry=…, allow=[{registry.package!r}])"
        )


def make_plan(registry: Registry, environment: Environment, switches: Switches) -> Plan:
    """Decide every gap. Pure: reads nothing but its arguments.

    A gap that needs another one is dropped with it, transitively.
    """
    decided: dict[str, PlannedGap] = {}
    for position, gap in enumerate(registry.gaps):
        every = _planned_patches(registry, gap, environment)
        patches, brought = every[: len(gap.patches)], every[len(gap.patches) :]
        state, reason = _decide(gap, patches, environment, switches)
        decided[gap.id] = PlannedGap(gap, position, state, reason, patches, brought)
    dropped = True
    while dropped:
        dropped = False
        for planned in [p for p in decided.values() if p.wanted]:
            unmet = next(_unmet(planned.gap, decided), None)
            if unmet is None:
                continue
            decided[planned.gap.id] = msgspec.structs.replace(
                planned, state=State.NOT_APPLICABLE, reason=unmet
            )
            dropped = True
    return Plan(registry, environment, switches, tuple(decided.values()))
