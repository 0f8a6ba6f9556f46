"""Help that teaches: examples that work, within the width of a terminal."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from ascend_shims.cli import main
from ascend_shims.cli.app import _GROUPS, shims

NAMES = shims.list_commands(click.Context(shims))
READY = {"status", "show", "explain", "completion", "scan"}
"""Commands whose examples need neither vLLM, nor an index, nor long."""


def _help(*words: str, columns: int = 80) -> list[str]:
    env = {"COLUMNS": str(columns)}
    done = CliRunner().invoke(
        shims, [*words, "--help"], env=env, terminal_width=columns
    )
    assert done.exit_code == 0
    return done.stdout.splitlines()


def _examples(*words: str) -> Iterator[str]:
    """Calls under `Examples:`, without what is said about them."""
    lines = iter(_help(*words))
    for line in lines:
        if line.strip() in ("Example:", "Examples:"):
            break
    for line in lines:
        if not line.strip():
            return
        yield re.split(r" {2,}", line.strip())[0]


EXAMPLES = [
    example for words in ((), *((n,) for n in NAMES)) for example in _examples(*words)
]


def test_examples_come_first() -> None:
    lines = [line for line in _help() if line and not line.startswith(" ")]
    assert lines == [
        "Usage: shims [OPTIONS] COMMAND [ARGS]...",
        *(f"{title}:" for title in _GROUPS),
        "Options:",
    ]
    text = "\n".join(_help())
    assert text.index("Examples:") < text.index("See what is:")


@pytest.mark.parametrize(
    ("typed", "meant"), [("statsu", "status"), ("drfit", "drift"), ("lok", "lock")]
)
def test_a_command_that_is_nearly_one_is_named(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([typed]) == 2
    assert f"Did you mean {meant!r}?" in capsys.readouterr().err


def test_every_command_is_in_one_group() -> None:
    here = Path(sys.modules["ascend_shims.cli"].__file__ or "").parent
    written = {
        file.stem.replace("_", "-")
        for file in here.glob("*.py")
        if "@click.command(" in file.read_text("utf-8")
    }
    assert sorted(NAMES) == sorted(written)
    assert len(NAMES) > 15


def test_a_line_about_each_fits_beside_its_name() -> None:
    lines = _help()
    for group in _GROUPS.values():
        for name, about in group.items():
            assert f"  {name:<11}  {about}" in lines


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_an_example_of_itself(name: str) -> None:
    found = list(_examples(name))
    assert found, name
    assert all(one.startswith(f"shims {name}") for one in found)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_fits_a_terminal(name: str) -> None:
    lines = _help(*filter(None, [name]))
    assert len(lines) > 8
    assert [line for line in lines if len(line) > 80] == []


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the examples name."""
    plugin = tmp_path / "my_plugin"
    plugin.mkdir()
    (plugin / "__init__.py").write_text("")
    (plugin / "patches.py").write_text(
        "import vllm.v1.worker.gpu.model_runner as runner\n"
        "def quiet(*args): ...\n"
        "runner.GPUModelRunner.profile_run = quiet\n"
    )
    (tmp_path / "vllm").mkdir()
    (tmp_path / "serve.py").write_text("print('served')\n")
    (tmp_path / "symbols.jsonl").write_text('{"symbol": "vllm.a:b", "how": "calls"}\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_understood(example: str, place: Path) -> None:
    words = shlex.split(example.partition(" > ")[0])
    root = click.Context(shims, info_name="shims")
    command = shims.get_command(root, words[1])
    assert command is not None
    context = command.make_context(words[1], words[2:], parent=root)
    assert context.args == []
    given = {word.partition("=")[0] for word in words[2:] if word.startswith("--")} - {
        "--"
    }
    taken = {
        name
        for one in command.params
        if context.get_parameter_source(one.name or "")
        is click.core.ParameterSource.COMMANDLINE
        for name in one.opts
    }
    # Behind `--` are the words of another program.
    assert given <= taken


@pytest.mark.parametrize(
    "example",
    [one for one in EXAMPLES if one.split()[1] in READY and "--against" not in one],
)
def test_examples_work(example: str, place: Path) -> None:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ASCEND_SHIMS")}
    words = shlex.split(example.partition(" > ")[0])
    done = subprocess.run(
        [sys.executable, "-m", "ascend_shims", *words[1:]],
        env=clean,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    # One that looks at running processes may find a fault in somebody else's.
    assert done.returncode in ((0, 1) if words[1] in ("status", "show") else (0,)), (
        done.stderr
    )
    assert done.stdout.strip()
