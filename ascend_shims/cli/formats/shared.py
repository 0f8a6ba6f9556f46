"""What the formats have in common."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...upstream.check import Checked, Finding

__all__ = ["LEVELS", "heading", "relative", "serious", "tally"]

LEVELS = {"broken": "error", "review": "warning", "fixed-upstream": "warning"}
"""How CI systems call a verdict; all others are notes."""


def heading(checked: Checked) -> str:
    """What is compared; the release alone where no gap is for it."""
    if not checked.findings and checked.baseline == "nothing":
        return checked.release
    return f"{checked.release} against {checked.baseline}"


def serious(checked: Checked) -> list[Finding]:
    """Findings that a person should look at, worst first."""
    from ...upstream.check import ORDER

    found = [f for f in checked.findings if f.verdict.kind in LEVELS]
    return sorted(found, key=lambda f: ORDER.index(f.verdict.kind))


def relative(file: str) -> str:
    """A path as CI systems want it: from the root of the checkout, with slashes.

    That is the repository around the file, else the working directory.
    """
    path = Path(file).resolve()
    homes = [home for home in path.parents if (home / ".git").exists()]
    for home in (*homes[:1], Path.cwd()):
        if path.is_relative_to(home):
            return path.relative_to(home).as_posix()
    return Path(os.path.relpath(path)).as_posix()


def tally(kinds: Iterable[str]) -> str:
    """`2 broken, 40 identical`, worst first."""
    from ...upstream.check import ORDER

    counted = list(kinds)
    parts = [f"{counted.count(kind)} {kind}" for kind in ORDER if kind in counted]
    return ", ".join(parts) or "nothing to check"
