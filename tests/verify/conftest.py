"""A made-up upstream, a registry of gaps for it, and `shims verify` run on them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from ..fresh import LONG, run
from .leaks import SOURCES

PATCHES = """
import os, sys, types

KEPT = []

class Unset: pass

def wrapper(*args, **kwargs): pass

{top}

def patch(kept):
    from {up} import a, b, lazy
{code}
    return kept
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def told(self) -> Any:
        return json.loads(self.out)


class Town:
    """Upstream `up`, patches `pp`, in files; gaps are added one by one."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.up, self.package = root, f"up_{name}", f"pp_{name}"
        self.gaps: list[dict[str, Any]] = []
        self.write(f"{self.package}/__init__.py", "")
        targets = "".join(f"def t{n}(x): return x\n" for n in range(100))
        self.write(f"{self.up}/targets.py", targets)
        for module, source in SOURCES.items():
            self.write(f"{self.up}/{module}.py", source)

    def write(self, file: str, text: str) -> None:
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def spelled(self, text: str) -> str:
        return re.sub(r"\bUP\b", self.up, text)

    def gap(self, gap: str, code: str, top: str = "", **more: Any) -> None:
        """A gap that decorates a function of its own, and does `code` besides.

        `top` is done when its module is imported.
        """
        body = indent(self.spelled(code), "    ")
        text = PATCHES.format(up=self.up, top=top, code=body)
        self.write(f"{self.package}/{gap.replace('-', '_')}.py", text)
        patch = {
            "target": f"{self.up}.targets:t{len(self.gaps)}",
            "kind": "decorate",
            "replacement": "patch",
        }
        entry = {
            "id": gap,
            "title": gap,
            "status": "open",
            "kind": "workaround",
            "why": "a test",
            "remove_when": "it has passed",
            "patches": [patch],
        }
        self.gaps.append({**entry, **more})

    @property
    def registry(self) -> Path:
        path = self.root / "registry.yaml"
        document = {
            "schema": 1,
            "upstreams": [self.up],
            "package": self.package,
            "gaps": self.gaps,
        }
        path.write_text(json.dumps(document))
        return path

    def environ(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("ASCEND_")}
        ours = {"PYTHONPATH": str(self.root), "ASCEND_SHIMS_ALLOW": self.package}
        return {**clean, **ours, **(more or {})}

    def verify(self, *words: str, env: Mapping[str, str] | None = None) -> Ended:
        """`shims verify` with this registry."""
        command = [sys.executable, "-m", "ascend_shims", "verify", *words]
        done = subprocess.run(
            [*command, "--registry", str(self.registry)],
            cwd=self.root,
            env=self.environ(env),
            capture_output=True,
            text=True,
            timeout=5 * LONG,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def python(self, code: str, env: Mapping[str, str] | None = None) -> Any:
        """What a process says that applies this registry and runs `code`.

        `told()` is `ascend_shims.verify()` as JSON; `say` takes what to print.
        """
        prelude = f"""
import gc, importlib, json, sys
import ascend_shims, {self.up}
from {self.up} import a, b, targets
def apply(*gaps): return ascend_shims.apply(only=gaps or None)
def told(): return ascend_shims.verify().as_dict()
def say(one): print(json.dumps(one))
"""
        said = run(
            sys.executable,
            "-c",
            prelude + self.spelled(dedent(code)),
            cwd=self.root,
            env=self.environ(
                {
                    "ASCEND_SHIMS_DEVICE": "sim",
                    "ASCEND_SHIMS_REGISTRY": str(self.registry),
                    **(env or {}),
                }
            ),
        )
        return json.loads(said)


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path, "small")
