"""No words, no files and no registry make a command end with a traceback."""

from __future__ import annotations

import copy
import os
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_shims.cli.app import shims
from ascend_shims.explain import all_pages
from ascend_shims.registry import packaged

from .fuzzing import Said, Shell

CODES = {page.code for group in all_pages() for page in group.pages}
CONTEXT = click.Context(shims)
COMMANDS = {
    name: command
    for name in shims.list_commands(CONTEXT)
    if (command := shims.get_command(CONTEXT, name)) is not None
}
GAPS = ("loud", "polite", "gone", "kv-cache")
QUIET = settings(
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)

ODD = (
    "",
    " ",
    "-",
    "--",
    "--nope",
    "\x1b[31mred",
    "two\nlines",
    "\udcff\udcfe",
    "漂移",
    "9" * 400,
    "-9999999999999999999999",
    "nan",
    "inf",
    "1e400",
    "a" * 5000,
    "../" * 60,
    "%s%n{0}[bold]",
)
SOURCES = (
    "installed",
    "madeup==1.0",
    "madeup@latest",
    "vllm==",
    "==",
    "@",
    "git:",
    "git:@",
    "git:folder@main",
    "git:missing@\udcff",
    "https://127.0.0.1:9/x.whl",
    "file:///dev/null",
    ">=1,<2",
    "[::",
)
PATHS = (
    ".",
    "folder",
    "empty",
    "missing",
    "missing/below",
    "text.py",
    "registry.yaml",
    "registry.yaml/below",
    "torn.yaml",
    "bytes",
    "loop",
    "dangling",
    "fifo",
    "unreadable",
    "archive.whl",
    "archive.tar.gz",
    "symbols.jsonl",
    "/dev/null",
    "/proc/self/environ",
    "x" * 300,
)


@pytest.fixture
def shell(project: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """`shims` in a folder with all kinds of files, for a made-up upstream."""
    made = Shell(project, monkeypatch)
    monkeypatch.setenv("ASCEND_SHIMS_REGISTRY", str(project / "registry.yaml"))
    monkeypatch.setenv("ASCEND_SHIMS_ALLOW", "madeup_patches")
    monkeypatch.syspath_prepend(project)
    (project / "folder").mkdir()
    (project / "folder" / "patches.py").write_text("import madeup\nmadeup.x = 1\n")
    (project / "empty").mkdir()
    (project / "text.py").write_text("import vllm\nvllm.a.b = 1\n")
    (project / "torn.yaml").write_text("schema: [1\n")
    (project / "bytes").write_bytes(bytes(range(256)))
    (project / "loop").symlink_to("loop")
    (project / "dangling").symlink_to("nowhere")
    os.mkfifo(project / "fifo")
    (project / "unreadable").write_text("x")
    (project / "unreadable").chmod(0)
    (project / "archive.whl").write_bytes(b"PK\x03\x04 torn")
    (project / "archive.tar.gz").write_bytes(b"\x1f\x8b torn")
    (project / "symbols.jsonl").write_text('{"symbol": "madeup.core:answer"}\n{\n')
    return made


# Words


def values(parameter: click.Parameter) -> st.SearchStrategy[str]:
    """What may be said for one option or argument: right, wrong and absurd."""
    kind = parameter.type
    if isinstance(kind, click.Choice):
        near = st.sampled_from([str(one) for one in kind.choices])
    elif isinstance(kind, (click.Path, click.File)):
        near = st.sampled_from(PATHS)
    elif isinstance(kind, (click.types.FloatParamType, click.types.IntParamType)):
        near = st.sampled_from(["0", "1", "0.2", "-1", "5"])
    else:
        near = st.sampled_from((*GAPS, *SOURCES, *PATHS, "madeup", "madeup.core"))
    return st.one_of(near, near, st.sampled_from(ODD))


@st.composite
def words(draw: st.DrawFn) -> list[str]:
    name = draw(st.sampled_from(sorted(COMMANDS)))
    said = [name]
    for one in COMMANDS[name].params:
        often = 4 if isinstance(one, click.Argument) else 1
        for _ in range(draw(st.sampled_from([0, *[1] * often, 2]))):
            if isinstance(one, click.Argument):
                said.append(draw(values(one)))
                continue
            said.append(draw(st.sampled_from(one.opts)))
            if not getattr(one, "is_flag", False):
                said.append(draw(values(one)))
    return draw(
        st.one_of(st.just(said), st.permutations(said[1:]).map(lambda r: [name, *r]))
    )


def is_in_order(said: Said) -> None:
    """It ended by itself, with a code, and says what is wrong where something is."""
    assert said.code in (0, 1, 2, 130), said
    assert "Traceback" not in said.out + said.err, said
    if said.code != 2:
        return
    lines = said.err.rstrip("\n").splitlines()
    assert lines, said
    found = re.search(r"\[([a-z-]+)\]$", lines[-1])
    assert found is not None and found.group(1) in CODES, said


@settings(QUIET, max_examples=250)
@given(said=words())
def test_any_words(said: list[str], shell: Shell) -> None:
    is_in_order(shell.run(said))
    assert shell.strayed == []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "call",
    [
        ["status", "--registry", "PATH"],
        ["show", "loud", "--registry", "PATH"],
        ["scan", "PATH"],
        ["scan", "folder", "--registry-out", "PATH"],
        ["doctor", "--report", "PATH"],
        ["drift", "--against", "PATH", "--package", "madeup", "--offline"],
        ["drift", "--watch", "PATH", "--offline"],
        ["diff", "loud", "--to", "PATH"],
        ["lock", "PATH", "--offline"],
        ["report", "--html", "PATH", "--package", "madeup", "--offline"],
        ["bisect", "loud", "--repo", "PATH", "--good", "a"],
        ["audit", "madeup", "--python", "PATH"],
        ["run", "--registry", "PATH", "--", "true"],
    ],
    ids=lambda call: "-".join(call[:3]),
)
def test_any_path(call: list[str], path: str, shell: Shell) -> None:
    is_in_order(shell.run([path if word == "PATH" else word for word in call]))
    assert shell.strayed == []


@pytest.mark.parametrize("variable", ["", "_DEVICE", "_ONLY", "_ASSUME", "_REGISTRY"])
@pytest.mark.parametrize("value", [*ODD, *PATHS])
def test_any_variable(
    variable: str, value: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"ASCEND_SHIMS{variable}", value)
    for call in (["status"], ["doctor", "--json"], ["drift", "--offline"]):
        is_in_order(shell.run(call))


# Registries


Node = Any
TEXT = packaged().read_text("utf-8")
TREE = yaml.load(TEXT, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
PLACES = [
    (),
    *((key,) for key in TREE),
    *(("gaps", n) for n in range(len(TREE["gaps"]))),
    *(("gaps", n, key) for n, gap in enumerate(TREE["gaps"]) for key in gap),
    *(
        ("gaps", n, "patches", m, *rest)
        for n, gap in enumerate(TREE["gaps"])
        for m, patch in enumerate(gap.get("patches", ()))
        for rest in [(), *((key,) for key in patch)]
    ),
]
INSTEAD: tuple[Node, ...] = (
    None,
    "",
    0,
    -1,
    1.5,
    float("nan"),
    True,
    [],
    {},
    [[]],
    {"": ""},
    {1: 2},
    "x" * 10_000,
    "madeup:",
    ":",
    "a.b:c",
    "\x7f",
    "2026-01-01",
    ["a"] * 100,
)


def at(tree: Node, place: tuple[Any, ...]) -> Node:
    for key in place:
        tree = tree[key]
    return tree


@st.composite
def trees(draw: st.DrawFn) -> Node:
    """The registry with some of its nodes dropped, doubled, or something else."""
    tree = copy.deepcopy(TREE)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(PLACES[1:]))
        how = draw(st.sampled_from(["drop", "double", "instead", "deepen", "swap"]))
        try:
            above, key = at(tree, place[:-1]), place[-1]
            if how == "drop":
                del above[key]
            elif how == "double" and isinstance(above, list):
                above.insert(key, copy.deepcopy(above[key]))
            elif how == "deepen":
                for _ in range(draw(st.sampled_from([1, 3, 60]))):
                    above[key] = [above[key]]
            elif how == "swap":
                above[key] = copy.deepcopy(at(TREE, draw(st.sampled_from(PLACES))))
            else:
                above[key] = draw(st.sampled_from(INSTEAD))
        except (KeyError, IndexError, TypeError):
            # An earlier change took it away.
            continue
    return tree


@st.composite
def torn(draw: st.DrawFn) -> bytes:
    """The registry's bytes with some of them flipped, cut out or put in."""
    data = bytearray(TEXT.encode())
    for _ in range(draw(st.integers(1, 6))):
        where = draw(st.integers(0, len(data) - 1))
        some = draw(st.binary(max_size=3))
        data[where : where + draw(st.sampled_from([0, 1, 40]))] = some
    return bytes(data)


LOOKS = (
    ["status", "--all"],
    ["show", "kv-cache"],
    ["lock", "--check", "--offline"],
    ["drift", "--offline", "--against", "folder", "--package", "vllm"],
    ["doctor"],
    ["diff", "kv-cache", "--to", "folder", "--package", "vllm", "--offline"],
)


@settings(QUIET, max_examples=60)
@given(
    data=st.one_of(trees().map(lambda t: yaml.safe_dump(t).encode()), torn()),
    n=st.integers(0, 5),
)
def test_any_registry(data: bytes, n: int, shell: Shell) -> None:
    file = shell.folder / "fuzzed.yaml"
    file.write_bytes(data)
    look = LOOKS[n]
    if look[0] == "doctor":
        os.environ["ASCEND_SHIMS_REGISTRY"] = str(file)
        is_in_order(shell.run(look))
        return
    is_in_order(shell.run([*look, "--registry", str(file)]))
    assert shell.strayed == []
