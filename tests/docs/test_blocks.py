"""Blocks of code in the pages can be typed as they stand.

A block that is not tried by itself says why in a comment before it, which readers do
not see: `<!-- test: … -->`.
"""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from ascend_shims.cli.app import shims
from ascend_shims.environment import distributions
from ascend_shims.registry import load
from ascend_shims.registry.model import Gap

from ..fresh import python
from .pages import PAGES, ROOT, Block, blocks

pytestmark = pytest.mark.any_release

BLOCKS = [block for page in PAGES for block in blocks(page)]
REGISTRY = load()

LANGUAGES = {
    "": 1,
    "console": 35,
    "ini": 1,
    "json": 1,
    "python": 8,
    "text": 100,
    "toml": 1,
    "yaml": 4,
}
"""What there is, and at least how many. `text` and none at all are no code."""


def _of(*languages: str) -> list[Any]:
    return [pytest.param(one, id=one.id) for one in BLOCKS if one.language in languages]


def test_all_kinds_of_blocks_are_tested() -> None:
    counted = Counter(one.language for one in BLOCKS)
    assert set(counted) <= {*LANGUAGES, "jsonl", "cfg", "bash", "sh", "diff"}
    assert {k: n for k, n in LANGUAGES.items() if counted[k] < n} == {}


MARKERS = {
    "needs a running engine": {"docs/ranks.md"},
    "starts an engine; tests/real/test_rig.py does so": {"docs/rig.md"},
    "done literally by tests/testing/test_documented.py": {
        "docs/testing.md",
        "docs/write-a-gap.md",
    },
}
"""What a page may say of a block, and on which pages."""


def test_what_is_not_run_says_why() -> None:
    marked = [one for one in BLOCKS if one.marker is not None]
    said: dict[str, set[str]] = {}
    for one in marked:
        said.setdefault(str(one.marker), set()).add(one.page)
    assert {k: v for k, v in said.items() if k in MARKERS} == MARKERS
    # Other pages have reasons of their own, in words.
    assert [k for k in said if len(k.split()) < 3] == []
    assert len(marked) < len(BLOCKS) / 10


# What is typed -----------------------------------------------------------------------

STAND_INS = {
    "CODE": "applied",
    "CLONE": "vllm",
    "FILE": "file",
    "FOLDER": "folder",
    "GAP": "kv-cache",
    "VERSION": "0.33.0",
    "ID": "my-gap",
}
"""Words that stand for something of the reader's."""

OTHERS = {
    *(".", "cd", "export", "git", "grep", "mkdir"),
    *("pip", "pytest", "python", "unset", "vllm"),
}
"""Programs that are not ours."""


def _lines(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block, and the lines that it prints according to the page."""
    shown: list[str] = []
    typed = ""
    for line in block.text.replace("\\\n", "").splitlines():
        if line.startswith("$ "):
            if typed:
                yield typed, shown
            typed, shown = line[2:], []
        else:
            assert typed, f"{block.id}: does not begin with what is typed"
            shown.append(line)
    assert typed, f"{block.id}: nothing is typed"
    yield typed, shown


def _split(typed: str) -> tuple[dict[str, str], list[str]]:
    """Variables and words of a command, without a remark, a pipe or a redirection."""
    lexer = shlex.shlex(typed, posix=True, punctuation_chars="|;>&")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|;>&"):
            break
        words.append(word)
    variables = {}
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        key, _, value = words.pop(0).partition("=")
        variables[key] = value
    return variables, words


COMMANDS = [
    pytest.param(block, typed, shown, id=f"{block.id} {typed[:40]}")
    for block in BLOCKS
    if block.language == "console"
    for typed, shown in _lines(block)
]


def test_there_are_commands() -> None:
    typed = [_split(param.values[1])[1] for param in COMMANDS]
    first = Counter(words[0] for words in typed if words)
    assert first["shims"] > 70
    assert first["tools/env"] > 2


@pytest.mark.parametrize(("block", "typed", "shown"), COMMANDS)
def test_a_command_can_be_typed(block: Block, typed: str, shown: list[str]) -> None:
    _, words = _split(typed)
    if not words:
        return  # only variables are set
    program = words[0]
    if program == "shims":
        _parse(block, words[1:])
    elif program.startswith("tools/"):
        _is_tool(program, words[1:])
    else:
        name = Path(program).name
        assert program.startswith(".venv") or {program, name} & OTHERS, (
            f"who is {program}?"
        )
        if words[1:3] == ["-m", "ascend_shims"]:
            _parse(block, words[3:])


def _is_tool(program: str, words: list[str]) -> None:
    tool = ROOT / program
    assert os.access(tool, os.X_OK), program
    text = tool.read_text("utf-8")
    if program == "tools/test" and "-k" in words:
        words = []  # arguments of pytest
    assert [w for w in words if w.startswith("--") and w not in text] == [], program


def _parse(block: Block, words: list[str]) -> None:
    """As click does before it runs a command. Files of the reader's need not exist."""
    context = click.Context(shims, info_name="shims")
    words = [STAND_INS.get(word, word) for word in words]
    if words[0].startswith("-"):
        assert words in (["--help"], ["--version"], ["-h"])
        return
    command = shims.get_command(context, words[0])
    assert command is not None, words[0]
    try:
        made = command.make_context(words[0], words[1:], parent=context)
    except click.exceptions.Exit:
        assert "--help" in words
        return
    except click.BadParameter as error:
        assert isinstance(getattr(error.param, "type", None), click.Path), error
        return
    known = _gaps(block.page)
    for key in ("gap", "gaps", "only", "disable"):
        given = made.params.get(key) or ()
        named = given.split(",") if isinstance(given, str) else given
        assert [one for one in named if one not in known] == [], block.id


def _gaps(page: str) -> set[str]:
    """Those of our registry, and of registries that the page itself writes."""
    found = {gap.id for gap in REGISTRY.gaps}
    for block in BLOCKS:
        if block.page == page:
            found |= set(re.findall(r"^\s*- id: ([\w-]+)$", block.text, re.MULTILINE))
    return found | {"my-gap", "spare-block"}


# What is run -------------------------------------------------------------------------

QUICK = {"status", "show", "explain", "completion"}
"""Neither start anything, nor read releases, nor write."""

_MADE_UP = re.compile(r"[A-Z]{3,}|gaps?\.yaml|gap_registry\.yaml|--watch|kv-cach$|>")


def _is_safe(typed: str) -> bool:
    _, words = _split(typed)
    shell = any(mark in typed.partition("#")[0] for mark in ("|", ">", ";"))
    return (
        words[:1] == ["shims"]
        and words[1:2] != []
        and words[1] in QUICK
        and not shell
        and not any(_MADE_UP.search(word) for word in words[1:])
    )


RUN = [param for param in COMMANDS if _is_safe(param.values[1])]


def test_some_commands_are_run() -> None:
    assert len({param.values[1] for param in RUN}) > 10


@pytest.mark.parametrize(("block", "typed", "shown"), RUN)
def test_a_command_does_what_the_page_shows(
    block: Block,
    typed: str,
    shown: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    variables, words = _split(typed)
    for key in [one for one in os.environ if one.startswith("ASCEND_SHIMS")]:
        monkeypatch.delenv(key)
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("COLUMNS", "80")
    # Whoever else runs on the machine is not what the page is about.
    monkeypatch.setattr("ascend_shims.cli.status.ask_all", list)
    monkeypatch.setattr("ascend_shims.cli.show.ask_all", list)
    done = CliRunner().invoke(shims, words[1:], standalone_mode=False)
    assert done.exception is None, done.exception
    assert (done.return_value or 0) == 0
    if block.page.startswith("README") and shown:
        _is_shown(shown, done.output)


def _is_shown(shown: list[str], output: str) -> None:
    """Every line of the page is printed, in that order; `…` stands for any."""
    found = distributions.find_distribution("vllm")
    if getattr(found, "version", None) != "0.32.0":
        pytest.skip("the page shows vLLM 0.32.0, which is not installed here")
    printed = iter([" ".join(line.split()) for line in output.splitlines()])
    for line in shown:
        if line and line != "…":
            assert " ".join(line.split()) in printed, (
                f"not printed, or not there: {line}"
            )


# Python, YAML and the rest -----------------------------------------------------------

ENDS = {
    # There is no engine at hand; all that comes before is run.
    "README.md": "NotAnEngineError",
    "README.zh-CN.md": "NotAnEngineError",
    # The names in it are the reader's.
    "docs/security.md": "RegistryError",
}
"""How the blocks of a page end that cannot end well here."""


@pytest.mark.parametrize("block", _of("python"))
def test_python(block: Block, tmp_path: Path) -> None:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    compile(block.text, block.id, "exec", flags)
    if block.marker is not None:
        return
    code = (
        "import sys, ascend_shims\nllm = object()\nfrom ascend_shims.errors import *\n"
        "try:\n    exec(compile(sys.argv[1], 'page', 'exec'))\n"
        "except ShimsError as error:\n    print('ended:', type(error).__name__)\n"
    )
    clean = {k: "" for k in os.environ if k.startswith("ASCEND_SHIMS")}
    said = python(code, block.text, cwd=tmp_path, env=clean)
    ended = re.findall(r"^ended: (\w+)$", said, re.MULTILINE)
    assert ended == ([ENDS[block.page]] if block.page in ENDS else [])


@pytest.mark.parametrize("block", _of("yaml"))
def test_yaml(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = yaml.safe_load(block.text)
    assert data
    if isinstance(data, dict) and "schema" not in data:
        if not set(data) <= set(Gap.__struct_fields__):
            return  # a file of somebody else's, which is YAML
    elif not isinstance(data, dict):
        data = {"removal_probe": data}
    file = tmp_path / "gap_registry.yaml"
    whole = data if "schema" in data else _around(data)
    file.write_text(yaml.safe_dump(whole, sort_keys=False))
    if "package" in whole:
        _write_package(tmp_path, whole)
        monkeypatch.syspath_prepend(str(tmp_path))
    assert len(load(file).gaps) == len(whole["gaps"]) > 0


def _around(part: dict[str, Any]) -> dict[str, Any]:
    """A registry with a gap that has this."""
    gap = {
        "id": "one",
        "title": "One",
        "status": "open",
        "kind": "workaround",
        "why": "W",
        "remove_when": "R",
        "unpatched": "U",
    }
    return {"schema": 1, "upstreams": ["vllm"], "gaps": [{**gap, **part}]}


def _write_package(root: Path, registry: dict[str, Any]) -> None:
    """The code that a registry names, which is in another block."""
    package = root
    for part in registry["package"].split("."):
        package /= part
        package.mkdir()
        (package / "__init__.py").touch()
    for gap in registry["gaps"]:
        names = [patch["replacement"] for patch in gap["patches"]]
        code = "".join(f"def {n}(call, *a, **k):\n    return call()\n" for n in names)
        (package / f"{gap['id'].replace('-', '_')}.py").write_text(code)


@pytest.mark.parametrize("block", _of("json", "jsonl", "toml", "ini", "cfg"))
def test_data(block: Block) -> None:
    if block.language in ("json", "jsonl"):
        assert _json(block.text)
    elif block.language == "toml":
        tomllib = pytest.importorskip("tomllib", reason="comes with Python 3.11")
        assert tomllib.loads(block.text)
    else:
        parser = configparser.ConfigParser(allow_no_value=True)
        parser.read_string(block.text)
        assert parser.sections()


def _json(text: str) -> list[Any]:
    """One value, or one a line."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]
