"""Which vLLM it is, and whether the same one everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..environment import Distribution
from ..environment.versions import parse
from ..words.counting import counted
from .finding import Finding, notice, ok, problem
from .installed import Copy, Metadata, counting, shadow

__all__ = ["VllmSeen", "judge_vllm"]

_AREA = "vllm"


@dataclass(frozen=True, slots=True)
class VllmSeen:
    """vLLM in this interpreter."""

    python: str
    found: Distribution
    copies: tuple[Copy, ...] = ()
    claiming: tuple[Metadata, ...] = ()
    """The installations that say they have brought it."""
    outside: tuple[str, ...] = ()
    """Gaps with patches, none of which is for this release."""
    patched: int = 0
    """How many gaps have patches."""
    assumed: str | None = None
    """The release that the plan goes by instead."""
    needed: bool = True
    """Whether the registry in force is about it."""


def judge_vllm(seen: VllmSeen) -> Iterator[Finding]:
    if not seen.found.present:
        yield _absent(seen)
        return
    yield _which(seen)
    yield from _claims(seen)
    yield from _place(seen)
    yield from _release(seen)


def _absent(seen: VllmSeen) -> Finding:
    left = [one for one in counting(seen.claiming) if one.editable]
    if left:
        return problem(
            _AREA,
            "vllm-checkout-gone",
            f"{left[0]} was installed in place from {left[0].editable}, where there "
            "is no vllm any more",
            f"{seen.python} -m pip uninstall {left[0].name}, and install vLLM anew",
        )
    said = f"vLLM is not installed for {seen.python}"
    fix = (
        f"{seen.python} -m pip install vllm, or ask the interpreter that has it: "
        "PYTHON -m ascend_shims doctor"
    )
    make = problem if seen.needed else notice
    return make(_AREA, "vllm-absent", said, fix)


def _which(seen: VllmSeen) -> Finding:
    editable = _editable(seen)
    place = f", in place in {editable}" if editable else ""
    return ok(_AREA, "vllm", f"{seen.found}{place}, {seen.found.file}")


def _editable(seen: VllmSeen) -> str | None:
    names = (one for one in seen.claiming if one.name == seen.found.name)
    return next((one.editable for one in names if one.editable), None)


def _claims(seen: VllmSeen) -> Iterator[Finding]:
    first, *others = seen.claiming or (None,)
    rest = [o for o in others if o and first and (o.normal, o.version) != _key(first)]
    if first is None or not rest:
        return
    listed = ", ".join(map(str, [first, *rest]))
    names = " ".join(dict.fromkeys(one.name for one in [first, *rest]))
    keep = f"{seen.found.name or first.name}=={seen.found.version or first.version}"
    yield problem(
        _AREA,
        "vllm-claimed-twice",
        f"{listed} all say that they brought the package vllm; its files may be a "
        "mixture",
        f"{seen.python} -m pip uninstall -y {names}, then "
        f"{seen.python} -m pip install {keep}",
    )


def _key(one: Metadata) -> tuple[str, str]:
    return one.normal, one.version


def _place(seen: VllmSeen) -> Iterator[Finding]:
    found = shadow(seen.copies)
    if found is None:
        return
    if found.copy.on_path:
        yield problem(
            _AREA,
            "vllm-shadowed",
            f"{found.copy.file}, from {found.copy.via}, stands before the installed "
            f"{found.installed.file}",
            "work in another directory"
            if found.copy.via == "the working directory"
            else "take its folder out of PYTHONPATH",
        )
        return
    yield notice(
        _AREA,
        "vllm-shadowed-here",
        f"`python -m` and `python -c` in this directory import {found.copy.file}; "
        f"`vllm serve` imports {found.installed.file}",
        "work in another directory",
    )


def _release(seen: VllmSeen) -> Iterator[Finding]:
    if seen.assumed is not None:
        yield notice(
            _AREA,
            "vllm-assumed",
            f"the plan goes by vLLM {seen.assumed} (ASCEND_SHIMS_ASSUME), and "
            f"{seen.found.version} is installed",
            "unset ASCEND_SHIMS_ASSUME, unless the installed version is wrong",
        )
    elif parse(seen.found.version) is None:
        yield notice(
            _AREA,
            "vllm-version-unknown",
            f"{_untold(seen.found.version)}, so each patch is decided by what it "
            "would patch",
            "if you know the release, say so: export ASCEND_SHIMS_ASSUME=vllm=RELEASE",
        )
    elif seen.outside and len(seen.outside) == seen.patched:
        yield problem(
            _AREA,
            "vllm-unsupported",
            f"no gap has a patch for vLLM {seen.found.version}",
            "install a release that the registry names (shims show GAP), or see what "
            "this one would break: shims drift --against installed",
        )
    elif seen.outside:
        yield notice(
            _AREA,
            "vllm-partly-supported",
            counted(
                len(seen.outside),
                f"1 of {seen.patched} gaps has no patch for vLLM "
                f"{seen.found.version}: {seen.outside[0]}",
                f"{len(seen.outside)} of {seen.patched} gaps have no patch for vLLM "
                f"{seen.found.version}: {', '.join(seen.outside)}",
            ),
            f"shims show {seen.outside[0]}",
        )


def _untold(version: str | None) -> str:
    if version is None:
        return "nothing tells which release of vLLM this is"
    return f"the version {version!r} does not say which release this is"
