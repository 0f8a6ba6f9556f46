"""Every switch in force and where it comes from, and the registry."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..switches import ELSEWHERE, NAMES
from ..words.counting import counted
from .finding import Finding, notice, ok, problem

__all__ = [
    "OURS",
    "FoundSeen",
    "RegistrySeen",
    "Switch",
    "SwitchesSeen",
    "judge_switches",
    "strangers_of",
    "switches_of",
]

_AREA = "switches"
_REGISTRY = "registry"

OURS = frozenset({*NAMES, *ELSEWHERE})
"""Every variable that something of ours reads."""

_MEANT = re.compile(r"; did you mean '([^']+)'\?")


@dataclass(frozen=True, slots=True)
class Switch:
    """One choice that is in force."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class FoundSeen:
    """A registry that an installed plugin brings, or that a variable asks for."""

    namespace: str
    distribution: str | None
    """Name and version; None where nobody brings it."""
    path: str | None
    gaps: int
    problem: str | None = None
    """Why it is left out, and what to do."""


@dataclass(frozen=True, slots=True)
class RegistrySeen:
    """The registry that `apply()` takes here."""

    file: str
    source: str
    digest: str | None = None
    """None where it cannot be read."""
    gaps: int = 0
    refused: str | None = None
    """Why a variable may not name it."""
    errors: tuple[str, ...] = ()
    """Why it cannot be used, otherwise."""
    project: str | None = None
    """Another one, found upwards from the working directory."""
    project_refused: str | None = None
    found: tuple[FoundSeen, ...] = ()
    """Those of installed plugins."""
    companions: int = 0
    """What goes along with its gaps; other screens have rows for these, too."""


@dataclass(frozen=True, slots=True)
class SwitchesSeen:
    """What the environment says."""

    switches: tuple[Switch, ...]
    complaints: tuple[str, ...] = ()
    """What of it cannot be understood."""
    unknown: tuple[str, ...] = ()
    """Gaps that it names and that are not in the registry, as complaints."""
    strangers: tuple[str, ...] = ()
    """Variables that begin like one of ours and are none."""
    off: bool = False
    guard: tuple[str, ...] = ()
    """What of the runtime guard's settings cannot be used."""
    cache: str | None = None
    """Why nothing that is read of releases can be kept."""
    unspoken: str | None = None
    """The encoding that has no words of the language that is wanted."""


def switches_of(environ: Mapping[str, str]) -> tuple[Switch, ...]:
    """Every variable of ours that is set to something."""
    return tuple(
        Switch(name, value, "environment variable")
        for name, value in sorted(environ.items())
        if name in OURS and value.strip()
    )


def strangers_of(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that begin like one of ours and are none."""
    return tuple(
        name
        for name in sorted(environ)
        if name.startswith(("ASCEND_SHIM_", "ASCEND_SHIMS_")) and name not in OURS
    )


def judge_switches(seen: SwitchesSeen, registry: RegistrySeen) -> Iterator[Finding]:
    for complaint in seen.complaints:
        yield _complaint(complaint)
    for name in seen.strangers:
        if not any(complaint.startswith(f"{name} ") for complaint in seen.complaints):
            yield _stranger(name)
    for complaint in seen.unknown:
        yield problem(
            _AREA,
            "gap-unknown",
            complaint.partition("; ")[0],
            _meant(complaint) or "shims status --all lists the gaps",
        )
    for complaint in seen.guard:
        yield problem(
            _AREA,
            "guard-configuration",
            f"the runtime guard cannot use {complaint}",
            "correct it, or unset ASCEND_SHIMS_GUARD",
        )
    if seen.cache:
        yield notice(
            _AREA,
            "cache-unwritable",
            f"nothing of what is read of releases is kept: {seen.cache}",
            "name another folder: export ASCEND_SHIMS_CACHE=FOLDER",
        )
    if seen.unspoken:
        yield notice(
            _AREA,
            "language-unwritable",
            f"Chinese is wanted, and English is spoken: {seen.unspoken}, the encoding "
            "of the output, cannot write it",
            "export PYTHONIOENCODING=utf-8",
        )
    for switch in seen.switches:
        yield ok(
            _AREA, "switch", f"{switch.name}={switch.value.strip()} ({switch.source})"
        )
    if seen.off:
        yield notice(
            _AREA,
            "switched-off",
            "ASCEND_SHIMS=off leaves every gap out",
            "unset ASCEND_SHIMS, unless that is meant",
        )
    if not seen.switches and not seen.complaints:
        yield ok(_AREA, "switches-default", "none is set: the defaults hold")
    yield from _registry(registry)


def _complaint(complaint: str) -> Finding:
    name = re.split(r"[=: ]", complaint, maxsplit=1)[0]
    seen = complaint.partition("; ")[0]
    if " is not a variable of " in complaint:
        fix = _meant(complaint) or f"unset {name}; README.md lists the variables"
        return problem(_AREA, "switch-unknown", f"{seen}: it does nothing", fix)
    said = complaint.replace("; the default holds", "")
    seen = _MEANT.sub("", said) if "one of " in said else seen
    fix = _meant(complaint, name) or f"correct it, or unset {name}"
    if "one of " not in said:
        fix = f"{said.partition('; ')[2] or fix}"
    return problem(_AREA, "switch-value", f"{seen}: the default holds", fix)


def _meant(complaint: str, name: str | None = None) -> str | None:
    """The nearest that there is, as what to do."""
    found = _MEANT.search(complaint)
    if found is None:
        return None
    near = found.group(1)
    return f"export {name}={near}" if name else f"write {near} instead"


def _stranger(name: str) -> Finding:
    near = difflib.get_close_matches(name, sorted(OURS), 1, 0.6)
    return notice(
        _AREA,
        "switch-unknown",
        f"{name} is not a variable of ascend-shims: it does nothing",
        f"write {near[0]} instead" if near else f"unset {name}",
    )


def _found(seen: FoundSeen) -> Finding:
    if seen.problem is None:
        said = counted(
            seen.gaps,
            f"1 gap of {seen.namespace}, {seen.path} ({seen.distribution})",
            f"{seen.gaps} gaps of {seen.namespace}, {seen.path} ({seen.distribution})",
        )
        return ok(_REGISTRY, "registry-found", said)
    reason, _, fix = seen.problem.rpartition("; ")
    by = f" of {seen.distribution}" if seen.distribution else ""
    return problem(
        _REGISTRY,
        "registry-left-out",
        f"the registry {seen.namespace}{by} is left out: {reason}",
        fix,
    )


def _registry(seen: RegistrySeen) -> Iterator[Finding]:
    if seen.refused:
        message, _, fix = seen.refused.partition("; ")
        yield problem(
            _REGISTRY,
            "registry-writable",
            f"{message}, so it is ignored and no gap is applied",
            fix.partition("; ")[2] or fix,
        )
    elif seen.errors:
        more = f" (and {len(seen.errors) - 1} more)" if len(seen.errors) > 1 else ""
        message, _, fix = seen.errors[0].rpartition("; ")
        yield problem(
            _REGISTRY,
            "registry-unusable",
            f"{message or seen.errors[0]}{more}, so no gap is applied",
            fix if message else "unset ASCEND_SHIMS_REGISTRY",
        )
    else:
        along = counted(seen.companions, " and 1 companion", " and {number} companions")
        along = along if seen.companions else ""
        said = counted(
            seen.gaps,
            f"1 gap{along} of {seen.file} ({seen.source})",
            f"{seen.gaps} gaps{along} of {seen.file} ({seen.source})",
        )
        yield ok(_REGISTRY, "registry", said)
    for one in seen.found:
        yield _found(one)
    if seen.project is None:
        return
    if seen.project_refused:
        yield notice(
            _REGISTRY,
            "registry-project-writable",
            f"others can change {seen.project}: shims drift reads it, and "
            "ASCEND_SHIMS_REGISTRY may not name it",
            seen.project_refused.rpartition("; ")[2],
        )
    else:
        yield ok(
            _REGISTRY,
            "registry-project",
            f"{seen.project} is found upwards from here; only drift, diff, matrix "
            "and bisect go by it",
        )
