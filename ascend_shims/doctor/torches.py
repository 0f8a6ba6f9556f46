"""torch and torch_npu: whether they fit, and why torch_npu cannot be loaded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement

from ..environment import Distribution
from ..environment.versions import parse
from .finding import Finding, notice, ok, problem

__all__ = ["Attempt", "Missing", "TorchSeen", "judge_torch", "unmet"]

_AREA = "torch"
_NPU = "torch_npu"


@dataclass(frozen=True, slots=True)
class Missing:
    """A shared library that the loader does not find."""

    library: str
    needed_by: str
    lies_in: str | None = None
    """A folder of CANN or the driver that has it, out of the loader's sight."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of importing torch_npu in another process."""

    error: str | None = None
    """None where it can be imported."""
    signal: int | None = None
    timed_out: bool = False
    library: str | None = None
    """The shared library that the error names."""


@dataclass(frozen=True, slots=True)
class TorchSeen:
    """The two in this interpreter."""

    python: str
    torch: Distribution
    npu: Distribution
    vllm_requires: tuple[str, ...] = ()
    npu_requires: tuple[str, ...] = ()
    fits_python: bool = True
    """Whether torch_npu has an extension module for this Python."""
    missing: tuple[Missing, ...] = ()
    attempt: Attempt | None = None
    has_npu: bool = False
    """Whether there is an NPU, or one is asked for."""
    set_env: str | None = None
    """CANN's script that makes its libraries known."""


def judge_torch(seen: TorchSeen) -> Iterator[Finding]:
    if not seen.torch.present:
        yield problem(
            _AREA,
            "torch-absent",
            f"torch is not installed for {seen.python}",
            f"{seen.python} -m pip install torch",
        )
    else:
        yield from _torch(seen)
    yield from _npu(seen)


def _torch(seen: TorchSeen) -> Iterator[Finding]:
    wanted = unmet(seen.vllm_requires, "torch", seen.torch.version)
    if wanted is None:
        yield ok(_AREA, "torch", f"{seen.torch}, {seen.torch.file}")
        return
    yield notice(
        _AREA,
        "torch-not-vllms",
        f"the installed vLLM asks for {wanted}, and torch is {seen.torch.version}; "
        "what vLLM has compiled may not load",
        f"{seen.python} -m pip install '{wanted}'",
    )


def _npu(seen: TorchSeen) -> Iterator[Finding]:
    if not seen.npu.present:
        yield _absent(seen)
        return
    troubles = [*_versions(seen), *_loading(seen)]
    if troubles:
        yield from troubles
        return
    tried = "can be imported" if seen.attempt else "has all that it loads"
    yield ok(_NPU, "torch-npu", f"{seen.npu} {tried}, {seen.npu.file}")


def _absent(seen: TorchSeen) -> Finding:
    if not seen.has_npu:
        return ok(_NPU, "torch-npu-not-needed", "torch_npu is not installed; no NPU")
    release = parse(seen.torch.version)
    which = f"=={release.base_version}.*" if release else ""
    return problem(
        _NPU,
        "torch-npu-absent",
        f"there is an NPU, or one is asked for, and torch_npu is not installed for "
        f"{seen.python}",
        f"{seen.python} -m pip install 'torch_npu{which}'",
    )


def _versions(seen: TorchSeen) -> Iterator[Finding]:
    torch, npu = parse(seen.torch.version), parse(seen.npu.version)
    if torch is None or npu is None:
        return
    said = unmet(seen.npu_requires, "torch", seen.torch.version)
    # Older ones say nothing of torch; a release of torch_npu has the number of its
    # torch.
    silent = not any(_names(one, "torch") for one in seen.npu_requires)
    if said is None and (not silent or torch.release[:3] == npu.release[:3]):
        return
    yield problem(
        _NPU,
        "torch-npu-version",
        f"torch_npu {seen.npu.version} is for {said or f'torch {npu.base_version}'}, "
        f"and torch is {seen.torch.version}",
        f"{seen.python} -m pip install 'torch_npu=={torch.base_version}.*', or "
        f"'{said or f'torch=={npu.base_version}'}'",
    )


def _loading(seen: TorchSeen) -> Iterator[Finding]:
    if not seen.fits_python:
        yield problem(
            _NPU,
            "torch-npu-other-python",
            f"torch_npu {seen.npu.version} has no extension module for this Python",
            f"{seen.python} -m pip install --force-reinstall --no-deps "
            f"torch_npu=={seen.npu.version}",
        )
    elif seen.missing:
        yield _missing(seen, seen.missing)
    elif seen.attempt is not None:
        yield from _attempted(seen, seen.attempt)


def _missing(seen: TorchSeen, missing: tuple[Missing, ...]) -> Finding:
    first, *others = missing
    listed = ", ".join(one.library for one in others)
    more = f"; nor are {listed}" if listed else ""
    lies = f" (it is in {first.lies_in}, where the loader does not look)"
    return problem(
        _NPU,
        "torch-npu-library",
        f"torch_npu cannot be loaded, and `import torch` fails with it: "
        f"{first.library}, which {first.needed_by} needs, is not found"
        f"{lies if first.lies_in else ''}{more}",
        _found_by(seen),
    )


def _found_by(seen: TorchSeen) -> str:
    if seen.set_env:
        return f"source {seen.set_env} before Python is started"
    return (
        "install CANN and its driver, then source its set_env.sh before Python is "
        "started; without an NPU, uninstall torch_npu"
    )


def _attempted(seen: TorchSeen, attempt: Attempt) -> Iterator[Finding]:
    if attempt.library is not None:
        yield _missing(seen, (Missing(attempt.library, "torch_npu"),))
    elif attempt.timed_out:
        yield notice(
            _NPU,
            "torch-npu-slow",
            "importing torch_npu took longer than it was given",
            f"see where it hangs: {seen.python} -X faulthandler -c 'import torch_npu'",
        )
    elif attempt.signal is not None:
        yield problem(
            _NPU,
            "torch-npu-crashed",
            f"importing torch_npu ended the process with signal {attempt.signal}",
            "take torch_npu, CANN and driver from one row of torch_npu's "
            "compatibility table",
        )
    elif attempt.error is not None:
        yield problem(
            _NPU,
            "torch-npu-broken",
            f"torch_npu cannot be imported: {attempt.error}",
            f"mend what it says, then try: {seen.python} -c 'import torch_npu'",
        )


def unmet(requires: Iterable[str], package: str, version: str | None) -> str | None:
    """The requirement of a package that a version does not meet, if there is one."""
    for text in requires:
        found = _names(text, package)
        if found is None or (found.marker and not found.marker.evaluate({"extra": ""})):
            continue
        if version and parse(version):
            inside = found.specifier.contains(version, prereleases=True)
            if not inside:
                return f"{found.name}{found.specifier}"
    return None


def _names(text: str, package: str) -> Requirement | None:
    try:
        found = Requirement(text)
    except InvalidRequirement:
        return None
    return found if found.name.lower().replace("-", "_") == package else None
