"""Verdicts that are found again, and those that must not be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.upstream import judgement, traces
from ascend_shims.upstream.facts.record import Record
from ascend_shims.upstream.fetching import Releases
from ascend_shims.upstream.judgement import Baseline, judged
from ascend_shims.upstream.lock import Lock, LockError, make_baseline
from ascend_shims.upstream.parsed import Shelf
from ascend_shims.upstream.run import Run
from ascend_shims.upstream.source import SourceError
from ascend_shims.upstream.sources import Sources
from ascend_shims.upstream.texts import Texts
from ascend_shims.upstream.traces import Traces
from ascend_shims.upstream.tree import Tree
from ascend_shims.upstream.watched import Watched

FILES = {
    "up/__init__.py": "",
    "up/m.py": "def f(a):\n    return a\n\n\nclass C:\n    def g(self): ...\n",
    "up/user.py": "from up.m import C, f\n\n\ndef use():\n    C().g()\n    f(1)\n",
    "up/other.py": "x = 1\n",
}
WATCHED = [
    Watched("one", "calls", ("up.m:f",), 1, "r.yaml"),
    Watched("two", "wraps_function", ("up.m:C.g",), 2, "r.yaml"),
]


USER = "from up.m import C\nC().g()\nx = {}\n"


class Release:
    """A release made of strings that counts what is read of it."""

    def __init__(self, label: str, **changes: str | None) -> None:
        files = {**FILES, **{f"up/{k}.py": v for k, v in changes.items()}}
        self.label = label
        self.files = {path: text for path, text in files.items() if text is not None}
        self.failing: set[str] = set()

    def paths(self) -> list[str]:
        return sorted(self.files)

    def read(self, path: str) -> bytes:
        if path in self.failing:
            raise SourceError(f"{path} cannot be had")
        return self.files[path].encode()


class Disk:
    """A cache folder."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, ...], bytes] = {}

    def get(self, kind: str, *key: str) -> bytes | None:
        return self.entries.get((kind, *key))

    def put(self, kind: str, *key: str, data: bytes) -> bool:
        self.entries[(kind, *key)] = data
        return True


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The symbols that were really judged."""
    seen: list[str] = []
    real = judgement.check

    def check(watched: list[Watched], *args: object, **named: object) -> object:
        seen.extend(one.candidates[0] for one in watched)
        return real(watched, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(judgement, "check", check)
    return seen


RECORDS = {
    symbol: Record(kind="function", defined=symbol, reached="yes", callers=("up.user",))
    for symbol in ("up.m:f", "up.m:C.g")
}


def _baseline(disk: Disk | None, source: Release) -> Baseline:
    return Baseline.of(Texts(source), Shelf(), Traces(disk, "up 1"), RECORDS.get, ())


def _judge(baseline: Baseline, source: Release) -> list[tuple[str, str]]:
    done = judged(WATCHED, baseline, Texts(source), None, None)
    assert [f.watched for f in done.findings] == WATCHED
    return [(f.verdict.kind, f.verdict.sentence) for f in done.findings]


def test_a_release_that_answers_the_same_is_not_judged_again(checks: list[str]) -> None:
    baseline = _baseline(None, Release("up 1"))
    first = _judge(baseline, Release("up 2", other="x = 2\n"))
    assert checks == ["up.m:f", "up.m:C.g"]
    second = _judge(baseline, Release("up 3", other="x = 3\n"))
    assert checks == ["up.m:f", "up.m:C.g"]
    assert first == second
    assert [kind for kind, _ in first] == ["identical", "identical"]


def test_releases_that_hold_what_was_locked_are_judged_once(
    checks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASCEND_SHIMS_CACHE", "off")
    folders = []
    for name in ("one", "other"):
        folder = tmp_path / name / "up"
        folder.mkdir(parents=True)
        for path, text in FILES.items():
            (tmp_path / name / path).write_text(text)
        (folder / "_version.py").write_text("__version__ = '1.0'\n")
        folders.append(str(folder.parent))
    sources = Sources(offline=True)
    facts = make_baseline(WATCHED, sources.open(folders[0]))
    run = Run(Releases(sources), Lock({"up==1.0": facts}), WATCHED)
    for checked in run.check_all(folders, "up"):
        assert [f.verdict.kind for f in checked.findings] == ["identical"] * 2
    assert checks == ["up.m:f", "up.m:C.g"]


def test_what_cannot_be_read_as_a_whole_is_not_locked() -> None:
    broken = Release("up 1")
    assert set(make_baseline(WATCHED, broken).symbols) == {"up.m:f", "up.m:C.g"}
    broken.failing = {"up/user.py"}
    with pytest.raises(LockError) as caught:
        make_baseline(WATCHED, broken)
    assert str(caught.value) == (
        "up 1 cannot be locked: up/user.py could not be read (up/user.py cannot be "
        "had); lock it where all of it can be"
    )


@pytest.mark.parametrize(
    ("changes", "again"),
    [
        ({"other": "x = 2\n"}, []),
        ({"brand_new": "def f(): ...\n"}, []),
        ({"user": "from up.m import C\nC().g(1)\n"}, ["up.m:C.g"]),
        ({"m": "def f(b):\n    return b\n"}, ["up.m:f", "up.m:C.g"]),
        ({"m": None}, ["up.m:f", "up.m:C.g"]),
        ({"user": None}, ["up.m:C.g"]),
    ],
    ids=["unrelated", "added", "caller", "definition", "gone", "caller gone"],
)
def test_what_was_read_decides(
    changes: dict[str, str | None], again: list[str], checks: list[str]
) -> None:
    disk = Disk()
    first = _baseline(disk, Release("up 1"))
    _judge(first, Release("up 2"))
    first.traces.save()
    checks.clear()
    release = Release("up 3", **changes)
    found = _judge(_baseline(disk, Release("up 1")), release)
    assert sorted(checks) == sorted(again)
    # The same as without anything to find it in.
    assert found == _judge(_baseline(None, Release("up 1")), release)


def test_a_changed_baseline_is_judged_against_anew(checks: list[str]) -> None:
    disk = Disk()
    first = _baseline(disk, Release("dir"))
    _judge(first, Release("up 2"))
    first.traces.save()
    checks.clear()
    other = Release("dir", m="def f(a, b=1):\n    return a\nclass C: ...\n")
    _judge(_baseline(disk, other), Release("up 2"))
    assert sorted(checks) == ["up.m:C.g", "up.m:f"]


def test_labels_are_those_of_the_releases_at_hand() -> None:
    baseline = _baseline(None, Release("up 1"))
    for label in ("up 2", "up 3"):
        done = judged(WATCHED, baseline, Texts(Release(label, m="x = 1\n")), None, None)
        verdict = done.findings[0].verdict
        assert verdict.kind == "broken"
        assert f"{label} has no `f`" in verdict.sentence
        assert verdict.old is not None
        assert verdict.old.release == "up 1"
        assert "\0" not in repr(done.findings)


def test_a_file_that_could_not_be_read_is_asked_for_again(checks: list[str]) -> None:
    baseline = _baseline(None, Release("up 1"))
    broken = Release("up 2")
    broken.failing = {"up/m.py"}
    assert {kind for kind, _ in _judge(baseline, broken)} == {"review"}
    checks.clear()
    assert {kind for kind, _ in _judge(baseline, Release("up 2"))} == {"identical"}
    assert len(checks) == 2


def test_a_file_that_cannot_be_parsed_is_told_each_time() -> None:
    baseline = _baseline(None, Release("up 1"))
    for label in ("up 2", "up 3"):
        done = judged(WATCHED, baseline, Texts(Release(label, m="def (")), None, None)
        assert [problem.path for problem in done.problems] == ["up/m.py"]


def test_a_search_of_everything_needs_an_identity(checks: list[str]) -> None:
    disk = Disk()
    gone = Release("up 2", m="")
    baseline = _baseline(disk, Release("up 1"))
    _judge(baseline, gone)
    baseline.traces.save()
    assert not disk.entries
    with_identity = []
    for label, identity in (("up 1", "a"), ("up 2", "b"), ("up 2", "c")):
        release = Release(label, **({} if label == "up 1" else {"m": ""}))
        release.identity = identity  # type: ignore[attr-defined]
        with_identity.append(release)
    old, new, other = with_identity
    baseline = _baseline(None, old)
    _judge(baseline, new)
    checks.clear()
    _judge(baseline, new)
    assert checks == []
    _judge(baseline, other)
    assert sorted(checks) == ["up.m:C.g", "up.m:f"]


@pytest.mark.parametrize("data", [b"", b"\x00", b"[1,2]", msgspec.msgpack.encode([{}])])
def test_damaged_entries_count_as_absent(data: bytes, checks: list[str]) -> None:
    disk = Disk()
    first = _baseline(disk, Release("up 1"))
    _judge(first, Release("up 2"))
    first.traces.save()
    (key,) = disk.entries
    disk.entries[key] = data
    checks.clear()
    assert len(_judge(_baseline(disk, Release("up 1")), Release("up 2"))) == 2
    assert len(checks) == 2


def test_other_code_does_not_use_them(
    checks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk()
    first = _baseline(disk, Release("up 1"))
    _judge(first, Release("up 2"))
    first.traces.save()
    checks.clear()
    monkeypatch.setattr(traces, "judging_code", lambda: "another version")
    _judge(_baseline(disk, Release("up 1")), Release("up 2"))
    assert len(checks) == 2


def test_two_processes_keep_each_others_traces(checks: list[str]) -> None:
    disk = Disk()
    one, two = (_baseline(disk, Release("up 1")) for _ in "ab")
    _judge(one, Release("up 2", user=USER.format(2)))
    _judge(two, Release("up 3", user=USER.format(3)))
    one.traces.save()
    two.traces.save()
    checks.clear()
    third = _baseline(disk, Release("up 1"))
    _judge(third, Release("up 2", user=USER.format(2)))
    _judge(third, Release("up 3", user=USER.format(3)))
    assert checks == []


def test_only_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "_MOST", 4)
    disk = Disk()
    baseline = _baseline(disk, Release("up 1"))
    for number in range(9):
        _judge(baseline, Release(f"up {number}", user=USER.format(number)))
    baseline.traces.save()
    (data,) = disk.entries.values()
    assert len(msgspec.msgpack.decode(data, type=list[traces.Trace])) == 4


def test_the_lock_and_what_is_relied_on_count() -> None:
    baseline = _baseline(None, Release("up 1"))
    texts = Texts(Release("up 2"))
    judged(WATCHED, baseline, texts, None, None)
    new = Tree(texts, Shelf(), traces.NEW)
    known = [t for t in baseline.traces._traces if t.fits(baseline.tree, new)]
    assert len(known) == 2
    named = replace(WATCHED[0], how="imports_name")
    keys = {
        traces.about([one.key], hints)
        for one in (WATCHED[0], named)
        for hints in ((), [("up.user",)])
    }
    assert len(keys) == 4


_TEXTS = st.sampled_from(
    [
        None,
        "def f(a):\n    return a\n",
        "def f(a, b):\n    return a\n",
        "from up.other import f\n",
        "class C:\n    def g(self, x): ...\n",
        "import up.m\nup.m.f(2)\nup.m.C().g()\n",
        "def (",
    ]
)


@settings(deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries({"m": _TEXTS, "user": _TEXTS, "other": _TEXTS}),
        min_size=1,
        max_size=5,
    )
)
def test_found_again_or_judged_anew_is_the_same(
    changes: list[dict[str, str | None]],
) -> None:
    kept = _baseline(Disk(), Release("up 1"))
    for change in [*changes, *changes]:
        release = Release("up 2", **change)
        fresh = _baseline(None, Release("up 1"))
        assert _judge(kept, release) == _judge(fresh, release)


def test_the_code_that_judges_has_a_name() -> None:
    name: Callable[[], str] = traces.judging_code
    assert len(name()) == 64
