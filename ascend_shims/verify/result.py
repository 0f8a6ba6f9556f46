"""What a proof found: values, and their JSON, schema 1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["SCHEMA", "Difference", "Extent", "InForce", "Proof", "Stage"]

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """One name that is not upstream's."""

    path: str
    """`module:Qual.name`, or a part of the process such as `os.environ:NAME`."""
    kind: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


@dataclass(frozen=True, slots=True)
class Extent:
    """How much was compared."""

    modules: int
    objects: int
    entries: int
    """Names of parts: of modules and classes, and what functions consist of."""
    by_root: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class InForce:
    """One gap while it was applied."""

    gap: str
    state: str
    reason: str
    patches: int
    """Its patches that belong here."""
    applied: int
    """Patches that the toolkit says are applied."""
    changed: int
    """Their targets that held another object meanwhile than before."""

    @property
    def holds(self) -> bool:
        return self.state == "applied" and self.changed > 0


@dataclass(frozen=True, slots=True)
class Stage:
    """One thing that was done, and what was different afterwards."""

    name: str
    against: str
    """What was compared with: the very objects, or the stock interpreter."""
    gaps: tuple[InForce, ...]
    differences: tuple[Difference, ...]
    errors: tuple[str, ...]

    @property
    def ok(self) -> bool:
        held = all(gap.holds for gap in self.gaps)
        return held and not self.differences and not self.errors


@dataclass(frozen=True, slots=True)
class Proof:
    """All stages, and what they were about."""

    upstream: Mapping[str, str]
    """Version by package."""
    device: str
    device_assumed: bool
    extent: Extent
    stages: tuple[Stage, ...]
    left_out: tuple[tuple[str, str, str], ...]
    """Gaps that could not be tried: id, state, reason."""
    absent: tuple[str, ...]
    """Modules that some gap names and this release does not have."""
    not_importable: Mapping[str, str]
    """Modules that it has and that raised, and what."""
    varying: Mapping[str, str]
    """What differs between two stock interpreters as well, and why or since when."""
    digests: Mapping[str, str]
    """Of the whole description: in the stock interpreter, and where it had to be the
    same. What varies is not in it."""
    seconds: float

    @property
    def digest(self) -> str:
        """Of upstream as it is here: the same wherever this upstream is."""
        return self.digests["stock"]

    @property
    def proved(self) -> bool:
        """Whether any gap was in force at all."""
        return any(gap.holds for stage in self.stages for gap in stage.gaps)

    @property
    def ok(self) -> bool:
        return self.proved and all(stage.ok for stage in self.stages)

    @property
    def differences(self) -> tuple[Difference, ...]:
        return tuple(one for stage in self.stages for one in stage.differences)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "schema": SCHEMA,
            "ok": self.ok,
            "proved": self.proved,
            "digest": self.digest,
            "digests": dict(self.digests),
            "upstream": dict(self.upstream),
            "device": {"kind": self.device, "assumed": self.device_assumed},
            "compared": {**asdict(self.extent), "by_root": dict(self.extent.by_root)},
            "stages": [_stage(stage) for stage in self.stages],
            "left_out": [
                {"id": gap, "state": state, "reason": reason}
                for gap, state, reason in self.left_out
            ],
            "absent": list(self.absent),
            "not_importable": dict(self.not_importable),
            "varying": dict(self.varying),
            "seconds": self.seconds,
        }


def _stage(stage: Stage) -> dict[str, Any]:
    return {
        "name": stage.name,
        "against": stage.against,
        "ok": stage.ok,
        "gaps": [
            {
                "id": gap.gap,
                "in_force": gap.holds,
                "state": gap.state,
                "reason": gap.reason,
                "patches": gap.patches,
                "applied": gap.applied,
                "changed": gap.changed,
            }
            for gap in stage.gaps
        ],
        "differences": [asdict(one) for one in stage.differences],
        "errors": list(stage.errors),
    }
