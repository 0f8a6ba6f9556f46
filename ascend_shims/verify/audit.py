"""An interpreter's upstream modules against their sources, in a child process.

The child imports what it is told, as any program there would, and compares what it
holds with what the files define. The toolkit need not be installed there.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError
from ..registry.model import Registry

__all__ = ["Audit", "AuditError", "Row", "audit"]

_WRITTEN = Path(__file__).parent / "written"
_SECONDS = 900

_BOOT = """
import importlib, sys
folder, job = sys.argv[1:]
if sys.path and sys.path[0] == "":
    del sys.path[0]
package = sys.modules["shims_written"] = type(sys)("shims_written")
package.__path__ = [folder]
del sys.argv[1:]
importlib.import_module("shims_written.child").main(job)
"""
"""Loads what it needs from its folder, which may be in a zip."""


class AuditError(ConfigurationError):
    """The interpreter did not do what it was told."""


@dataclass(frozen=True)
class Row:
    """One name whose object is not what the source defines."""

    path: str
    what: str
    """`replaced`, `wrapped`, `added`, `missing` or `stale`."""
    by: str
    """The module whose code stands there; empty where nothing does."""
    where: str
    """`file:line` of that code, as far as it has any."""
    gap: str | None
    """Ours, of this gap."""
    about: str


@dataclass(frozen=True)
class Audit:
    python: str
    version: str
    modules: tuple[str, ...]
    """Compared."""
    without_source: tuple[str, ...]
    """Not compared: built in, compiled, or their file is gone."""
    rows: tuple[Row, ...]
    problems: Mapping[str, str]
    """Modules that could not be imported, and why."""

    @property
    def foreign(self) -> tuple[Row, ...]:
        """What is not ours."""
        return tuple(row for row in self.rows if row.gap is None)


def audit(
    python: str,
    modules: Sequence[str],
    registry: Registry,
    *,
    first: Sequence[str] = (),
    plugins: bool = False,
    everything: bool = False,
) -> Audit:
    """Look at modules, and all beneath them, in an interpreter of its own.

    Args:
        python: the interpreter.
        registry: tells whose module a replacement of ours is in.
        first: modules to be imported before; those that patch, for example.
        plugins: load vLLM's general plugins first, as each of its processes does.
        everything: look at all modules of these top-level packages that got loaded.

    Raises:
        AuditError: the interpreter gives no answer.
    """
    with tempfile.TemporaryDirectory(prefix="ascend-shims-") as folder:
        answer = Path(folder) / "answer.json"
        job = {
            "modules": list(modules),
            "first": list(first),
            "plugins": plugins,
            "everything": everything,
            "answer": str(answer),
        }
        said = _run(python, json.dumps(job))
        try:
            told: dict[str, Any] = json.loads(answer.read_bytes())
        except (OSError, ValueError):
            last = said.strip().splitlines()[-1:] or ["it said nothing"]
            raise AuditError(f"{python} gave no answer: {last[0]}") from None
    return Audit(
        told["python"],
        told["version"],
        tuple(told["modules"]),
        tuple(told["without_source"]),
        tuple(_row(one, registry) for one in told["rows"]),
        told["problems"],
    )


def _run(python: str, job: str) -> str:
    try:
        done = subprocess.run(
            [python, "-c", _BOOT, str(_WRITTEN), job],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (FileNotFoundError, PermissionError) as error:
        raise AuditError(f"{python} is no interpreter: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise AuditError(f"{python} did not end within {_SECONDS} s") from None
    return done.stderr


def _row(told: Mapping[str, str], registry: Registry) -> Row:
    gap = told["gap"] or _owner(told["by"], registry)
    return Row(
        told["path"],
        told["what"],
        told["by"],
        told["where"],
        gap or None,
        told["about"],
    )


def _owner(module: str, registry: Registry) -> str:
    """The gap whose patch module this is, or is in."""
    for gap in registry.gaps:
        mine = f"{registry.package_of(gap)}.{gap.module}"
        if module == mine or module.startswith(f"{mine}."):
            return gap.id
    return ""
