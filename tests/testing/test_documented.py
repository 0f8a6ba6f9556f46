"""What the documents tell the author of a gap to do, done literally."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ..fresh import LONG
from .project import Project

pytest_plugins = ["pytester"]

DOCS = Path(__file__).parents[2] / "docs"
UPSTREAM = """
    def cdiv(a, b):
        return -(a // -b)
"""


def blocks(document: str, language: str) -> list[str]:
    text = (DOCS / document).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def stand_in(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """With something of the name of vLLM, which is imported in no time."""
    monkeypatch.delenv("ASCEND_SHIMS_ALLOW")
    project.write("up/vllm/__init__.py", "__version__ = '0.32.0'\n")
    project.write("up/vllm/utils/__init__.py", "")
    project.write("up/vllm/utils/math_utils.py", UPSTREAM)
    return project


def test_a_registry_of_ones_own(stand_in: Project) -> None:
    root = stand_in.root / "mine"
    (root / "my_patches").mkdir(parents=True)
    registry, *_ = blocks("write-a-gap.md", "yaml")
    code, *_ = blocks("write-a-gap.md", "python")
    (root / "gap_registry.yaml").write_text(registry)
    (root / "my_patches" / "__init__.py").touch()
    (root / "my_patches" / "my_gap.py").write_text(code)
    console, *_ = blocks("write-a-gap.md", "console")
    lines = console.replace("\\\n", "").splitlines()
    commands = [one.removeprefix("$ ") for one in lines if one.startswith("$ ")]
    assert [one.split()[:2] for one in commands[1:]] == [
        ["shims", "status"],
        ["shims", "apply-check"],
        ["shims", "run"],
    ]
    folder = stand_in.root / "bin"
    folder.mkdir()
    scripts = {
        "python": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n',
        "shims": f"#!{sys.executable}\nfrom ascend_shims.cli import main\n"
        "raise SystemExit(main())\n",
    }
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    # Upstream comes as an installed one does, before what the document says.
    script = "\n".join(
        [
            "set -e",
            commands[0],
            f"PYTHONPATH=$PYTHONPATH:{stand_in.root / 'up'}",
            *commands[1:],
        ]
    )
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=root,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^my-gap +pending ", done.stdout, re.MULTILINE)
    assert "apply() succeeds here." in done.stdout
    assert done.stdout.splitlines()[-1] == lines[-1] == "1"


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")
def test_the_first_example_passes_as_it_stands(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = blocks("testing.md", "python")[0]
    (command,) = (
        line.removeprefix("$ ")
        for line in blocks("testing.md", "console")[0].splitlines()
    )
    assert command == "ASCEND_SHIMS_DEVICE=sim pytest test_it.py"
    (project.root / "test_it.py").write_text(example)
    monkeypatch.setenv("ASCEND_SHIMS_DEVICE", "sim")
    # What torch warns of is not ours.
    assert project.outcomes("-W", "ignore", "test_it.py") == {"passed": 1}


def test_one_test_for_each_gap(stand_in: Project) -> None:
    (ini,) = blocks("testing.md", "ini")
    (registry,) = blocks("testing.md", "yaml")
    code = blocks("testing.md", "python")[-1]
    root = stand_in.root
    (root / "pytest.ini").write_text(ini.replace("pythonpath = .", "pythonpath = . up"))
    for name, text in {
        "my_plugin/__init__.py": "",
        "my_plugin/gap_registry.yaml": registry,
        "my_plugin/patches/__init__.py": "",
        "my_plugin/patches/my_gap.py": code,
        "tests/test_own.py": "def test_own(): pass\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    result = stand_in.run("-v", "--shims-verify")
    assert result.parseoutcomes() == {"passed": 2}
    result.stdout.fnmatch_lines(["my_plugin/gap_registry.yaml::my-gap PASSED*"])
