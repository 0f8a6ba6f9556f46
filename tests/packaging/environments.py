"""Interpreters of this machine, and environments with what a test says in them."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ..fresh import LONG

__all__ = ["ROOT", "asked", "environment", "interpreter", "lowest", "resolve"]

ROOT = Path(__file__).parents[2]

PIP = (
    *(sys.executable, "-m", "pip"),
    *("--disable-pip-version-check", "--retries", "1", "--timeout", "20"),
)
WHEELS = ("--no-compile", "--only-binary", ":all:")
"""No compiler is needed, which makes a lower bound that has no wheel a wrong one."""

OFFLINE = ("NewConnectionError", "Retrying (", "timed out", "Temporary failure in name")


def asked(
    *words: str | Path,
    cwd: Path,
    path: Path | None = None,
    ends: tuple[int, ...] = (0,),
) -> str:
    """What a program prints that ends as it should, and complains of nothing.

    It knows nothing of the environment that runs the tests.
    """
    ours = ("ASCEND_", "PYTHON", "VLLM_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode in ends, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@functools.cache
def interpreter(version: str) -> Path | None:
    """Python of that version: from the PATH, or one that pyenv keeps."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *kept.glob(f"{version}.*/bin/python")]
    code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    for path in filter(None, found):
        words = [path, "-c", code]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return Path(path)
    return None


def lowest(version: str) -> dict[str, str]:
    """The lowest release of each requirement that setup.cfg allows there."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    found: dict[str, str] = {}
    for line in config["options"]["install_requires"].split("\n"):
        if not line:
            continue
        one = Requirement(line)
        if one.marker is None or one.marker.evaluate({"python_version": version}):
            # The bounds of a name rise from line to line.
            (bound,) = one.specifier
            assert bound.operator == ">=", f"no lower bound: {line}"
            found[one.name] = bound.version
    return found


def _pip(*words: str | Path) -> None:
    """Skips the test where the index does not answer."""
    done = subprocess.run(
        [*PIP, *map(str, words)], capture_output=True, text=True, check=False
    )
    if done.returncode and any(sign in done.stderr for sign in OFFLINE):
        pytest.skip("the package index does not answer")
    assert done.returncode == 0, done.stderr


def _pins(home: Path, pins: dict[str, str]) -> tuple[str | Path, ...]:
    file = home.with_suffix(".txt")
    file.write_text("".join(f"{name}=={at}\n" for name, at in pins.items()))
    return "--constraint", file


def environment(
    python: Path, home: Path, *requirements: str | Path, pins: dict[str, str]
) -> Path:
    """The `bin` of a new environment with these and what they need, and no pip."""
    asked(python, "-m", "venv", "--without-pip", home, cwd=home.parent)
    target = ("--python", home / "bin" / "python")
    constraint = _pins(home, pins)
    _pip(*target, "install", "-q", *WHEELS, *constraint, *requirements)
    return home / "bin"


def resolve(
    version: str, home: Path, *requirements: str | Path, pins: dict[str, str]
) -> None:
    """Fails unless all of it is to be had for a Python that is not here."""
    there = ("--ignore-installed", "--python-version", version, "--target", home)
    constraint = _pins(home, pins)
    _pip("install", "-q", "--dry-run", *there, *WHEELS, *constraint, *requirements)
