"""CANN, the driver and the device nodes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .finding import Finding, notice, ok, problem

__all__ = ["CannSeen", "Named", "Toolkit", "judge_cann"]

_AREA = "cann"


@dataclass(frozen=True, slots=True)
class Toolkit:
    """An installation of CANN."""

    folder: str
    version: str | None
    """None where its files do not tell."""


@dataclass(frozen=True, slots=True)
class Named:
    """A variable that names a folder of CANN."""

    variable: str
    folder: str
    toolkit: Toolkit | None
    """None where the folder is not there."""


@dataclass(frozen=True, slots=True)
class CannSeen:
    """What files say."""

    named: tuple[Named, ...] = ()
    usual: tuple[Toolkit, ...] = ()
    """In the places where it is installed by default."""
    set_env: str | None = None
    """The script that makes it known to a shell."""
    driver: str | None = None
    """The driver's version."""
    nodes: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    """Those of them that this user may not open."""
    managers_missing: tuple[str, ...] = ()
    """Nodes that every NPU needs besides its own."""
    has_torch_npu: bool = False


def judge_cann(seen: CannSeen) -> Iterator[Finding]:
    if not (seen.named or seen.usual or seen.driver or seen.nodes):
        yield _nothing()
        return
    yield from _toolkit(seen)
    yield _driver(seen)
    yield from _nodes(seen)


def _nothing() -> Finding:
    return notice(
        _AREA,
        "ascend-absent",
        "there is neither CANN, nor a driver, nor /dev/davinci*",
        "nothing, where there is no NPU; else install the driver and CANN, and pass "
        "/dev/davinci* on to a container",
    )


def _toolkit(seen: CannSeen) -> Iterator[Finding]:
    for one in seen.named:
        if one.toolkit is None:
            make = problem if seen.has_torch_npu or seen.nodes else notice
            yield make(
                _AREA,
                "cann-folder-gone",
                f"{one.variable} names {one.folder}, which is not there",
                _source(seen),
            )
    there = [one for one in seen.named if one.toolkit]
    versions = {one.toolkit.version for one in there if one.toolkit}
    if len(versions) > 1:
        listed = ", ".join(
            f"{one.variable} {one.toolkit.version or 'unknown'}"
            for one in there
            if one.toolkit
        )
        yield notice(
            _AREA,
            "cann-several",
            f"variables name different versions of CANN: {listed}",
            "source the set_env.sh of one of them in a new shell",
        )
    elif there:
        yield _found(there[0].toolkit, f" ({there[0].variable})")
    elif seen.usual and seen.has_torch_npu:
        yield notice(
            _AREA,
            "cann-not-sourced",
            f"CANN {seen.usual[0].version or 'of unknown version'} is in "
            f"{seen.usual[0].folder}, and no variable names it",
            _source(seen),
        )
    elif seen.usual:
        yield _found(seen.usual[0], "")
    elif not seen.named:
        yield notice(
            _AREA,
            "cann-absent",
            "CANN is not found, by no variable and in no usual place",
            "install it, then source its set_env.sh before Python is started",
        )


def _found(toolkit: Toolkit | None, how: str) -> Finding:
    if toolkit is None or toolkit.version is None:
        place = toolkit.folder if toolkit else ""
        return notice(
            _AREA,
            "cann-version-unknown",
            f"CANN is in {place}{how}, and no file tells its version",
            "see that it was installed to its end: ls -l FOLDER/version.cfg",
        )
    return ok(_AREA, "cann", f"CANN {toolkit.version}, {toolkit.folder}{how}")


def _source(seen: CannSeen) -> str:
    if seen.set_env:
        return f"source {seen.set_env} before Python is started"
    return "source CANN's set_env.sh before Python is started, or unset the variable"


def _driver(seen: CannSeen) -> Finding:
    if seen.driver:
        return ok(_AREA, "driver", f"driver {seen.driver}")
    return notice(
        _AREA,
        "driver-unknown",
        "no file tells the version of the NPU driver",
        "install the driver; into a container, mount "
        "/usr/local/Ascend/driver/version.info",
    )


def _nodes(seen: CannSeen) -> Iterator[Finding]:
    if not seen.nodes:
        if seen.driver:
            yield notice(
                _AREA,
                "nodes-absent",
                "there is a driver, and no /dev/davinci*",
                "pass the devices on to the container (--device /dev/davinci0 …), or "
                "see `npu-smi info`",
            )
        return
    if seen.closed:
        yield problem(
            _AREA,
            "nodes-closed",
            f"this user may not open {', '.join(seen.closed)}",
            "add the user to the group that owns it (ls -l /dev/davinci*), then log "
            "in again",
        )
    if seen.managers_missing:
        yield problem(
            _AREA,
            "nodes-incomplete",
            f"{', '.join(seen.managers_missing)} is missing beside {seen.nodes[0]}",
            "pass it on to the container, too: "
            + " ".join(f"--device {one}" for one in seen.managers_missing),
        )
    if not seen.closed and not seen.managers_missing:
        count = len(seen.nodes)
        yield ok(_AREA, "nodes", f"{count} NPU{'s' * (count > 1)}, {seen.nodes[0]} …")
