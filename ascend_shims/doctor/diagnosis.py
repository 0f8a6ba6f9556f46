"""Everything that a doctor has looked at, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from .cann import CannSeen, judge_cann
from .device import DeviceSeen, judge_device
from .finding import Finding, by_urgency
from .installed import Metadata
from .plugins import PluginsSeen, judge_plugins
from .ray import RaySeen, judge_ray
from .running import WatchSeen, judge_processes
from .switched import RegistrySeen, SwitchesSeen, judge_switches
from .toolkit import ToolkitSeen, judge_toolkit
from .torches import TorchSeen, judge_torch
from .upstream import VllmSeen, judge_vllm

__all__ = ["SCHEMA", "Diagnosis", "Seen", "diagnose"]

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Seen:
    """All observations, one a concern."""

    toolkit: ToolkitSeen
    plugins: PluginsSeen
    vllm: VllmSeen
    torch: TorchSeen
    cann: CannSeen
    device: DeviceSeen
    switches: SwitchesSeen
    registry: RegistrySeen
    processes: WatchSeen
    ray: RaySeen
    python: dict[str, str] = field(default_factory=dict)
    plan: str | None = None
    installed: tuple[Metadata, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was seen, and the findings, most urgent first."""

    seen: Seen
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not any(one.verdict == "problem" for one in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, schema 1."""
        seen = self.seen
        counts = Counter(one.verdict for one in self.findings)
        return {
            "schema": SCHEMA,
            "ok": self.ok,
            "counts": {v: counts[v] for v in ("problem", "notice", "ok")},
            "findings": [asdict(one) for one in self.findings],
            "python": dict(seen.python),
            "vllm": _package(seen.vllm.found),
            "torch": _package(seen.torch.torch),
            "torch_npu": _package(seen.torch.npu),
            "cann": _cann(seen.cann),
            "device": {
                "kind": seen.device.device.kind,
                "reason": seen.device.device.reason,
            },
            "plan": seen.plan,
            "registry": {
                "file": seen.registry.file,
                "source": seen.registry.source,
                "sha256": seen.registry.digest,
                "gaps": seen.registry.gaps,
                "project": seen.registry.project,
            },
            "switches": [asdict(one) for one in seen.switches.switches],
            "processes": list(_processes(seen.processes)),
        }


def diagnose(seen: Seen) -> Diagnosis:
    """Judge all that was seen. Pure."""
    return Diagnosis(seen, by_urgency(_judge(seen)))


def _judge(seen: Seen) -> Iterator[Finding]:
    yield from judge_toolkit(seen.toolkit)
    yield from judge_plugins(seen.plugins)
    yield from judge_vllm(seen.vllm)
    yield from judge_torch(seen.torch)
    yield from judge_cann(seen.cann)
    yield from judge_device(seen.device)
    yield from judge_switches(seen.switches, seen.registry)
    yield from judge_processes(seen.processes)
    yield from judge_ray(seen.ray)


def _package(found: Any) -> dict[str, Any]:
    return {
        "version": found.version,
        "distribution": found.name,
        "file": found.file,
    }


def _cann(seen: CannSeen) -> dict[str, Any]:
    there = [one.toolkit for one in seen.named if one.toolkit] + list(seen.usual)
    first = there[0] if there else None
    return {
        "version": first.version if first else None,
        "folder": first.folder if first else None,
        "driver": seen.driver,
        "nodes": list(seen.nodes),
    }


def _processes(seen: WatchSeen) -> Iterator[dict[str, Any]]:
    told = {one.pid: one for one in seen.told}
    vllm = {one.pid: one for one in seen.vllm}
    for pid in sorted({*told, *vllm}):
        answer, process = told.get(pid), vllm.get(pid)
        yield {
            "pid": pid,
            "title": process.title if process else None,
            "role": answer.role if answer else None,
            "plan": answer.plan if answer else None,
            "shims": answer is not None,
        }
