"""What is open, what is applied and why not where not: a value, and its JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from .engine.standing import Standing
from .environment import Environment
from .errors import ShimsError
from .plan import Plan
from .registry.joined import Joined
from .registry.model import Registry
from .states import State

__all__ = [
    "SCHEMA",
    "GapReport",
    "PatchReport",
    "RegistryReport",
    "Report",
    "UnappliedError",
    "registries_of",
]

SCHEMA = 1


class PatchReport(msgspec.Struct, frozen=True):
    """One patch of a gap."""

    target: str
    """The candidate that was chosen; all of them where none could be."""
    kind: str
    replacement: str
    state: State
    reason: str
    companion: str | None = None
    """The companion that brings it; None for a patch of the gap's own."""


class GapReport(msgspec.Struct, frozen=True):
    """One gap in one process."""

    id: str
    title: str
    status: str
    kind: str
    state: State
    reason: str
    patches: tuple[PatchReport, ...]


class RegistryReport(msgspec.Struct, frozen=True):
    """A registry that an installed plugin brings, or that was asked for."""

    namespace: str
    distribution: str | None
    """Name and version of who brings it."""
    path: str | None
    gaps: int
    problem: str | None = None
    """Why it is left out, and what to do; None where its gaps are among the others."""


class Report(msgspec.Struct, frozen=True):
    """All gaps of one process, as the live bindings stood when it was made."""

    gaps: tuple[GapReport, ...]
    plan: str
    """Digest of the plan; two processes that agree share it."""
    environment: Environment
    process: dict[str, Any] = msgspec.field(default_factory=dict)
    """`pid` and `role`."""
    rebound: tuple[str, ...] = ()
    """References elsewhere that were moved along with a patch, `module:name`."""
    stale: tuple[str, ...] = ()
    """References that still hold an unpatched value, and what they are."""
    registries: tuple[RegistryReport, ...] = ()
    """Those that installed plugins bring."""

    def __getitem__(self, gap_id: str) -> GapReport:
        for gap in self.gaps:
            if gap.id == gap_id:
                return gap
        from difflib import get_close_matches

        ids = [gap.id for gap in self.gaps]
        # Who knows the gap by its own registry leaves out the namespace.
        spaced = [one for one in ids if one.rpartition("/")[2] == gap_id]
        near = spaced or get_close_matches(gap_id, ids, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(ids)}"
        raise KeyError(f"no gap is called {gap_id!r}; {hint}")

    def __str__(self) -> str:
        """A line a gap."""
        return "\n".join(f"{gap.id}: {gap.state}: {gap.reason}" for gap in self.gaps)

    def state(self, gap_id: str) -> State:
        """A gap's state when the report was made; `status()` makes a new report."""
        return self[gap_id].state

    @property
    def faults(self) -> tuple[GapReport, ...]:
        """Gaps that were wanted and are not in force."""
        return tuple(gap for gap in self.gaps if gap.state.is_fault)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, schema 1."""
        return {
            "schema": SCHEMA,
            "plan": self.plan,
            "process": self.process,
            "environment": _environment(self.environment),
            "registries": msgspec.to_builtins(self.registries),
            "gaps": [_gap(gap) for gap in self.gaps],
            "rebound": list(self.rebound),
            "stale": list(self.stale),
        }


class UnappliedError(ShimsError):
    """Strict: a gap that was wanted is not in force. `report` has the whole state."""

    def __init__(self, report: Report, gaps: Sequence[GapReport]) -> None:
        listed = "; ".join(f"{g.id}: {g.state}: {g.reason}" for g in gaps)
        super().__init__(
            f"{listed}. Switch off what you can do without, "
            f"ASCEND_SHIMS_DISABLE={','.join(g.id for g in gaps)}; the gaps that "
            "could be applied are, and ascend_shims.revert() takes them back"
        )
        self.report = report


def _environment(environment: Environment) -> dict[str, Any]:
    return {
        "python": environment.python,
        "device": {
            "kind": environment.device.kind,
            "reason": environment.device.reason,
        },
        "distributions": {
            package: {
                "version": found.version,
                "distribution": found.name,
                "file": found.file,
                "origin": found.origin,
            }
            for package, found in environment.distributions.items()
        },
    }


def _gap(gap: GapReport) -> dict[str, Any]:
    return {
        "id": gap.id,
        "title": gap.title,
        "status": gap.status,
        "kind": gap.kind,
        "state": gap.state.value,
        "reason": gap.reason,
        "patches": [
            {
                "target": patch.target,
                "kind": patch.kind,
                "replacement": patch.replacement,
                "state": patch.state.value,
                "reason": patch.reason,
                "companion": patch.companion,
            }
            for patch in gap.patches
        ],
    }


def gap_report(standing: Standing) -> GapReport:
    """The report on one gap."""
    gap = standing.planned.gap
    known = {one.patch.position: one for one in standing.patches}
    patches = []
    for planned in standing.planned.all_patches:
        one = known.get(planned.position)
        closed = planned.gate == "closed"
        if one is not None:
            state, reason = one.state, one.reason
        else:
            state = State.VERSION_SKIPPED if closed else standing.state
            reason = planned.reason if closed else standing.reason
        target = (one and one.target) or " or ".join(planned.patch.candidates)
        patch = planned.patch
        brings = planned.companion.id if planned.companion else None
        patches.append(
            PatchReport(target, patch.kind, patch.replacement, state, reason, brings)
        )
    return GapReport(
        gap.id,
        gap.title,
        gap.status,
        gap.kind,
        standing.state,
        standing.reason,
        tuple(patches),
    )


def make_report(
    plan: Plan,
    standings: list[Standing],
    *,
    process: dict[str, Any],
    rebound: list[str],
    stale: list[str],
) -> Report:
    """Put together what the plan and the engine know."""
    return Report(
        gaps=tuple(gap_report(standing) for standing in standings),
        plan=plan.digest,
        environment=plan.environment,
        process=process,
        rebound=tuple(rebound),
        stale=tuple(stale),
        registries=registries_of(plan.registry),
    )


def registries_of(registry: Registry) -> tuple[RegistryReport, ...]:
    """What there is besides the base, in the order of namespaces."""
    if not isinstance(registry, Joined):
        return ()
    used = [
        RegistryReport(o.namespace, o.distribution, o.path, len(o.registry.gaps))
        for o in registry.found
    ]
    left_out = [
        RegistryReport(o.namespace, o.distribution, o.path, 0, o.reason)
        for o in registry.unusable
    ]
    return tuple(sorted([*used, *left_out], key=lambda one: one.namespace))
