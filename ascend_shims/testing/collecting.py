"""One test for each gap of a project's own registries: `registry.yaml::gap`.

What a test finds out is found out in a process of its own, so that nothing of it is
left in this one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..registry import RegistryError, load

_TIMEOUT = 600
"""Seconds. Importing all of upstream takes ten on a small machine."""


class GapError(Exception):
    """A gap does not hold here; the message says why."""


class RegistryFile(pytest.File):
    """A registry that the project's configuration names."""

    def collect(self) -> Iterator[GapItem]:
        try:
            registry = load(self.path)
        except RegistryError as error:
            raise self.CollectError(str(error)) from None
        text = self.path.read_text(encoding="utf-8")
        for gap in registry.gaps:
            entry = re.search(rf"""\bid\b["']?:\s*["']?{gap.id}\b(?!-)""", text)
            line = text.count("\n", 0, entry.start()) if entry else 0
            yield GapItem.from_parent(self, name=gap.id, line=line)


class GapItem(pytest.Item):
    """Whether a gap applies here and leaves no trace when it is taken back."""

    def __init__(self, *, line: int, **fields: Any) -> None:
        super().__init__(**fields)
        self._line = line

    def runtest(self) -> None:
        answer = _ask(self.path, self.name)
        reasons = "\n".join(answer["reasons"])
        if answer["outcome"] == "skipped":
            # As pytest's own marks do: the place is the entry, and not this line.
            raise pytest.skip.Exception(reasons, _use_item_location=True)
        if answer["outcome"] == "failed":
            raise GapError(reasons)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:
        if isinstance(excinfo.value, GapError):
            return f"{self.name}:\n{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self._line, f"gap {self.name}"


def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> RegistryFile | None:
    registries: list[Path] = parent.config.getini("shims_registry")
    if file_path.resolve() in [one.resolve() for one in registries]:
        return RegistryFile.from_parent(parent, path=file_path)
    return None


def _ask(path: Path, gap: str) -> dict[str, Any]:
    # As this process finds its modules, with what pytest and a conftest have added.
    found = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, "-m", "ascend_shims.testing.check", path, gap],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        env={**os.environ, "PYTHONPATH": found},
        check=False,
    )
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise GapError(
            f"the check ended with {done.returncode}:\n{done.stderr[-4000:]}"
        )
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer
