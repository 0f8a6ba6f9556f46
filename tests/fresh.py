"""Programs, and interpreters in which nothing has been imported, run by tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["LONG", "python", "run"]

LONG = 120
"""Seconds until what hangs is given up: more than a busy machine needs."""


def run(
    *words: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str:
    """What a program prints that ends with 0; `env` comes on top of this process's."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=5 * LONG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(
    code: str,
    *arguments: str | Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """What `code` prints in an interpreter of its own, without leaving bytecode."""
    return run(sys.executable, "-B", "-c", code, *arguments, cwd=cwd, env=env)
