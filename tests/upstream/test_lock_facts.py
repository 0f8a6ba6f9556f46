"""A lock's facts alone: verdicts without the baseline's text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.upstream.compare import judge
from ascend_shims.upstream.contract import How, Reliance
from ascend_shims.upstream.corpus import Corpus
from ascend_shims.upstream.facts.recording import spelled
from ascend_shims.upstream.facts.signature import Parameter, Signature, signature_of
from ascend_shims.upstream.facts.symbol import find
from ascend_shims.upstream.lock import Baseline, make_baseline
from ascend_shims.upstream.stubs import StubSource
from ascend_shims.upstream.texts import Texts
from ascend_shims.upstream.tree import Tree
from ascend_shims.upstream.watched import Watched

from . import test_drift_kinds, test_verdicts
from .conftest import Texts as Strings

Files = str | Mapping[str, str]

ROWS = [
    (
        row.about,
        row.old,
        row.new,
        row.symbol,
        row.how,
        getattr(row, "by_keyword", False),
    )
    for row in (*test_verdicts.TABLE, *test_drift_kinds.TABLE)
]

COARSER = {
    # A body is a hash: what was kept of it, and whom it became, cannot be told.
    "only extended": ("review", "body-changed", None),
    "renamed in the module": ("broken", "removed", None),
    "renamed method": ("broken", "removed", None),
    "class moved and renamed, the old name survives as its base": (
        "broken",
        "removed",
        None,
    ),
    "class binding, two merged into one in the same module": (
        "broken",
        "removed",
        None,
    ),
    "a function became a method": ("broken", "removed", None),
    "a module moved with its package": ("broken", "removed", None),
    # Nor how upstream's own calls were written then.
    "inserted among options that upstream passes by keyword": (
        "broken",
        "parameters-reordered",
        None,
    ),
    "another name of what upstream passes by keyword": (
        "review",
        "parameter-renamed",
        None,
    ),
    "an unknown receiver passes it": ("compatible", None, None),
    "an inherited method begins to read what only the constructor sets": (
        "identical",
        None,
        None,
    ),
}
"""Where facts alone say less than the text, and what they say."""


def lock_of(files: Files, *reliances: Reliance) -> Baseline:
    watched = [
        Watched(
            "gap", one.how, (one.symbol,), 1, "registry.yaml", by_keyword=one.by_keyword
        )
        for one in reliances
    ]
    return make_baseline(watched, Strings(files, "up 1.0"))


def stub_of(baseline: Baseline) -> Tree:
    modules = tuple(baseline.modules)
    return Tree(StubSource("up 1.0", "1.0", modules, baseline.symbols))


@pytest.mark.parametrize(
    ("about", "old", "new", "symbol", "how", "by_keyword"),
    ROWS,
    ids=[f"{row[4]}: {row[0]}" for row in ROWS],
)
def test_facts_alone_say_what_the_text_says(
    about: str, old: Files, new: Files, symbol: str, how: How, by_keyword: bool
) -> None:
    reliance = Reliance(symbol, how, by_keyword)
    tree = stub_of(lock_of(old, reliance))
    release = Tree(Strings(new, "up 2.0"))
    known = judge(reliance, Tree(Strings(old, "up 1.0")), release)
    told = judge(reliance, tree, release)
    expected = (known.kind, known.breakage, known.moved_to)
    assert (told.kind, told.breakage, told.moved_to) == COARSER.get(about, expected)
    assert COARSER.get(about) != expected
    assert tree.problems == ()


def test_every_exception_is_a_row() -> None:
    assert COARSER.keys() <= {row[0] for row in ROWS}


# Facts that do not come from the text ---------------------------------------------


OLD = """
import torch
from up.base import Base

class Step(Base):
    @torch.inference_mode()
    def run(self, tokens: "list[int]", *, scale=1) -> "tuple[int, int]":
        return tokens[0], scale

    @property
    def size(self) -> int:
        return 1

    @staticmethod
    def make(kind, /):
        return Step()

LIMIT: int = 3
"""
BASE = """
class Base:
    def __init__(self, name):
        self.name = name

    async def wait(self): ...
"""
FILES = {"up/m.py": OLD, "up/base.py": BASE}


@pytest.mark.parametrize(
    ("symbol", "kind", "place", "signature"),
    [
        ("up.m:Step", "class", "up.m:Step", "(name)"),
        (
            "up.m:Step.run",
            "function",
            "up.m:Step.run",
            "(tokens: list[int], *, scale=1)",
        ),
        ("up.m:Step.make", "static", "up.m:Step.make", "(kind, /)"),
        ("up.m:Step.wait", "async", "up.base:Base.wait", "()"),
        ("up.m:Step.size", "property", "up.m:Step.size", "()"),
        ("up.m:Base", "class", "up.base:Base", "(name)"),
        ("up.m:Step.name", "set", "up.base:Base.name", None),
        ("up.m:LIMIT", "value", "up.m:LIMIT", None),
        ("up.m:torch", "external", "torch", None),
    ],
)
def test_a_symbol_of_facts_is_the_symbol_of_the_text(
    symbol: str, kind: str, place: str, signature: str | None
) -> None:
    stub = find(stub_of(lock_of(FILES, Reliance(symbol, "reads_attribute"))), symbol)
    text = find(Tree(Strings(FILES, "up 1.0")), symbol)
    assert stub is not None
    assert text is not None
    for one in (stub, text):
        assert (one.kind, one.place) == (kind, place)
        if signature is not None:
            assert spelled(one.signature) == signature
    for name in ("body", "quiet_body", "returns", "decorators", "return_annotation"):
        assert getattr(stub, name) == getattr(text, name), name


def test_a_changed_fact_changes_the_verdict() -> None:
    reliance = Reliance("up.m:f", "replaces_function")
    files = "def f(a, b=1): return a\ndef g(): return f(1, b=2)\n"
    locked = lock_of(files, reliance)
    assert (
        judge(reliance, stub_of(locked), Tree(Strings(files, "up"))).kind == "identical"
    )
    record = locked.symbols["up.m:f"]
    assert record.signature == "(a, b=1)"
    edited = type(record)(kind="function", defined="up.m:f", signature="(a)")
    stub = Tree(StubSource("up 1.0", "1.0", ("up.m",), {"up.m:f": edited}))
    verdict = judge(reliance, stub, Tree(Strings(files, "up")))
    assert (verdict.kind, verdict.breakage) == ("broken", "optional-parameter-passed")


def test_a_lock_knows_its_own_text_again() -> None:
    locked = lock_of(FILES, Reliance("up.m:Step.wait", "overrides_method"))
    assert set(locked.modules) == {"up", "up.base", "up.m"}
    assert locked.holds(Texts(Strings(FILES, "elsewhere")))
    other = {**FILES, "up/base.py": BASE + "\n# a comment\n"}
    assert not locked.holds(Texts(Strings(other, "elsewhere")))
    assert not locked.holds(Texts(Strings({"up/m.py": OLD}, "elsewhere")))


NAMES = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=6)
KINDS = (
    "positional_only",
    "positional_or_keyword",
    "var_positional",
    "keyword_only",
    "var_keyword",
)


@st.composite
def signatures(draw: Callable[..., object]) -> Signature:
    names = draw(NAMES)
    assert isinstance(names, list)
    kinds = sorted((draw(st.sampled_from(KINDS)) for _ in names), key=KINDS.index)  # type: ignore[arg-type,var-annotated]
    made, defaulted, seen = [], False, set()
    for name, kind in zip(names, kinds, strict=True):
        variadic = kind.startswith("var_")
        if variadic and kind in seen:
            continue
        seen.add(kind)
        default = draw(st.sampled_from([None, "1", "'x'", "(1, 2)"]))
        if variadic:
            default = None
        elif kind != "keyword_only":
            default = default or ("0" if defaulted else None)
            defaulted = default is not None
        said = draw(st.sampled_from([None, "int", "int | None", "dict[str, int]"]))
        made.append(Parameter(name, kind, default, said))  # type: ignore[arg-type]
    return Signature(tuple(made))


@given(signatures())
def test_spelled_parameters_read_back_as_the_same(signature: Signature) -> None:
    (node,) = ast.parse(f"def f{spelled(signature)}: ...").body
    assert isinstance(node, ast.FunctionDef)
    assert signature_of(node) == signature


@pytest.mark.parametrize("how", ["replaces_function", "replaces_class_binding"])
def test_a_module_is_known_by_the_name_of_its_file(how: How) -> None:
    """Somebody puts another module in its place."""
    files = {
        "up/__init__.py": "",
        "up/core.py": "def answer(): ...\n",
        "up/user.py": "from up import core\n\ndef go(): return core.answer()\n",
        "up/other.py": "def go(): ...\n",
    }
    locked = lock_of(files, Reliance("up:core", how))
    record = locked.symbols["up:core"]
    assert (record.kind, record.defined) == ("module", "up.core")
    assert record.callers == ("up.user",)


def test_no_word_is_in_no_text() -> None:
    corpus = Corpus([("one", b"some words"), ("two", b"")])
    assert list(corpus.holding(b"")) == []
    assert list(corpus.holding(b"words")) == ["one"]
