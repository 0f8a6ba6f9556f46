"""Is our plugin installed for this interpreter, once, and as this copy has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .finding import Finding, notice, ok, problem
from .installed import Copy, EntryPoint, Metadata, counting, shadow

__all__ = ["ENTRY", "ToolkitSeen", "judge_toolkit"]

_AREA = "toolkit"
_NAME = "ascend-shims"

ENTRY = EntryPoint(
    "vllm.general_plugins", "ascend_shims", "ascend_shims.plugin:register"
)
"""What vLLM calls in every process that it starts."""

_OTHERS = (
    EntryPoint(
        "vllm.general_plugins", "ascend_shims_rig", "ascend_shims.simnpu.plugin:general"
    ),
    EntryPoint(
        "vllm.platform_plugins", "ascend_shims", "ascend_shims.simnpu.plugin:platform"
    ),
)
"""What the rig needs besides."""


@dataclass(frozen=True, slots=True)
class ToolkitSeen:
    """This toolkit in this interpreter."""

    python: str
    version: str
    """Of the copy that is running."""
    file: str
    """Its `__init__.py`."""
    copies: tuple[Copy, ...]
    installed: tuple[Metadata, ...]
    beside: str | None = None
    """The working directory, where it is on the path only as long as Python is started
    in it."""

    @property
    def reinstall(self) -> str:
        where = self.editable
        what = f"-e {where}" if where else _NAME
        force = "" if where else "--force-reinstall --no-deps "
        return f"{self.python} -m pip install {force}{what}"

    @property
    def editable(self) -> str | None:
        """The checkout that is installed in place, also where an `.egg-info` in it
        comes first."""
        ours = (m.editable for m in self.installed if m.normal == _NAME)
        return next(filter(None, ours), None)

    @property
    def own(self) -> Metadata | None:
        """The metadata of ours that counts."""
        return next((m for m in counting(self.installed) if m.normal == _NAME), None)


def judge_toolkit(seen: ToolkitSeen) -> Iterator[Finding]:
    yield from _entry_point(seen)
    yield from _copy(seen)


def _entry_point(seen: ToolkitSeen) -> Iterator[Finding]:
    ours = [m for m in seen.installed if m.normal == _NAME or ENTRY in m.entries]
    if not ours:
        yield problem(
            _AREA,
            "entry-point-absent",
            f"ascend-shims is not installed for {seen.python}, so vLLM does not call "
            "it in the processes that it starts",
            f"{seen.python} -m pip install {_NAME}",
        )
        return
    lasting = [m for m in ours if str(Path(m.folder).parent) != seen.beside]
    if not lasting:
        yield problem(
            _AREA,
            "entry-point-here",
            f"ascend-shims is found in {seen.beside}, where Python was started, and is "
            f"not installed for {seen.python}: `vllm serve` does not find it",
            f"{seen.python} -m pip install -e {seen.beside}",
        )
        return
    seen_by_vllm = [m for m in counting(seen.installed) if m in ours]
    bringing = [m for m in seen_by_vllm if ENTRY in m.entries]
    if not bringing:
        yield _without_entry(seen, ours, seen_by_vllm)
        return
    twice = _twice(ours, bringing)
    if twice is not None:
        one, other = twice
        yield problem(
            _AREA,
            "entry-point-twice",
            f"two installations bring our plugin: {one} in {one.folder} and {other} in "
            f"{other.folder}",
            _without_one_of(seen, one, other),
        )
        return
    lacking = [one for one in _OTHERS if one not in bringing[0].entries]
    if lacking:
        yield notice(
            _AREA,
            "entry-point-old",
            f"{bringing[0].folder} was written by an older version: it lacks "
            f"{lacking[0].name} of {lacking[0].group}, which the rig needs",
            seen.reinstall,
        )
        return
    place = f", in place in {seen.editable}" if seen.editable else ""
    yield ok(_AREA, "entry-point", f"{bringing[0]} is installed{place}; vLLM calls it")


def _without_entry(
    seen: ToolkitSeen, ours: list[Metadata], counted: list[Metadata]
) -> Finding:
    hidden = next((m for m in ours if ENTRY in m.entries), None)
    if hidden is not None:
        return problem(
            _AREA,
            "entry-point-hidden",
            f"{counted[0].folder} comes first on the path and names no plugin, so "
            f"that of {hidden.folder} is never seen",
            f"delete {counted[0].folder}, or mend it: {seen.reinstall}",
        )
    return problem(
        _AREA,
        "entry-point-stale",
        f"{counted[0].folder} does not name our plugin "
        f"({ENTRY.value} in {ENTRY.group}), so vLLM does not call it",
        seen.reinstall,
    )


def _twice(
    ours: list[Metadata], bringing: list[Metadata]
) -> tuple[Metadata, Metadata] | None:
    """Two installations of which vLLM calls both, or whichever it comes upon."""
    if len(bringing) > 1:
        return bringing[0], bringing[1]
    first = bringing[0]
    for other in ours:
        # What a build leaves in a checkout is the same once more, and no second one.
        differs = (other.version, set(other.entries)) != (
            first.version,
            set(first.entries),
        )
        if other.normal == first.normal and other is not first and differs:
            return first, other
    return None


def _without_one_of(seen: ToolkitSeen, one: Metadata, other: Metadata) -> str:
    if one.normal != other.normal:
        return f"{seen.python} -m pip uninstall {other.name}"
    # What a build has left behind is nothing that pip would know of.
    left = one if one.folder.endswith(".egg-info") else other
    return f"delete {left.folder}, then {seen.reinstall}"


def _copy(seen: ToolkitSeen) -> Iterator[Finding]:
    found = shadow(seen.copies)
    if found is not None and found.copy.on_path:
        yield problem(
            _AREA,
            "toolkit-shadowed",
            f"{found.copy.file}, from {found.copy.via}, stands before the installed "
            f"{found.installed.file}: which of them runs depends on where a process "
            "is started",
            "work in another directory and without PYTHONPATH, or install that copy: "
            f"{seen.python} -m pip install -e FOLDER",
        )
    elif found is not None:
        yield notice(
            _AREA,
            "toolkit-shadowed-here",
            f"`python -m` and `python -c` in this directory import "
            f"{found.copy.file} instead of the installed copy",
            "work in another directory, or install that copy: "
            f"{seen.python} -m pip install -e FOLDER",
        )
    elif seen.own and seen.own.version != seen.version:
        yield notice(
            _AREA,
            "toolkit-version",
            f"{seen.file} is version {seen.version}, and its metadata says "
            f"{seen.own.version}",
            seen.reinstall,
        )
