"""All observations of this interpreter and this machine, together."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ...environment.device import find_device
from ...environment.distributions import find_distribution
from ...guard.asked import complaints_about
from ...own_files import is_zipped, text_of
from ...plan import Plan
from ...processes.client import Answer, ask_all
from ...registry.discovery import DiscoveryError, discover
from ...registry.joined import namespace_of
from ...registry.loading import packaged
from ...registry.writers import problem_of
from ...report import registries_of
from ...states import State
from ...switches import Switches
from ...upstream.sources.cache import Cache, cache_directory
from ...words.language import unspoken
from ..cann import CannSeen
from ..device import DeviceSeen
from ..diagnosis import Seen
from ..installed import Metadata, counting
from ..plugins import PluginsSeen
from ..redaction import without_credentials
from ..running import Told, WatchSeen
from ..switched import (
    FoundSeen,
    RegistrySeen,
    SwitchesSeen,
    strangers_of,
    switches_of,
)
from ..toolkit import ToolkitSeen
from ..torches import TorchSeen
from ..upstream import VllmSeen
from .attempt import Trial
from .cann import library_folders, read_cann
from .copies import only_here, read_copies
from .libraries import find_missing, fits_python
from .metadata import read_installed
from .processes import concerning, read_environ, read_processes
from .ray import read_ray

__all__ = ["Given", "look"]

_PACKAGES = ("vllm", "torch", "torch_npu")


@dataclass(frozen=True, slots=True)
class Given:
    """What has been decided before: the environment's choices, and the plan."""

    environ: Mapping[str, str]
    switches: Switches
    plan: Plan | None
    errors: tuple[str, ...]
    """Why there is no plan, if so."""
    version: str
    """Of this toolkit."""
    file: str
    """Its `__init__.py`."""


def look(given: Given) -> Seen:
    """Look at everything. Takes what the import of torch_npu takes, where it is
    installed and complete, and a fraction of a second otherwise."""
    installed = read_installed(_PACKAGES)
    npu = find_distribution("torch_npu")
    cann = read_cann(given.environ, has_torch_npu=npu.present)
    torch = _torch(given, installed, cann)
    # It takes the longest, so that everything else is done meanwhile.
    loads = npu.present and torch.fits_python and not torch.missing
    trial = Trial() if loads else None
    try:
        seen = _rest(given, installed, cann, torch)
        if trial is None:
            return seen
        return replace(seen, torch=replace(torch, attempt=trial.result()))
    finally:
        if trial is not None:
            trial.stop()


def _rest(
    given: Given, installed: tuple[Metadata, ...], cann: CannSeen, torch: TorchSeen
) -> Seen:
    plan, environ = given.plan, given.environ
    wants = plan is not None and bool(plan.wanted)
    device = _device(given, installed, cann, torch)
    return Seen(
        toolkit=ToolkitSeen(
            python=sys.executable,
            version=given.version,
            file=os.path.realpath(given.file),
            copies=read_copies("ascend_shims"),
            installed=installed,
            beside=only_here(),
        ),
        plugins=PluginsSeen(
            value=environ.get("VLLM_PLUGINS"),
            known=_plugin_names(installed),
            on_rig=device.device.kind == "sim",
        ),
        vllm=_vllm(given, installed),
        torch=torch,
        cann=cann,
        device=device,
        switches=_switches(given),
        registry=_registry(given),
        processes=_processes(given, wants),
        ray=read_ray(environ, wants=wants),
        python={
            "executable": sys.executable,
            "version": platform.python_version(),
            "prefix": sys.prefix,
        },
        plan=plan.digest if plan else None,
        installed=installed,
    )


def _torch(given: Given, installed: tuple[Metadata, ...], cann: CannSeen) -> TorchSeen:
    torch, npu = find_distribution("torch"), find_distribution("torch_npu")
    vllm = find_distribution("vllm")
    kind = find_device(given.switches.device).kind
    package = Path(npu.file).parent if npu.file else None
    beside = Path(torch.file).parent if torch.file else None
    refused = given.switches.device in ("none", "sim")
    return TorchSeen(
        python=sys.executable,
        torch=torch,
        npu=npu,
        vllm_requires=_requires(installed, vllm.name),
        npu_requires=_requires(installed, npu.name),
        fits_python=package is None or fits_python(package),
        missing=find_missing(package, beside, library_folders(cann)) if package else (),
        has_npu=kind == "npu" or (bool(cann.nodes) and not refused),
        set_env=cann.set_env,
    )


def _requires(installed: tuple[Metadata, ...], name: str | None) -> tuple[str, ...]:
    return next((one.requires for one in installed if one.name == name), ())


def _plugin_names(installed: tuple[Metadata, ...]) -> frozenset[str]:
    return frozenset(
        entry.name
        for one in counting(installed)
        for entry in one.entries
        if entry.group.startswith("vllm.") and entry.group.endswith("_plugins")
    )


def _vllm(given: Given, installed: tuple[Metadata, ...]) -> VllmSeen:
    plan = given.plan
    patched = [p for p in plan.gaps if p.patches] if plan else []
    outside = [p.gap.id for p in patched if all(q.gate == "closed" for q in p.patches)]
    found = find_distribution("vllm")
    return VllmSeen(
        python=sys.executable,
        found=found,
        copies=read_copies("vllm"),
        claiming=tuple(one for one in installed if "vllm" in one.claims),
        outside=tuple(outside) if found.present else (),
        patched=len(patched),
        assumed=given.switches.assume.get("vllm"),
        needed=plan is None or "vllm" in plan.registry.upstreams,
    )


def _device(
    given: Given, installed: tuple[Metadata, ...], cann: CannSeen, torch: TorchSeen
) -> DeviceSeen:
    plugins = given.environ.get("VLLM_PLUGINS")
    allowed = None if plugins is None else plugins.split(",")
    return DeviceSeen(
        device=find_device(given.switches.device),
        asked=given.switches.device != "auto",
        nodes=len(cann.nodes),
        has_torch_npu=torch.npu.present,
        interprets=_is_true(given.environ.get("TRITON_INTERPRET", "")),
        platforms=tuple(
            entry.name
            for one in counting(installed)
            for entry in one.entries
            if entry.group == "vllm.platform_plugins"
            and not entry.value.startswith("ascend_shims.")
            and (allowed is None or entry.name in allowed)
        ),
    )


def _is_true(value: str) -> bool:
    return value.strip().lower() in ("1", "true", "yes", "on")


def _switches(given: Given) -> SwitchesSeen:
    switches, plan = given.switches, given.plan
    shown = tuple(
        replace(one, value=without_credentials(one.value))
        for one in switches_of(given.environ)
        if not any(
            said.startswith((f"{one.name}=", f"{one.name}:"))
            for said in switches.complaints
        )
    )
    known = [planned.gap.id for planned in plan.gaps] if plan else None
    return SwitchesSeen(
        switches=shown,
        complaints=switches.complaints,
        unknown=switches.unknown(known) if known is not None else (),
        strangers=strangers_of(given.environ),
        off=switches.mode == "off",
        guard=complaints_about(given.environ),
        cache=Cache(cache_directory(given.environ)).refused(),
        unspoken=unspoken(given.environ, sys.stdout, sys.stderr),
    )


def _registry(given: Given) -> RegistrySeen:
    named = given.switches.registry
    file = named or packaged()
    project = _project()
    return RegistrySeen(
        file=str(file),
        source="ASCEND_SHIMS_REGISTRY" if named else "of this toolkit",
        digest=_digest(file),
        gaps=sum(not namespace_of(p.gap.id) for p in given.plan.gaps)
        if given.plan
        else 0,
        refused=problem_of(named) if named else None,
        errors=given.errors,
        project=str(project) if project and not _same(project, file) else None,
        project_refused=problem_of(project) if project else None,
        found=tuple(
            FoundSeen(o.namespace, o.distribution, o.path, o.gaps, o.problem)
            for o in (registries_of(given.plan.registry) if given.plan else ())
        ),
        companions=sum(not namespace_of(c.id) for c in given.plan.registry.companions)
        if given.plan
        else 0,
    )


def _project() -> Path | None:
    try:
        return discover(Path.cwd())
    except DiscoveryError:
        return None


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _digest(file: Path) -> str | None:
    if not is_zipped(file) and not file.is_file():
        # To read a pipe would be to wait for it.
        return None
    try:
        return hashlib.sha256(text_of(file).encode()).hexdigest()
    except (OSError, ValueError):
        return None


def _processes(given: Given, wants: bool) -> WatchSeen:
    found = find_distribution("vllm")
    return WatchSeen(
        vllm=read_processes(),
        told=tuple(map(_told, ask_all())),
        plan=given.plan.digest if given.plan else None,
        wants=wants,
        switches=concerning(given.environ),
        site=str(Path(found.file).parents[1]) if found.file else None,
    )


def _told(answer: Answer) -> Told:
    switches = read_environ(Path("/proc") / str(answer.pid))
    report = answer.report
    if report is None:
        return Told(answer.pid, problem=answer.problem, switches=switches)
    faults = tuple(
        f"{gap['id']} ({gap['state']})"
        for gap in report["gaps"]
        if State(gap["state"]).is_fault
    )
    role = str(report["process"]["role"])
    return Told(answer.pid, role, report["plan"], faults, "", switches)
