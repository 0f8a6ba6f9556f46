"""The commit at which a verdict changes, in repositories of any shape."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ascend_shims.upstream.bisection import Bisected, BisectError, bisect
from ascend_shims.upstream.check import check
from ascend_shims.upstream.evaluation import Evaluator
from ascend_shims.upstream.history import History
from ascend_shims.upstream.sources.errors import BadSource
from ascend_shims.upstream.sources.progress import Silent
from ascend_shims.upstream.sources.revisions import revision_source
from ascend_shims.upstream.sources.snapshots import Store
from ascend_shims.upstream.traces import NEW, OLD
from ascend_shims.upstream.tree import Tree
from ascend_shims.upstream.watched import Watched

from .repositories import Made, commit_all, git, import_history

BODY = b"""def answer(word, tone=None):
    parts = [word.strip(), tone or 'flat']
    return ' '.join(parts)
"""
INIT = {"pkg/__init__.py": b"", "pkg/noise/__init__.py": b""}
USER = b"from pkg.core import answer\n\n\ndef ask():\n    return answer('tea')\n"
OK = {**INIT, "pkg/core.py": BODY, "pkg/user.py": USER}
LOUDER = BODY.replace(b"tone=None", b"tone=None, volume=0")
LOUD_USER = USER.replace(b"'tea'", b"'tea', volume=3")
VARIANTS: dict[str, tuple[str, dict[str, bytes]]] = {
    "ok": ("identical", OK),
    "comment": (
        "cosmetic",
        {**OK, "pkg/core.py": BODY.replace(b"    parts", b"    # Kindly.\n    parts")},
    ),
    "removed": ("broken", {**INIT, "pkg/user.py": b"", "pkg/core.py": b""}),
    "renamed": (
        "broken",
        {
            **INIT,
            "pkg/core.py": BODY.replace(b"answer", b"reply"),
            "pkg/user.py": USER.replace(b"answer", b"reply"),
        },
    ),
    "moved": (
        "broken",
        {
            **INIT,
            "pkg/voice.py": BODY,
            "pkg/user.py": USER.replace(b"core", b"voice"),
        },
    ),
    "moved with a re-export": (
        "compatible",
        {**OK, "pkg/core.py": b"from pkg.voice import answer\n", "pkg/voice.py": BODY},
    ),
    "takes more": ("compatible", {**OK, "pkg/core.py": LOUDER}),
    "passes more": ("broken", {**OK, "pkg/core.py": LOUDER, "pkg/user.py": LOUD_USER}),
}
"""Names to the verdict on `WATCHED`, which has the parameters of `BODY`, and files."""

WATCHED = Watched("loud", "replaces_function", ("pkg.core:answer",), 1, "f")


def run(
    clone: Path, good: str, bad: str, *watched: Watched, **options: Any
) -> Bisected:
    entries = watched or (WATCHED,)
    options = {"package": "pkg", "progress": Silent(), **options}
    return bisect(entries, clone, good, bad, **options)


def standing(result: Bisected) -> list[str]:
    (answer,) = result.answers
    return [step.commit.oid for step in answer.standing]


def line(*variants: str) -> list[Made]:
    """Commits one after the other."""
    return [
        Made((number - 1,) if number else (), VARIANTS[name][1], f"{number} {name}")
        for number, name in enumerate(variants)
    ]


# One thing after the other ---------------------------------------------------------


@pytest.mark.parametrize("variant", list(VARIANTS))
def test_the_commit_of_each_kind_of_change(tmp_path: Path, variant: str) -> None:
    kind = VARIANTS[variant][0]
    commits = import_history(tmp_path, line("ok", "ok", variant, variant))
    result = run(tmp_path, commits[0], "main")
    if kind == "identical":
        assert (result.answers, result.unchanged) == ((), 1)
        return
    assert standing(result) == [commits[2]]
    (answer,) = result.answers
    assert (answer.good.kind, answer.bad.kind) == ("identical", kind)
    (step,) = answer.steps
    assert (step.before, step.after.kind) == (("identical",), kind)
    assert step.commit.subject == f"2 {variant}"
    assert step.commit.author == "A U Thor <author@example.invalid>"
    assert step.merged_by is None
    assert result.commits == 4


def test_of_several_changes_the_last_one_stands(tmp_path: Path) -> None:
    history = line("ok", "removed", "ok", "comment", "ok", "renamed", "moved", "moved")
    commits = import_history(tmp_path, history)
    result = run(tmp_path, commits[0], "main")
    assert standing(result) == [commits[5]]
    (answer,) = result.answers
    others = [(s.commit.oid, s.before, s.after.kind) for s in answer.steps[1:]]
    assert others == [
        (commits[1], ("identical",), "broken"),
        (commits[2], ("broken",), "identical"),
        (commits[3], ("identical",), "cosmetic"),
        (commits[4], ("cosmetic",), "identical"),
    ]
    assert answer.bad.breakage == "moved"


def test_what_broke_and_was_mended_again(tmp_path: Path) -> None:
    commits = import_history(tmp_path, line("ok", "removed", "ok", "ok"))
    result = run(tmp_path, commits[0], "main")
    assert result.answers == ()
    (note,) = result.notes
    assert "1 changed in between and back again, up to broken" in note
    result = run(tmp_path, commits[0], "main", wanted="broken")
    (answer,) = result.answers
    assert answer.standing == ()
    assert [s.commit.oid for s in answer.steps] == [commits[1], commits[2]]
    assert "none of this stands" in answer.notes[0]


def test_the_lines_that_decided(tmp_path: Path) -> None:
    commits = import_history(tmp_path, line("ok", "takes more", "passes more"))
    (answer,) = run(tmp_path, commits[0], "main").answers
    diff = answer.steps[0].diff
    assert diff[0] == f"--- {commits[1][:10]}: pkg/user.py"
    assert "-    return answer('tea')" in diff
    assert "+    return answer('tea', volume=3)" in diff
    moved = import_history(tmp_path / "moved", line("ok", "renamed"))
    (answer,) = run(tmp_path / "moved", moved[0], "main").answers
    diff = answer.steps[0].diff
    assert diff[:2] == (
        f"--- {moved[0][:10]}: pkg/core.py:1",
        f"+++ {moved[1][:10]}: pkg/core.py:1",
    )
    assert [one for one in diff if one[:2] in ("-d", "+d")] == [
        "-def answer(word, tone=None):",
        "+def reply(word, tone=None):",
    ]


def test_a_huge_diff_is_cut(tmp_path: Path) -> None:
    long = BODY + b"".join(b"    word += %d\n" % n for n in range(900))
    history = [
        Made((), {**OK, "pkg/core.py": long}),
        Made((0,), {**OK, "pkg/core.py": b""}),
    ]
    commits = import_history(tmp_path, history)
    (answer,) = run(tmp_path, commits[0], "main").answers
    assert len(answer.steps[0].diff) == 121
    assert answer.steps[0].diff[-1].endswith("lines more")


def test_several_things_relied_on(tmp_path: Path) -> None:
    other = Watched("loud", "imports_name", ("pkg.user:ask",), 2, "f")
    calm = Watched("loud", "imports_name", ("pkg.noise:NOISE",), 3, "f")
    quiet = {**INIT, "pkg/noise/__init__.py": b"NOISE = 1\n"}
    history = [
        Made((), {**OK, **quiet}),
        Made((0,), {**OK, **quiet, "pkg/user.py": b""}),
        Made((1,), {**VARIANTS["removed"][1], **quiet}),
    ]
    commits = import_history(tmp_path, history)
    result = run(tmp_path, commits[0], "main", WATCHED, other, calm)
    found = {a.bad.symbol: [s.commit.oid for s in a.standing] for a in result.answers}
    # A function that nobody calls any more cannot be replaced.
    assert found == {"pkg.core:answer": [commits[1]], "pkg.user:ask": [commits[1]]}
    assert result.unchanged == 1


# Branches ------------------------------------------------------------------------


def test_the_commit_inside_a_merged_branch(tmp_path: Path) -> None:
    ok, bad = OK, VARIANTS["renamed"][1]
    noise = {"pkg/noise/a.py": b"A = 1\n"}
    history = [
        Made((), ok, "0"),
        Made((0,), {**ok, **noise}, "1"),
        Made((0,), ok, "2 on a branch"),
        Made((2,), bad, "3 on a branch, breaks", date=5),
        Made((3,), bad, "4 on a branch", date=99),
        Made((1, 4), {**bad, **noise}, "5 merges"),
        Made((5,), {**bad, **noise}, "6"),
    ]
    commits = import_history(tmp_path, history)
    result = run(tmp_path, commits[1], "main")
    assert standing(result) == [commits[3]]
    (step,) = result.answers[0].steps
    assert step.merged_by is not None
    assert step.merged_by.oid == commits[5]


def test_a_merge_that_breaks_by_itself(tmp_path: Path) -> None:
    watched = Watched("loud", "calls", ("pkg.core:answer",), 1, "f")
    history = [
        Made((), OK),
        Made((0,), VARIANTS["takes more"][1]),
        Made((0,), {**OK, "pkg/noise/a.py": b""}),
        Made((1, 2), VARIANTS["passes more"][1]),
    ]
    commits = import_history(tmp_path, history)
    assert standing(run(tmp_path, commits[0], "main")) == [commits[3]]
    # Who only calls it does not mind.
    assert standing(run(tmp_path, commits[0], "main", watched)) == [commits[1]]


def test_two_branches_that_each_break_it(tmp_path: Path) -> None:
    bad = VARIANTS["removed"][1]
    history = [
        Made((), OK),
        Made((0,), bad, "one"),
        Made((0,), bad, "two"),
        Made((1, 2), bad, "merge"),
    ]
    commits = import_history(tmp_path, history)
    result = run(tmp_path, commits[0], "main")
    assert sorted(standing(result)) == sorted(commits[1:3])
    assert "each of these made it so by itself" in result.answers[0].notes[0]


def test_a_merge_that_takes_an_old_line_over(tmp_path: Path) -> None:
    """The branch is from before the thing was there, and its side was taken."""
    without = VARIANTS["removed"][1]
    history = [
        Made((), without, "before there was any"),
        Made((0,), OK, "good"),
        Made((0,), {**without, "pkg/noise/a.py": b""}, "old branch"),
        Made((1, 2), {**without, "pkg/noise/a.py": b""}, "merge, the wrong way"),
        Made((3,), {**without, "pkg/noise/a.py": b"A = 1\n"}, "later"),
    ]
    commits = import_history(tmp_path, history)
    result = run(tmp_path, commits[1], "main")
    assert standing(result) == [commits[3]]


def test_a_release_branch_that_alone_has_the_remedy(tmp_path: Path) -> None:
    broken = VARIANTS["removed"][1]
    history = [
        Made((), broken, "parting"),
        Made((0,), OK, "mended for the release"),
        Made((1,), OK, "the release"),
        Made((0,), {**broken, "pkg/noise/a.py": b""}, "development"),
    ]
    commits = import_history(tmp_path, history)
    result = run(tmp_path, commits[2], commits[3])
    (answer,) = result.answers
    assert answer.steps == ()
    assert [s.commit.oid for s in answer.reverse] == [commits[1]]
    assert "where the two revisions parted" in answer.notes[0]


def test_a_good_revision_on_a_line_of_its_own(tmp_path: Path) -> None:
    history = [
        Made((), OK),
        Made((0,), {**OK, "pkg/noise/a.py": b""}, "release"),
        Made((0,), OK, "development"),
        Made((2,), VARIANTS["moved"][1], "breaks"),
    ]
    commits = import_history(tmp_path, history)
    assert standing(run(tmp_path, commits[1], "main")) == [commits[3]]


# Any shape -------------------------------------------------------------------------


def brute(history: History, is_so: Callable[[str], bool]) -> set[str]:
    """By definition, from the oldest commit on: what is so has the origins of the
    parents in which it is so, or is one."""
    carried: dict[str, set[str]] = {}
    for commit in reversed(history.parents):
        if is_so(commit):
            parents = [p for p in history.parents[commit] if is_so(p)]
            carried[commit] = set() if parents else {commit}
            for parent in parents:
                carried[commit] |= carried.get(parent, set())
    return carried.get(history.tip, set())


@st.composite
def shapes(draw: st.DrawFn, most: int = 12) -> list[tuple[int, ...]]:
    """Parents of each commit, as positions of earlier ones; the last is the tip of
    all of them."""
    size = draw(st.integers(2, most))
    parents: list[tuple[int, ...]] = [()]
    for number in range(1, size):
        count = draw(st.sampled_from([1, 1, 1, 2, 2, 3]))
        chosen = st.integers(max(0, number - 5), number - 1)
        several = draw(st.lists(chosen, min_size=1, max_size=count, unique=True))
        parents.append(tuple(several))
    heads = set(range(size)) - {p for several in parents for p in several}
    if len(heads) > 1:
        parents.append(tuple(sorted(heads)))
    return parents


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shapes(), st.data())
def test_origins_are_those_of_the_definition(
    parents: list[tuple[int, ...]], data: st.DataObject
) -> None:
    size = len(parents)
    so = data.draw(st.lists(st.booleans(), min_size=size, max_size=size))
    inside = range(size - 1, 0, -1)
    history = History(
        str(size - 1), "0", {str(n): tuple(map(str, parents[n])) for n in inside}
    )
    found = history.origins(lambda one: so[int(one)])
    expected = brute(history, lambda one: so[int(one)])
    if expected:
        assert set(found.commits) == expected
    elif so[-1]:
        # Inherited from the base on every line; a merge that knew better counts.
        assert found.is_older
        assert len(found.commits) <= 1
        for one in found.commits:
            sides = {so[parent] for parent in parents[int(one)]}
            assert sides == {True, False}
    changes = history.changes(lambda one: so[int(one)])
    assert set(changes) == {
        str(n) for n in inside if all(so[p] != so[n] for p in parents[n])
    }
    assert list(changes) == sorted(changes, key=int)


def model(
    parents: Sequence[tuple[int, ...]], variants: Sequence[str], seed: int
) -> list[Made]:
    """A history of these variants, with noise around, dates in any order."""
    chance = random.Random(seed)
    history = []
    for number, several in enumerate(parents):
        noise = {
            f"pkg/noise/n{chance.randrange(4)}.py": b"N = %d\n" % chance.randrange(9)
        }
        files = {**VARIANTS[variants[number]][1], **noise}
        date = chance.randrange(10**9)
        history.append(Made(several, files, f"{number} {variants[number]}", date))
    return history


def expected_origins(
    parents: Sequence[tuple[int, ...]], kinds: Sequence[str], good: int
) -> set[int]:
    """Of the verdict at the last commit, by the brute-force definition."""
    older = {good}
    left = [good]
    while left:
        for parent in parents[left.pop()]:
            if parent not in older:
                older.add(parent)
                left.append(parent)
    reached, left = set(), [len(parents) - 1]
    while left:
        one = left.pop()
        if one not in older and one not in reached:
            reached.add(one)
            left += parents[one]
    inside = {str(n): tuple(map(str, parents[n])) for n in sorted(reached)[::-1]}
    history = History(str(len(parents) - 1), str(good), inside)
    return {int(n) for n in brute(history, lambda one: kinds[int(one)] == kinds[-1])}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shapes(), st.data(), st.integers(0, 10**6))
def test_repositories_of_any_shape(
    tmp_path_factory: pytest.TempPathFactory,
    parents: list[tuple[int, ...]],
    data: st.DataObject,
    seed: int,
) -> None:
    names = st.sampled_from(list(VARIANTS))
    variants = ["ok", *(data.draw(names) for _ in parents[1:])]
    kinds = [VARIANTS[name][0] for name in variants]
    clone = tmp_path_factory.mktemp("clone")
    commits = import_history(clone, model(parents, variants, seed))
    result = run(clone, commits[0], "main")
    if kinds[-1] == "identical":
        assert result.answers == ()
        return
    expected = expected_origins(parents, kinds, 0)
    assert {commits.index(one) for one in standing(result)} == expected


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(list(VARIANTS)), min_size=1, max_size=12))
def test_what_was_not_judged_again_has_the_verdict_it_would_get(
    tmp_path_factory: pytest.TempPathFactory, variants: list[str]
) -> None:
    clone = tmp_path_factory.mktemp("clone")
    commits = import_history(clone, line("ok", *variants))
    entries = [
        WATCHED,
        Watched("loud", "calls", ("pkg.core:answer",), 1, "f"),
        Watched("loud", "imports_name", ("pkg.user:ask",), 1, "f"),
    ]
    evaluator = Evaluator(Store(clone), "pkg", "", commits[0], entries)
    old = Tree(revision_source(clone, commits[0], ("pkg",)), label=OLD)
    for commit in commits:
        new = Tree(revision_source(clone, commit, ("pkg",)), label=NEW)
        afresh = [finding.verdict for finding in check(entries, old, new)]
        assert [one.verdict for one in evaluator.at(commit)] == afresh
    assert evaluator.judged <= len(entries) * len(set(variants) | {"ok"})


def _grown(seed: int, size: int) -> tuple[list[tuple[int, ...]], list[str]]:
    """A main line with branches that are merged, and what each commit has."""
    chance = random.Random(seed)
    parents: list[tuple[int, ...]] = [()]
    variants = ["ok"]
    main, branches = 0, []
    while len(parents) < size - 1:
        number = len(parents)
        roll = chance.random()
        if roll < 0.15 and len(branches) < 6:
            branches.append(number)
            parents.append((chance.choice([main, max(0, main - 3)]),))
        elif roll < 0.5 and branches:
            place = chance.randrange(len(branches))
            parents.append((branches[place],))
            branches[place] = number
        elif roll < 0.65 and branches:
            branch = branches.pop(chance.randrange(len(branches)))
            parents.append((main, branch))
            main = number
        else:
            parents.append((main,))
            main = number
        first, *rest = parents[-1]
        sides = [variants[first], *(variants[one] for one in rest)]
        # A merge takes one of its sides; breaks, renames and reverts are rare.
        carried = chance.choice(sides)
        if chance.random() < 0.03:
            others = [one for one in VARIANTS if one != carried]
            carried = "ok" if carried != "ok" and roll < 0.5 else chance.choice(others)
        variants.append(carried)
    parents.append((main, *branches))
    variants.append(variants[main])
    return parents, variants


@pytest.mark.parametrize("seed", range(4))
def test_two_thousand_commits(tmp_path: Path, seed: int) -> None:
    """With merges, renames and reverts: the right commits every time."""
    parents, variants = _grown(seed, 2000)
    broken = next(n for n, v in enumerate(variants) if VARIANTS[v][0] == "broken")
    chance = random.Random(seed)
    ends = [1999, *chance.sample(range(broken, 1999), 5)]
    kinds = [VARIANTS[name][0] for name in variants]
    history = model(parents, variants, seed)
    commits = import_history(tmp_path, history)
    merges = sum(len(several) > 1 for several in parents)
    assert merges > 100
    assert set(variants) == set(VARIANTS)
    asked = 0
    for end in ends:
        if kinds[end] == "identical":
            continue
        asked += 1
        result = run(tmp_path, commits[0], commits[end])
        expected = expected_origins(parents[: end + 1], kinds[: end + 1], 0)
        assert {commits.index(one) for one in standing(result)} == expected
        # Each case is judged once, however many commits have it.
        assert result.judged <= 40 * len(VARIANTS)
    assert asked


# Clones ----------------------------------------------------------------------------


def test_bare_and_linked_clones_and_the_users_own_tree(tmp_path: Path) -> None:
    root = tmp_path / "root"
    commits = import_history(root, line("ok", "ok", "moved"))
    git(root, "reset", "-q", "--hard", "main")
    (root / "pkg" / "core.py").write_bytes(b"dirty\n")
    (root / "new.py").write_bytes(b"untracked\n")
    before = git(root, "status", "--porcelain")
    index = (root / ".git/index").stat().st_mtime_ns
    git(tmp_path, "clone", "-q", "--bare", str(root), "bare.git")
    git(root, "worktree", "add", "-q", str(tmp_path / "tree"), commits[0])
    for place in (root, root / "pkg" / "..", tmp_path / "bare.git", tmp_path / "tree"):
        assert standing(run(place, commits[0], commits[2])) == [commits[2]]
    assert (root / ".git/index").stat().st_mtime_ns == index
    assert git(root, "status", "--porcelain") == before
    assert (root / "pkg" / "core.py").read_bytes() == b"dirty\n"


def test_shallow_clones(tmp_path: Path) -> None:
    root = tmp_path / "root"
    parents = [(), (0,), (1,), (0,), (2, 3)]
    names = ["ok", "ok", "ok", "moved", "moved"]
    made = [
        Made(several, VARIANTS[name][1], name)
        for several, name in zip(parents, names, strict=True)
    ]
    commits = import_history(root, made, {"v1": 2})
    git(tmp_path, "clone", "-q", "--depth=1", root.as_uri(), "one")
    with pytest.raises(BadSource, match="shallow clone has only"):
        run(tmp_path / "one", commits[0], "HEAD")
    git(tmp_path, "clone", "-q", "--depth=2", root.as_uri(), "two")
    result = run(tmp_path / "two", "v1", "HEAD")
    assert standing(result) == [commits[3]]
    assert "the clone is shallow" in result.answers[0].notes[0]


def test_a_partial_clone_is_told(tmp_path: Path) -> None:
    root = tmp_path / "root"
    commits = import_history(root, line("ok", "moved"))
    git(root, "config", "uploadpack.allowFilter", "true")
    filters = ("--filter=blob:none", "--no-checkout")
    git(tmp_path, "clone", "-q", *filters, root.as_uri(), "partial")
    with pytest.raises(BadSource, match="partial or a damaged clone"):
        run(tmp_path / "partial", commits[0], commits[1])


def test_packages_elsewhere_in_the_repository(tmp_path: Path) -> None:
    def at(prefix: str, files: dict[str, bytes]) -> dict[str, bytes]:
        return {f"{prefix}{path}": text for path, text in files.items()}

    bad = VARIANTS["removed"][1]
    history = [
        Made((), at("src/", OK)),
        Made((0,), at("", OK), "another layout, the same package"),
        Made((1,), at("", bad), "breaks"),
    ]
    commits = import_history(tmp_path / "src", history)
    assert standing(run(tmp_path / "src", commits[0], "main")) == [commits[2]]
    inner = [Made((), at("py/", OK)), Made((0,), at("py/", bad))]
    root = tmp_path / "inner"
    commits = import_history(root, inner)
    git(root, "reset", "-q", "--hard", "main")
    assert standing(run(root / "py", commits[0], "main")) == [commits[1]]


def test_links_lead_to_what_decides(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    files = {**OK, "pkg/real.py": BODY, "pkg/core.py": None}
    for name, text in files.items():
        if text is not None:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(text)
    (tmp_path / "pkg" / "core.py").symlink_to("real.py")
    (tmp_path / "pkg" / "loop.py").symlink_to("loop.py")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "one")
    first = git(tmp_path, "rev-parse", "HEAD")
    commit_all(tmp_path, {"pkg/noise/a.py": b""}, "two")
    third = commit_all(tmp_path, {"pkg/real.py": b"X = 1\n"}, "three")
    assert standing(run(tmp_path, first, "main")) == [third]


def test_revisions_that_make_no_question(tmp_path: Path) -> None:
    commits = import_history(tmp_path, line("ok", "moved"), {"v1": 0})
    with pytest.raises(BisectError, match="are the same commit"):
        run(tmp_path, "v1", commits[0])
    with pytest.raises(BisectError, match="older one with --good"):
        run(tmp_path, "main", "v1")
    with pytest.raises(BadSource, match="has no revision nothing; `git fetch --tags`"):
        run(tmp_path, "nothing", "main")
    with pytest.raises(BadSource, match=r"^(?!.*shallow)"):
        run(tmp_path, "v1", "v9")
    with pytest.raises(BisectError, match="has no package other"):
        run(tmp_path, "v1", "main", package="other")


def test_ranges_are_those_of_both_tags(tmp_path: Path) -> None:
    commits = import_history(tmp_path, line("ok", "moved"), {"v1.0": 0, "v2.0": 1})
    old = Watched(
        "loud", "imports_name", ("pkg.core:answer",), 1, "f", ({"pkg": "<2"},)
    )
    with pytest.raises(BisectError, match=r"nothing of it .* v1\.0 and in v2\.0"):
        run(tmp_path, "v1.0", "v2.0", old)
    both = Watched(
        "loud", "imports_name", ("pkg.core:answer",), 1, "f", ({"pkg": "<3"},)
    )
    assert standing(run(tmp_path, "v1.0", "v2.0", both)) == [commits[1]]


# The command -----------------------------------------------------------------------


@pytest.fixture
def upstream(tmp_path: Path) -> tuple[Path, list[str]]:
    def files(variant: str) -> Iterable[tuple[str, bytes]]:
        return VARIANTS[variant][1].items()

    names = ["ok", "removed", "ok", "renamed"]
    root = tmp_path / "upstream"
    made = [
        Made((n - 1,) if n else (), dict(files(name)), f"{n}: {name}")
        for n, name in enumerate(names)
    ]
    return root, import_history(root, made, {"v1.0": 0})


def _call(*words: str) -> int:
    from ascend_shims.cli import main

    return main(["bisect", *words])


def test_the_command_for_a_person(
    upstream: tuple[Path, list[str]], tmp_path: Path, capsys: Any
) -> None:
    root, commits = upstream
    watch = tmp_path / "watch.jsonl"
    watch.write_text('{"symbol": "pkg.core:answer", "how": "calls"}\n')
    words = ("--repo", str(root), "--good", "v1.0", "--watch", str(watch))
    assert _call(*words) == 1
    said = capsys.readouterr().out
    assert f"since {commits[3]}\n  3: renamed\n" in said
    assert "A U Thor <author@example.invalid>, 2023-11-14 23:43:20+01:30" in said
    assert "+def reply(word, tone=None):" in said
    assert "identical at the good revision, broken at the bad one" in said
    assert f"{commits[1][:12]} 2023-11-14 identical -> broken: 1: removed" in said
    assert _call(*words, "--bad", commits[2]) == 0
    said = capsys.readouterr().out
    assert "No verdict differs: 1 identical at both." in said
    assert "Note: 1 changed in between and back again" in said
    assert _call(*words, "--verdict", "review") == 0
    said = capsys.readouterr().out
    assert "No verdict becomes review: 1 identical -> broken." in said
    assert "Without --verdict the gravest change is looked for." in said


def test_what_no_commit_has_is_no_question(
    upstream: tuple[Path, list[str]], tmp_path: Path, capsys: Any
) -> None:
    root, commits = upstream
    watch = tmp_path / "watch.jsonl"
    watch.write_text('{"symbol": "pkg.core:anser", "how": "calls"}\n')
    words = ("--repo", str(root), "--good", "v1.0", "--watch", str(watch))
    assert _call(*words, "--bad", commits[2]) == 2
    said = capsys.readouterr().err
    assert "there is nothing to look for" in said
    assert "has `pkg.core:anser`; did you mean `pkg.core:answer`?" in said
    # Beside others it is told.
    more = tmp_path / "more.jsonl"
    more.write_text('{"symbol": "pkg.core:answer", "how": "calls"}\n')
    assert _call(*words, "--watch", str(more), "--bad", commits[2]) == 0
    said = capsys.readouterr().out
    assert "No verdict differs: 1 broken, 1 identical at both." in said
    assert "has `pkg.core:anser`" in said


def test_the_command_for_a_machine(
    upstream: tuple[Path, list[str]], tmp_path: Path, capsys: Any
) -> None:
    root, commits = upstream
    watch = tmp_path / "watch.jsonl"
    rows = [
        {"symbol": "pkg.core:answer", "how": "calls", "gap": "loud"},
        {"symbol": "pkg.user:ask", "how": "imports_name"},
    ]
    watch.write_text("\n".join(map(json.dumps, rows)))
    words = ("--repo", str(root), "--good", "v1.0", "--watch", str(watch), "--json")
    assert _call(*words, "--on", "pkg.core:answer") == 1
    said = json.loads(capsys.readouterr().out)
    assert said["schema"] == 1
    assert said["bad"] == {"revision": "HEAD", "commit": commits[3]}
    (finding,) = said["findings"]
    assert finding["symbol"] == "pkg.core:answer"
    assert finding["gap"] == "loud"
    assert finding["bad"]["verdict"] == "broken"
    assert finding["bad"]["moved_to"] == "pkg.core:reply"
    (step,) = finding["commits"]
    assert step["commit"] == commits[3]
    assert step["authored"] == "2023-11-14T23:43:20+01:30"
    assert step["committed"] == "2033-05-18T03:33:20+00:00"
    assert [one["commit"] for one in finding["others"]] == commits[1:3]
    assert said["costs"]["commits"] == 4


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "name a gap, or symbols with --watch"),
        (("no-such-gap",), "no gap called 'no-such-gap'"),
        (("--watch", "W", "--on", "pkg.core:anser"), "did you mean pkg.core:answer"),
        (
            ("--watch", "W", "--package", "other"),
            "nothing is relied on in 'other'; name one of pkg",
        ),
    ],
)
def test_misuse(
    upstream: tuple[Path, list[str]],
    tmp_path: Path,
    capsys: Any,
    words: tuple[str, ...],
    why: str,
) -> None:
    watch = tmp_path / "watch.jsonl"
    watch.write_text('{"symbol": "pkg.core:answer", "how": "calls"}\n')
    given = [str(watch) if word == "W" else word for word in words]
    assert _call("--repo", str(upstream[0]), "--good", "v1.0", *given) == 2
    assert why in capsys.readouterr().err


def test_a_folder_that_is_no_clone_is_told_first(tmp_path: Path, capsys: Any) -> None:
    watch = tmp_path / "watch.jsonl"
    rows = [{"symbol": f"{p}.core:answer", "how": "calls"} for p in ("pkg", "other")]
    watch.write_text("\n".join(map(json.dumps, rows)))
    words = ("--good", "v1.0", "--watch", str(watch))
    assert _call("--repo", str(tmp_path), *words) == 2
    assert capsys.readouterr().err.startswith(f"shims: git in {tmp_path}: fatal: not a")
    clone = tmp_path / "clone"
    import_history(clone, [Made((), OK)])
    assert _call("--repo", str(clone), *words) == 2
    assert "it relies on other and pkg" in capsys.readouterr().err


def test_nothing_that_a_terminal_would_act_on(tmp_path: Path, capsys: Any) -> None:
    evil = "\x1b[2J\x07 cleared"
    root = tmp_path / "upstream"
    made = [
        Made((), OK),
        Made((0,), VARIANTS["removed"][1], evil, author="\x1b[31m <a@example.invalid>"),
    ]
    commits = import_history(root, made)
    watch = tmp_path / "watch.jsonl"
    watch.write_text('{"symbol": "pkg.core:answer", "how": "calls"}\n')
    words = ("--repo", str(root), "--good", commits[0], "--watch", str(watch))
    assert _call(*words) == 1
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "\ufffd[2J\ufffd cleared" in said
