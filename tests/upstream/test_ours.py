"""Our side of a patch: its parameters decide, and its body is what is to be ported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.registry import load
from ascend_shims.upstream.check import Finding, check
from ascend_shims.upstream.ours import Replacements
from ascend_shims.upstream.threeway import hunks
from ascend_shims.upstream.tree import Tree
from ascend_shims.upstream.watched import Watched, from_registry

from .conftest import Texts

PATCHES = '''
"""Importing this is a mistake that a test would notice."""
raise RuntimeError("a drift check imported a patches module")
import torch

def short(a): return a
def long(a, tone=None): return a
def renamed(word): return word
def anything(*args, **kwargs): return args
def typed(a: "Any", tone: "Any" = None): return a
def wrapping(call, a): return call(a)
def method(self, a): return a
def wrapped_method(call, runner, a): return call(a)
def wrapped_rest(call, *args): return call(*args)
@torch.inference_mode()
def decorated(a): return a
alias = short
alias_of_alias = alias
from elsewhere import imported
made = torch.compile(short)

class Swapped:
    def __init__(self, size): ...

class Bare: ...
'''

OLD = """
def f(a): return a
def g(): return f(1)
class C:
    def __init__(self, size): ...
    def m(self, a): return a
    def n(self): return self.m(1)
    @staticmethod
    def s(a): return a
def h(): return C.s(1), C(1)
"""
GROWN = (
    OLD.replace("f(a)", "f(a, tone=None)")
    .replace("f(1)", "f(1, tone=2)")
    .replace("m(self, a)", "m(self, a, tone=None)")
    .replace("self.m(1)", "self.m(1, tone=2)")
    .replace("s(a)", "s(a, tone=None)")
    .replace("C.s(1)", "C.s(1, tone=2)")
    .replace("__init__(self, size)", "__init__(self, size, tone=None)")
    .replace("C(1)", "C(1, tone=2)")
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A patches package with one module `one`."""
    name = f"ours_{abs(hash(tmp_path))}"
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").touch()
    (tmp_path / name / "one.py").write_text(PATCHES)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


Watch = Callable[..., list[Watched]]


@pytest.fixture
def watch(tmp_path: Path, package: str) -> Watch:
    def make(patch: str) -> list[Watched]:
        path = tmp_path / "registry.yaml"
        path.write_text(
            f"schema: 1\nupstreams: [up]\npackage: {package}\ngaps:\n"
            "- {id: one, title: T, status: open, kind: workaround, why: W, "
            f"remove_when: R, patches: [{{{patch}}}]}}\n"
        )
        return from_registry(load(path), path)

    return make


def judged(watched: list[Watched], old: str, new: str) -> list[Finding]:
    trees = (
        Tree(Texts({"up/m.py": text}, label))
        for text, label in ((old, "up 1"), (new, "up 2"))
    )
    return list(check(watched, *trees))


CASES = [
    ("up.m:f", "replace", "short", "broken"),
    ("up.m:f", "replace", "long", "compatible"),
    ("up.m:f", "replace", "typed", "compatible"),
    ("up.m:f", "replace", "renamed", "broken"),
    ("up.m:f", "replace", "anything", "compatible"),
    ("up.m:f", "replace", "decorated", "broken"),
    ("up.m:f", "replace", "alias_of_alias", "broken"),
    # What cannot be told has the baseline's parameters.
    ("up.m:f", "replace", "imported", "broken"),
    ("up.m:f", "replace", "made", "broken"),
    ("up.m:f", "wrap", "wrapping", "broken"),
    ("up.m:f", "wrap", "wrapped_rest", "broken"),
    ("up.m:f", "wrap", "anything", "compatible"),
    # What it returns, and takes, is known at run time only.
    ("up.m:f", "decorate", "short", "compatible"),
    ("up.m:C.m", "replace", "method", "broken"),
    ("up.m:C.m", "wrap", "wrapped_method", "broken"),
    ("up.m:C.m", "wrap", "anything", "compatible"),
    ("up.m:C.s", "replace", "short", "broken"),
    ("up.m:C.s", "replace", "long", "compatible"),
]


@pytest.mark.parametrize(("target", "kind", "replacement", "verdict"), CASES)
def test_the_real_parameters_are_judged(
    target: str, kind: str, replacement: str, verdict: str, watch: Watch
) -> None:
    watched = watch(f'target: "{target}", kind: {kind}, replacement: {replacement}')
    (same,) = judged(watched, OLD, OLD)
    assert same.verdict.kind == "identical", same.verdict
    (grown,) = judged(watched, OLD, GROWN)
    assert grown.verdict.kind == verdict, grown.verdict


@pytest.mark.parametrize(("replacement", "ok"), [("Swapped", False), ("Bare", False)])
def test_a_swapped_class_is_constructed_by_upstream(
    replacement: str, ok: bool, watch: Watch
) -> None:
    watched = watch(
        f'target: "up.m:C", kind: replace, replacement: {replacement}, swap_is_safe: S'
    )
    (same,) = judged(watched, OLD, OLD)
    (grown,) = judged(watched, OLD, GROWN)
    assert same.verdict.kind == "identical"
    assert (grown.verdict.kind == "compatible") is ok
    assert grown.watched.ours is not None


def test_a_moved_target_is_judged_by_ours_too(watch: Watch) -> None:
    watched = watch('target: ["up.new:f", "up.m:f"], kind: replace, replacement: short')
    old = Tree(Texts({"up/m.py": OLD}, "up 1"))
    for new, kind in ((OLD, "compatible"), (GROWN, "broken")):
        tree = Tree(Texts({"up/new.py": new, "up/m.py": ""}, "up 2"))
        (found,) = check(watched, old, tree)
        assert found.verdict.kind == kind, found.verdict
        if kind == "compatible":
            assert str(found.verdict.old) == "up/m.py:2"
            assert str(found.verdict.new) == "up/new.py:2"


COPY = (
    'target: "up.m:f", kind: wrap, replacement: anything, '
    'relies_on: [{symbol: "up.m:C.m", how: calls, copy: method}]'
)


@pytest.mark.parametrize(
    ("new", "kind"),
    [
        (OLD.replace("m(self, a): return a", "m(self, a): return a + 1"), "review"),
        (
            OLD.replace("m(self, a): return a", "m(self, a):\n        return a"),
            "cosmetic",
        ),
        (OLD, "identical"),
    ],
)
def test_a_declared_copy_is_reviewed_when_its_model_changes(
    new: str, kind: str, watch: Watch
) -> None:
    _, copied = judged(watch(COPY), OLD, new)
    assert copied.verdict.kind == kind
    without = judged(watch(COPY.replace(", copy: method", "")), OLD, new)[1]
    assert without.verdict.kind != "review"


CALLED = """
raise RuntimeError("imported")
def ours(call, *args):
    from up.m import C
    return C(1, tone=2), {extra}
"""


@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        ("None", "compatible"),
        ("C(size=1)", "compatible"),
        # What we do pass, or may.
        ("C(1, volume=3)", "broken"),
        ("C(*args)", "broken"),
    ],
)
def test_our_own_calls_decide_what_is_passed(
    extra: str, kind: str, watch: Watch, tmp_path: Path, package: str
) -> None:
    (tmp_path / package / "one.py").write_text(CALLED.replace("{extra}", extra))
    watched = watch(
        'target: "up.m:f", kind: wrap, replacement: ours, '
        'relies_on: [{symbol: "up.m:C", how: calls}]'
    )
    before = OLD.replace(
        "__init__(self, size)", "__init__(self, size, tone=1, volume=1)"
    )
    after = before.replace(", volume=1", "")
    called = judged(watched, before, after)[1]
    assert called.verdict.kind == kind, called.verdict


@pytest.mark.parametrize(
    ("version", "count"),
    [("0.27.1", 0), ("0.29.0rc1", 0), ("0.29.0", 1), ("0.34.0", 1), (None, 1)],
)
def test_a_release_older_than_the_claim_is_not_checked(
    version: str | None, count: int, watch: Watch
) -> None:
    patch = 'target: "up.m:f", kind: wrap, replacement: anything'
    (one,) = watch(patch)
    claimed = replace(one, claims={"up": ">=0.29,<0.34", "other": ">=9"})
    assert claimed.is_for(version) == bool(count)
    assert one.is_for(version)


def test_ours_is_read_and_not_imported(package: str) -> None:
    ours = Replacements(package, "one")
    found = ours.named("decorated")
    assert found is not None
    assert found.text == "@torch.inference_mode()\ndef decorated(a): return a"
    assert found.path.endswith("/one.py")
    assert PATCHES.splitlines()[found.line - 1] == "@torch.inference_mode()"
    assert str(found.signature) == "(a)"
    assert ours.named("imported") is None
    assert ours.named("made") is None
    assert ours.named("nothing") is None
    assert Replacements(package, "nowhere").named("short") is None
    assert Replacements("no.such.package", "one").named("short") is None
    swapped = ours.named("Swapped")
    assert swapped is not None
    assert str(swapped.signature) == "(size)"


def test_what_a_verdict_depends_on_is_in_the_key(watch: Watch, tmp_path: Path) -> None:
    patch = 'target: "up.m:f", kind: replace, replacement: {}'
    keys = [watch(patch.format(name))[0].key for name in ("short", "long", "renamed")]
    assert len(set(keys)) == 3
    assert watch(patch.format("short"))[0].key == keys[0]


# What is to be ported ---------------------------------------------------------------

BODY = """def f(a):
    first(a)
    second(a)
    third(a)
    return a
"""
OURS = BODY.replace("def f", "def ours")

PORTS = [
    (
        "a line more",
        "    second(a)\n",
        "    second(a)\n    extra(a)\n",
        OURS,
        "to-port",
    ),
    ("a line less", "    second(a)\n", "", OURS, "to-port"),
    ("a line changed", "second(a)", "second(a, 1)", OURS, "to-port"),
    (
        "ported already",
        "second(a)",
        "second(a, 1)",
        OURS.replace("second(a)", "second(a, 1)"),
        "ported",
    ),
    (
        "ours differs there",
        "second(a)",
        "second(a, 1)",
        OURS.replace("second(a)", "npu_second(a)"),
        "by-hand",
    ),
    (
        "ours differs elsewhere",
        "second(a)",
        "second(a, 1)",
        OURS.replace("return a", "return npu(a)"),
        "to-port",
    ),
    ("the header", "def f(a):", "def f(a, b=1):", OURS, "to-port"),
    (
        "the header under our name",
        "def f(a):",
        "def f(a, b=1):",
        OURS.replace("(a):", "(a, b=1):", 1),
        "ported",
    ),
    (
        "indentation does not count",
        "second(a)",
        "second(a, 1)",
        OURS.replace("    ", "        "),
        "to-port",
    ),
]


@pytest.mark.parametrize(
    ("before", "after", "ours", "standing"),
    [row[1:] for row in PORTS],
    ids=[row[0] for row in PORTS],
)
def test_each_change_stands_somewhere(
    before: str, after: str, ours: str, standing: str
) -> None:
    assert before in BODY
    new = BODY.replace(before, after, 1)
    (hunk,) = hunks(BODY, new, ours, name="f", our_name="ours")
    assert hunk.standing == standing
    assert tuple(ours.splitlines()[hunk.line : hunk.line + len(hunk.ours)]) == hunk.ours
    assert hunk.ours


def test_by_hand_shows_our_lines_at_that_place() -> None:
    ours = OURS.replace("second(a)", "npu_second(a)")
    new = BODY.replace("second(a)", "second(a, 1)")
    (hunk,) = hunks(BODY, new, ours, name="f", our_name="ours")
    assert hunk.ours == ("    npu_second(a)",)


lines = st.lists(st.sampled_from("abcde"), max_size=12).map("\n".join)


@given(old=lines, new=lines, ours=lines)
def test_hunks_are_the_whole_change(old: str, new: str, ours: str) -> None:
    found = hunks(old, new, ours, name="f", our_name="g")
    removed = sum(len(one.old) for one in found)
    added = sum(len(one.new) for one in found)
    count = len(old.splitlines()), len(new.splitlines())
    assert count[0] - removed == count[1] - added
    assert bool(found) == (old.splitlines() != new.splitlines())
    mine = ours.splitlines()
    for one in found:
        assert tuple(mine[one.line : one.line + len(one.ours)]) == one.ours


bodies = st.lists(st.sampled_from("abcde"), min_size=1, max_size=12).map("\n".join)


@given(old=bodies, new=bodies)
def test_a_faithful_copy_has_everything_to_port_and_a_port_nothing(
    old: str, new: str
) -> None:
    """Where a change leaves the same lines around it, either may be seen first."""
    for hunk in hunks(old, new, new, name="f", our_name="g"):
        assert hunk.standing == "ported"
    for hunk in hunks(old, new, old, name="f", our_name="g"):
        assert hunk.standing in ("to-port", "ported")
