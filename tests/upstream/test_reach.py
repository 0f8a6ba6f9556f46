"""What is gone is looked for near where it was; what it costs has a bound."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.upstream.judgement import Baseline, judged
from ascend_shims.upstream.parsed import Shelf
from ascend_shims.upstream.reach import reach
from ascend_shims.upstream.source import Mark
from ascend_shims.upstream.texts import Texts
from ascend_shims.upstream.traces import Traces
from ascend_shims.upstream.watched import Watched

BODY = "    first = word.strip()\n    return first.upper() + word\n"
F = "def shouted_answer(word):\n" + BODY


class Far:
    """A far release: `sizes` are packed bytes, by path, where they matter."""

    is_far = True

    def __init__(
        self, label: str, files: dict[str, str], sizes: dict[str, int] | None = None
    ) -> None:
        self.label = label
        self.files = files
        self.sizes = sizes or {}
        self.identity = label
        self.read_paths: list[str] = []

    def paths(self) -> list[str]:
        return sorted(self.files)

    def read(self, path: str) -> bytes:
        self.read_paths.append(path)
        return self.files[path].encode()

    def mark(self, path: str) -> Mark | None:
        text = self.files.get(path)
        if text is None:
            return None
        return Mark(hash(text), len(text), self.sizes.get(path, len(text)))


def _texts(files: Iterable[str], changed: Iterable[str] = ()) -> Texts:
    marks = dict.fromkeys(files, "old") | dict.fromkeys(changed, "new")
    return Texts(Far("up", {f"{n.replace('.', '/')}.py": t for n, t in marks.items()}))


def test_unchanged_files_are_left_out() -> None:
    old = _texts(["up.a", "up.b", "up.c"])
    new = _texts(["up.a", "up.b", "up.c"], changed=["up.b", "up.d"])
    assert set(reach(["up.a"], old, new, 1 << 20)) == {"up.b", "up.d"}


@pytest.mark.parametrize(
    ("lost", "nearest"),
    [
        ("up.v1.worker.runner", "up.v1.worker.planner"),
        ("up.layers.mamba.attn", "up.layers.mamba.linear.attn"),
        ("up.layers.attention.pcp", "up.attention.ops.pcp"),
    ],
)
def test_the_nearest_comes_first(lost: str, nearest: str) -> None:
    names = [
        "up.v1.worker.planner",
        "up.layers.mamba.linear.attn",
        "up.attention.ops.pcp",
        "up.models.far_away",
    ]
    found = reach([lost], _texts([lost]), _texts([], changed=names), 1 << 20)
    assert found[0] == nearest
    assert set(found) == set(names)


@given(
    st.dictionaries(
        st.text("abc.", min_size=1, max_size=8).map(lambda t: f"up.x{t}y"),
        st.integers(0, 500),
        max_size=20,
    ),
    st.integers(0, 2000),
)
def test_the_bound_holds(sizes: dict[str, int], most: int) -> None:
    paths = {f"{name.replace('.', '/')}.py": size for name, size in sizes.items()}
    new = Texts(Far("up", dict.fromkeys(paths, "new"), paths))
    found = reach(["up.xa"], _texts(["up.xa"]), new, most)
    costs = {n: m.packed for n in new.paths if (m := new.mark(n)) is not None}
    assert sum(costs[name] for name in found) <= most
    assert len(set(found)) == len(found)


WATCHED = [Watched("one", "calls", ("up.m:shouted_answer",), 1, "r.yaml")]


def _check(new: Far, known: tuple[str, ...] = (), limited: bool = True) -> object:
    files = {"up/__init__.py": "", "up/m.py": F, "up/user.py": "import up.m\n"}
    many = {f"up/models/n{i}.py": "x = 1\n" for i in range(50)}
    old = Far("up 1", {**files, **many})
    new.files = {**many, **new.files}
    fetched: list[str] = []
    baseline = Baseline.of(
        Texts(old), Shelf(), Traces(None, "up 1"), lambda _: None, known
    )
    fetch = fetched.extend if limited else None
    done = judged(WATCHED, baseline, Texts(new), None, fetch)
    return done.findings[0].verdict, fetched, new.read_paths


def test_a_new_place_nearby_is_found_without_reading_the_rest() -> None:
    new = Far("up 2", {"up/__init__.py": "", "up/m.py": "", "up/voice.py": F})
    verdict, fetched, read = _check(new)
    assert verdict.moved_to == "up.voice:shouted_answer"
    assert "`--search-all`" not in verdict.sentence
    assert set(fetched) == {"up.voice", "up.m"}
    assert not [path for path in read if "models" in path]


def test_the_verdict_says_that_the_search_was_limited() -> None:
    new = Far("up 2", {"up/__init__.py": "", "up/m.py": "y = 1\n"})
    verdict, *_ = _check(new)
    assert (verdict.kind, verdict.breakage) == ("broken", "removed")
    assert verdict.sentence.endswith(
        "without a successor among the 1 nearest modules that changed; "
        "`--search-all` looks through the whole package"
    )
    whole, *_ = _check(new, limited=False)
    assert "search-all" not in whole.sentence
    assert whole.fingerprint == verdict.fingerprint


def test_who_used_it_tells_where_it_is() -> None:
    files = {
        "up/__init__.py": "",
        "up/m.py": "",
        "up/user.py": "from up.q.hub import shouted_answer\n",
        "up/q/hub.py": "from up.z.far.deep import shouted_answer\n",
        "up/z/far/deep.py": F,
    }
    sizes = dict.fromkeys(("up/q/hub.py", "up/z/far/deep.py"), 1 << 20)
    lost, *_ = _check(Far("up 2", files, sizes))
    assert lost.moved_to is None
    found, *_ = _check(Far("up 2", files, sizes), known=("up.user",))
    assert found.moved_to == "up.z.far.deep:shouted_answer"


def test_search_all_reads_everything() -> None:
    files = {"up/__init__.py": "", "up/m.py": "", "up/z/far/deep.py": F}
    verdict, fetched, read = _check(
        Far("up 2", files, {"up/z/far/deep.py": 1 << 20}), limited=False
    )
    assert verdict.moved_to == "up.z.far.deep:shouted_answer"
    assert fetched == []
    assert len(read) == 53
