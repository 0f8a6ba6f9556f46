"""What shells complete: asked in click's own way, and in shells that are here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ascend_shims.cli.app import shims as root
from ascend_shims.registry import load
from ascend_shims.states import State

Complete = Callable[..., list[str]]

OURS = [gap.id for gap in load().gaps]


@pytest.fixture
def complete(environ: dict[str, str], tmp_path: Path) -> Complete:
    """What is offered for the last of some words."""

    def ask(
        *words: str, shell: str = "bash", extra: dict[str, Any] | None = None
    ) -> Any:
        position = words[-1] if shell == "fish" else str(len(words))
        asked = {
            "COMP_WORDS": "\n".join(["shims", *words]),
            "COMP_CWORD": position,
            "_SHIMS_COMPLETE": f"{shell}_complete",
        }
        merged = {**environ, **asked, **(extra or {})}
        done = subprocess.run(
            [sys.executable, "-m", "ascend_shims"],
            env={k: v for k, v in merged.items() if v is not None},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return [line for line in done.stdout.splitlines() if line]

    return ask


def _plain(lines: list[str]) -> list[str]:
    assert all(line.startswith("plain,") for line in lines)
    return [line.removeprefix("plain,") for line in lines]


_REAL = {"ASCEND_SHIMS_REGISTRY": None, "ASCEND_SHIMS_ALLOW": None}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["appl"], ["apply-check"]),
        (["--vers"], ["--version"]),
        (["status", "--ass"], ["--assume"]),
        (["show", "l"], ["loud"]),
        (["diff", ""], ["loud", "polite", "gone"]),
        (["verify", "loud", "po"], ["polite"]),
        (["bisect", "g"], ["gone"]),
        (["status", "--gap", "loud", "--gap", "p"], ["polite"]),
        (["status", "--gap=p"], ["polite"]),
        (["status", "--gap", "=", "p"], ["polite"]),
        (["status", "--gap", "="], ["loud", "polite", "gone"]),
        (["drift", "--gap", "l"], ["loud"]),
        (["run", "--disable", "loud,"], ["loud,polite", "loud,gone"]),
        (["run", "--only", "lo"], ["loud"]),
        (["status", "--state", "lo"], ["lost"]),
        (["status", "--state", ""], [str(state) for state in State]),
        (["drift", "--format", "s"], ["sarif"]),
        (
            ["scan", "--format", ""],
            ["table", "json", "markdown", "github", "sarif", "junit"],
        ),
        (["explain", "no-such"], ["no-such-release"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
    ],
)
def test_what_is_offered(
    complete: Complete, words: list[str], offered: list[str]
) -> None:
    assert _plain(complete(*words)) == offered


def test_commands_are_offered_in_their_order(complete: Complete) -> None:
    assert _plain(complete("")) == root.list_commands(None)  # type: ignore[arg-type]


def test_gaps_are_those_of_the_registry_in_force(
    complete: Complete, project: Path
) -> None:
    assert _plain(complete("show", "", extra=_REAL)) == OURS
    named = ["status", "--registry", str(project / "registry.yaml"), "--gap", "l"]
    assert _plain(complete(*named, extra=_REAL)) == ["loud"]
    folder = ["drift", "--registry", str(project), "--gap", "l"]
    (project / "registry.yaml").rename(project / "gap_registry.yaml")
    assert _plain(complete(*folder, extra=_REAL)) == ["loud"]


@pytest.mark.parametrize(
    "extra",
    [
        {"ASCEND_SHIMS_REGISTRY": "/nowhere.yaml"},
        {"ASCEND_SHIMS_REGISTRY": "/dev/null"},
        {"ASCEND_SHIMS_DISBLE": "x"},
        {"ASCEND_SHIMS": "what?"},
    ],
)
def test_what_cannot_be_read_is_nothing_and_silent(
    complete: Complete, extra: dict[str, Any]
) -> None:
    assert complete("show", "", extra=extra) == []


def test_zsh_and_fish_show_what_each_is(complete: Complete) -> None:
    assert complete("show", "l", shell="zsh") == ["plain", "loud", "Answers loudly"]
    assert complete("show", "l", shell="fish")[0].startswith("plain,loud")
    zsh = complete("explain", "lost", shell="zsh")
    assert zsh[:2] == ["plain", "lost"]
    assert zsh[2].startswith("The gap was applied, and ")
    assert complete("appl", shell="zsh")[:2] == ["plain", "apply-check"]


def test_completing_imports_neither_vllm_nor_torch(environ: dict[str, str]) -> None:
    script = (
        "import sys\n"
        "from ascend_shims.cli import main\n"
        "try:\n    main([])\n"
        "finally:\n"
        "    heavy = {'vllm', 'torch', 'rich', 'ascend_shims.engine'}\n"
        "    print(sorted(sys.modules.keys() & heavy), file=sys.stderr)\n"
    )
    asked = {"COMP_WORDS": "shims show ", "COMP_CWORD": "2"}
    env = {**environ, **asked, "_SHIMS_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["plain,loud", "plain,polite", "plain,gone"]
    assert done.stderr == "[]\n"


# In real shells ----------------------------------------------------------------------


@pytest.fixture
def with_shims(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """An environment in which there is a command `shims`."""
    program = tmp_path / "bin" / "shims"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ascend_shims "$@"\n')
    program.chmod(0o755)
    return {**environ, "PATH": f"{program.parent}{os.pathsep}{environ['PATH']}"}


def _shell(name: str, script: str, env: dict[str, str]) -> str:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"there is no {name} here")
    words = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[name]
    done = subprocess.run(
        [program, *words, "-c", script],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("show l", "loud"),
        ("run --disable loud,p", "loud,polite"),
        ("status --gap = p", "polite"),
        ("appl", "apply-check"),
    ],
)
def test_bash_completes(with_shims: dict[str, str], words: str, offered: str) -> None:
    script = (
        'eval "$(shims completion bash)"\n'
        f"COMP_WORDS=(shims {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        "complete -p shims\n"
        "_shims_completion shims\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    registered, said = _shell("bash", script, with_shims).splitlines()
    assert "_shims_completion" in registered
    assert said == offered


def test_zsh_takes_the_script(with_shims: dict[str, str]) -> None:
    script = (
        'autoload -Uz compinit; compinit -D; eval "$(shims completion zsh)"\n'
        "print -r -- ${_comps[shims]}\n"
    )
    assert _shell("zsh", script, with_shims) == "_shims_completion\n"


def test_fish_completes(with_shims: dict[str, str]) -> None:
    script = 'shims completion fish | source; complete -C "shims show l"\n'
    assert _shell("fish", script, with_shims).startswith("loud")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_this_command(shims: Any, shell: str) -> None:
    done = shims("completion", shell)
    assert done.returncode == 0
    assert f"_SHIMS_COMPLETE={shell}_complete" in done.stdout
