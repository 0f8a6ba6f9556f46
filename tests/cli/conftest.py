"""A made-up upstream with two gaps, and `shims` run against it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_REGISTRY = """
schema: 1
upstreams: [madeup]
package: madeup_patches
gaps:
  - id: loud
    title: Answers loudly
    status: open
    kind: workaround
    why: Callers are hard of hearing.
    remove_when: They hear.
    needs: {device: false}
    patches:
      - {target: "madeup.core:answer", kind: wrap, replacement: shout}
  - id: polite
    title: Answers politely
    status: open
    kind: adaptation
    why: Manners.
    remove_when: Never.
    needs: {device: false}
    after: [loud]
    patches:
      - {target: "madeup.core:answer", kind: wrap, replacement: please}
  - id: gone
    title: Upstream does it
    status: landed
    kind: workaround
    why: It did not.
    remove_when: It does.
    unpatched: upstream answers by itself
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with the upstream, its patches and the registry."""
    files = {
        "madeup/__init__.py": "__version__ = '1.2.0'\n",
        "madeup/core.py": "def answer(word):\n    return word\n",
        "madeup/user.py": "from madeup.core import answer\n",
        "madeup_patches/__init__.py": "",
        "madeup_patches/loud.py": """
            def shout(call, word):
                return call(word).upper()
        """,
        "madeup_patches/polite.py": """
            def please(call, word):
                return call(word) + ', please'
        """,
        "registry.yaml": _REGISTRY,
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return tmp_path


@pytest.fixture
def environ(project: Path) -> dict[str, str]:
    """An environment in which that registry is the one in force."""
    inherited = {
        k: v for k, v in os.environ.items() if not k.startswith("ASCEND_SHIMS")
    }
    return {
        **inherited,
        "ASCEND_SHIMS_REGISTRY": str(project / "registry.yaml"),
        "ASCEND_SHIMS_ALLOW": "madeup_patches",
        "PYTHONPATH": str(project),
        "COLUMNS": "80",
    }


Shims = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shims(environ: dict[str, str], tmp_path: Path) -> Shims:
    """Run the command; `extra` adds to the environment, None takes away."""

    def run(*words: str, extra: dict[str, Any] | None = None) -> Any:
        merged = {**environ, **(extra or {})}
        env = {k: v for k, v in merged.items() if v is not None}
        return subprocess.run(
            [sys.executable, "-m", "ascend_shims", *words],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def shims_json(shims: Shims) -> Callable[..., dict[str, Any]]:
    def run(*words: str, extra: dict[str, Any] | None = None) -> Any:
        done = shims(*words, "--json", extra=extra)
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def serving(environ: dict[str, str]) -> Iterator[Callable[[str], Any]]:
    """Start Python processes that run a script, say `ready`, and wait for input."""
    running: list[subprocess.Popen[str]] = []

    def start(script: str) -> subprocess.Popen[str]:
        text = textwrap.dedent(script) + "\nprint('ready', flush=True)\ninput()\n"
        process = subprocess.Popen(
            [sys.executable, "-c", text],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == "ready":
                return process
        raise AssertionError("the script ended before it was ready")

    yield start
    for process in running:
        process.kill()
        process.wait()
