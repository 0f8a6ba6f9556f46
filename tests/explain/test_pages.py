"""Every code has one page, and what the pages say to type can be typed."""

from __future__ import annotations

import ast
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args

import click
import pytest
from click.testing import CliRunner

import ascend_shims
from ascend_shims.cli.app import shims
from ascend_shims.errors import CANNOT_GO_ON, USAGE, code_of
from ascend_shims.explain import GROUPS, Page, all_pages, as_markdown
from ascend_shims.registry import Registry, load
from ascend_shims.states import State
from ascend_shims.upstream.sources.errors import NoSuchRelease
from ascend_shims.upstream.verdict import Breakage, VerdictKind

ROOT = Path(__file__).parents[2]
HOME = Path(ascend_shims.__file__).parent
PAGES = [page for group in all_pages() for page in group.pages]

NEVER_RAISED = {"ShimsError", "SimNPUError", "SourceUnavailable"}
"""Only what others are beneath."""

INSIDE = {
    # Each is caught by who asked, and becomes something else that is shown.
    "SourceError": "unreadable",
    "MissingObject": "unreadable",
    "UnreadableSourceError": "unreadable",
    "NotWrappableError": "broken-contract",
    "ImmutableOwnerError": "broken-contract",
}


@cache
def _classes() -> dict[str, tuple[str, ...]]:
    """Names of all classes of the toolkit, with those of their bases."""
    found = {}
    for file in sorted(HOME.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = (ast.unparse(base).rpartition(".")[2] for base in node.bases)
                found[node.name] = tuple(bases)
    return found


def _errors() -> set[str]:
    """Names of the exceptions beneath `ShimsError`."""
    classes, known = _classes(), {"ShimsError"}
    while more := {n for n, b in classes.items() if known & {*b}} - known:
        known |= more
    return known


def _findings() -> set[str]:
    """Codes of `shims doctor`, from its own page, which is tested against it."""
    page = (ROOT / "docs" / "doctor.md").read_text("utf-8")
    rows = page.partition("## Findings\n")[2].partition("\n## ")[0].splitlines()
    codes = (re.findall(r"`([^`]+)`", row.split("|")[1]) for row in rows if "|" in row)
    return {code for row in codes for code in row}


def _expected() -> dict[str, set[str]]:
    raised = _errors() - NEVER_RAISED - INSIDE.keys()
    return {
        "states": {str(state) for state in State},
        "verdicts": set(get_args(VerdictKind)),
        "breakages": set(get_args(Breakage)),
        "errors": {code_of(name) for name in raised} | {CANNOT_GO_ON, USAGE},
        "doctor": _findings(),
    }


HOMES = {"errors": {"errors", "engine", "rig"}}
"""Groups whose codes are on several files."""


def test_every_code_has_one_page_and_every_page_a_code() -> None:
    expected = _expected()
    assert {name: len(codes) > 5 for name, codes in expected.items()} == dict.fromkeys(
        expected, True
    )
    counted = Counter(page.code for page in PAGES)
    assert [code for code, count in counted.items() if count > 1] == []
    assert set(counted) == set().union(*expected.values())


@pytest.mark.parametrize("name", ["states", "verdicts", "breakages", "doctor"])
def test_a_group_has_codes_of_its_own_kind(name: str) -> None:
    expected = _expected()
    there = {page.code for page in PAGES if page.group == name}
    assert there <= expected[name]
    # What is two things has its page with the one that is met more often.
    shared = (
        {"switch", "registry", "guard-configuration"} if name == "doctor" else set()
    )
    assert expected[name] - there == shared


def test_errors_are_in_their_groups() -> None:
    there = {page.code for page in PAGES if page.group in HOMES["errors"]}
    missing = _expected()["errors"] - there
    assert missing == {"missing-target", "broken-contract", "conflict"}
    assert missing <= {str(state) for state in State}


def test_what_is_left_out_is_as_said() -> None:
    errors = _errors()
    assert errors > NEVER_RAISED | INSIDE.keys()
    text = "\n".join(file.read_text("utf-8") for file in HOME.rglob("*.py"))
    for name in NEVER_RAISED:
        assert re.search(rf"(?:raise|return) {name}\(", text) is None, name
    assert set(INSIDE.values()) <= {page.code for page in PAGES}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("NoSuchRelease", "no-such-release"),
        ("SwitchError", "switch"),
        ("NotAPageError", "not-a-page"),
        ("NoNpuError", "no-npu"),
        ("NotAnEngineError", "not-an-engine"),
        ("SimNPUError", "sim-npu"),
        ("GuardStopped", "guard-stopped"),
        ("Error", "error"),
    ],
)
def test_codes_are_made_of_names(name: str, code: str) -> None:
    assert code_of(name) == code


def test_an_exception_has_the_code_of_its_class() -> None:
    assert code_of(NoSuchRelease("none")) == "no-such-release"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.code)
def test_a_page_reads_well(page: Page) -> None:
    assert page.first_sentence.endswith(".")
    for text in (page.meaning, page.how, page.do):
        first = text.split()[0]
        assert (
            first[0].isupper() or first[0] in "`/" or first.strip(",") in OWN_NAMES
        ), text
        assert text.endswith("."), text
        assert text.count("`") % 2 == 0
    assert max(map(len, page.example.splitlines())) <= 80


OWN_NAMES = {"ascend-shims", "torch", "torch_npu", "vLLM", "vLLM's"}
"""What begins a sentence as it is written."""


# What is typed -----------------------------------------------------------------------


def _typed(page: Page) -> Iterator[str]:
    """Calls of `shims` in a page, without what is around them."""
    for text in (page.meaning, page.how, page.do):
        yield from re.findall(r"`[^`]*?\b(shims [^`]*)`", text)
    for line in page.example.splitlines():
        if line.startswith("$ ") and " shims " in line:
            yield line[line.index("shims ") :]


CALLS = sorted({call for page in PAGES for call in _typed(page)})


def _options(command: click.Command) -> set[str]:
    return {name for one in command.params for name in one.opts}


def test_pages_tell_what_to_type() -> None:
    assert len(CALLS) > 50
    named = {call.split()[1] for call in CALLS if len(call.split()) > 1}
    assert named >= {"status", "show", "drift", "diff", "lock", "doctor", "explain"}


@pytest.mark.parametrize("call", CALLS)
def test_commands_and_options_exist(call: str) -> None:
    context = click.Context(shims)
    _, name, *words = shlex.split(call.partition(" > ")[0])
    command = shims.get_command(context, name)
    assert command is not None, call
    if "--" in words:
        words = words[: words.index("--")]
    given = {word.partition("=")[0] for word in words if word.startswith("-")}
    assert given <= _options(command), call


def test_gaps_and_codes_that_pages_name_exist() -> None:
    codes = {page.code for page in PAGES}
    gaps = {gap.id for gap in _registry().gaps} | {"loud", "polite", "GAP"}
    named = Counter(call.split()[1] for call in CALLS if len(call.split()) > 2)
    assert named["show"] > 5
    for call in CALLS:
        _, name, *words = call.split()
        if name == "explain":
            assert set(words) <= codes, call
        # Without words it is only spoken of.
        if name in ("show", "diff") and words:
            assert words[0] in gaps, call


def _registry() -> Registry:
    return load()


@pytest.mark.parametrize("name", shims.list_commands(click.Context(shims)))
def test_every_command_has_help(name: str) -> None:
    done = CliRunner().invoke(shims, [name, "--help"])
    assert done.exit_code == 0
    assert done.stdout.startswith(f"Usage: shims {name} ")


# The document ------------------------------------------------------------------------


def test_the_document_is_up_to_date() -> None:
    assert (ROOT / "docs" / "codes.md").read_text("utf-8") == as_markdown(), (
        "write it anew: python -m ascend_shims.explain > docs/codes.md"
    )


def test_links_of_the_document_lead_to_headings() -> None:
    text = as_markdown()
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line[3:].lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("## ")
    }
    links = re.findall(r"\]\(#([^)]+)\)", text)
    assert len(links) == len(GROUPS)
    assert set(links) == headings
