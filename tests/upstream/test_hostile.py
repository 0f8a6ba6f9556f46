"""Files that are broken, endless or malicious: a problem of the file, no more."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ascend_shims.upstream.compare import judge
from ascend_shims.upstream.contract import Reliance, RelianceError
from ascend_shims.upstream.facts.symbol import find
from ascend_shims.upstream.source import DirectorySource, SourceError
from ascend_shims.upstream.tree import Tree

TreeOf = Callable[..., Tree]

GOOD = "def f(a): return a\n"


def test_a_file_that_exits_or_writes_is_only_read(tmp_path: Path) -> None:
    package = tmp_path / "hostile_upstream"
    package.mkdir()
    mark = tmp_path / "ran"
    (package / "__init__.py").write_text(
        f"import sys\nopen({str(mark)!r}, 'w')\nsys.exit(3)\n"
    )
    (package / "m.py").write_text("import os\nos._exit(4)\n" + GOOD)
    tree = Tree(DirectorySource(tmp_path))
    reliance = Reliance("hostile_upstream.m:f", "replaces_function")
    assert judge(reliance, tree, tree).kind == "identical"
    assert not mark.exists()
    assert not [name for name in sys.modules if name.startswith("hostile_upstream")]


@pytest.mark.parametrize(
    "text",
    ["def f(:\n", "x = '\0'", "(" * 5000, "def f(a):\nreturn a", "\udcff"],
    ids=["syntax", "null byte", "nesting", "indentation", "surrogate"],
)
def test_a_file_that_does_not_parse_hides_no_other(text: str, tree_of: TreeOf) -> None:
    class Broken:
        label = "up 2.0"

        def paths(self) -> list[str]:
            return ["up/__init__.py", "up/bad.py", "up/m.py"]

        def read(self, path: str) -> bytes:
            bad = (text + "\nf(1, b=2)").encode("utf-8", "surrogateescape")
            return {"up/bad.py": bad, "up/m.py": GOOD.encode()}.get(path, b"")

    new = Tree(Broken())
    old = tree_of({"up/m.py": GOOD, "up/bad.py": "from up.m import f\nf(1)\n"})
    assert judge(Reliance("up.m:f", "wraps_function"), old, new).kind == "broken"
    assert judge(Reliance("up.m:f", "calls"), old, new).kind == "identical"
    assert [problem.path for problem in new.problems] == ["up/bad.py"]
    assert "cannot be parsed" in new.problems[0].reason
    verdict = judge(Reliance("up.bad:f", "imports_name"), old, new)
    assert (verdict.kind, verdict.breakage) == ("review", "unreadable")


def test_an_unreadable_member_is_a_problem(tree_of: TreeOf) -> None:
    class Partial:
        label = "up 2.0"

        def paths(self) -> list[str]:
            return ["up/__init__.py", "up/m.py", "up/gone.py", "up/huge.py"]

        def read(self, path: str) -> bytes:
            if path == "up/gone.py":
                raise SourceError("up/gone.py is damaged")
            return b"#" * (5 << 20) if path == "up/huge.py" else GOOD.encode()

    tree = Tree(Partial())
    assert judge(Reliance("up.m:f", "calls"), tree_of(GOOD), tree).kind == "identical"
    tree.mentions("anything")
    reasons = {problem.path: problem.reason for problem in tree.problems}
    assert reasons["up/gone.py"] == "up/gone.py is damaged"
    assert "5242880 bytes" in reasons["up/huge.py"]


def test_a_loop_of_re_exports_ends(tree_of: TreeOf) -> None:
    loop = {
        "up/m.py": "from up.n import f\nfrom up.n import *\n",
        "up/n.py": "from up.m import f\nfrom up.m import *\n",
    }
    tree = tree_of(loop)
    assert find(tree, "up.m:f") is None
    assert find(tree, "up.m:other") is None
    verdict = judge(Reliance("up.m:f", "imports_name"), tree_of(GOOD), tree)
    assert (verdict.kind, verdict.breakage) == ("broken", "removed")


def test_a_loop_of_bases_ends(tree_of: TreeOf) -> None:
    tree = tree_of(
        {
            "up/m.py": "from up.n import B\nclass A(B):\n    def m(self): ...\n",
            "up/n.py": "from up.m import A\nclass B(A): ...\n",
        }
    )
    found = find(tree, "up.n:B.m")
    assert found is not None
    assert found.place == "up.m:A.m"


def test_symbolic_links_lead_nowhere(tmp_path: Path) -> None:
    root = tmp_path / "root"
    package = root / "up"
    package.mkdir(parents=True)
    (package / "m.py").write_text(GOOD)
    (package / "again").symlink_to(package, target_is_directory=True)
    (package / "loop.py").symlink_to(package / "loop.py")
    (tmp_path / "secret.py").write_text("x = 1")
    (package / "out.py").symlink_to(tmp_path / "secret.py")
    source = DirectorySource(root)
    assert "up/m.py" in source.paths()
    assert not [path for path in source.paths() if path.startswith("up/again")]
    for path in ("up/loop.py", "up/out.py"):
        with pytest.raises(SourceError):
            source.read(path)
    tree = Tree(source)
    assert tree.mentions("f") == ["up.m"]
    assert {p.path for p in tree.problems} == {"up/loop.py", "up/out.py"}


def test_only_the_named_packages(tmp_path: Path) -> None:
    for name in ("up", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.py").write_text(GOOD)
    (tmp_path / "setup.py").write_text("")
    assert DirectorySource(tmp_path, packages=["up"]).paths() == ["up/m.py"]


@pytest.mark.parametrize(
    ("symbol", "how"),
    [("up.m", "calls"), ("up.m:", "calls"), ("up m:f", "calls"), ("up.m:f", "uses")],
)
def test_a_reliance_that_is_none(symbol: str, how: str) -> None:
    with pytest.raises(RelianceError, match="write"):
        Reliance(symbol, how)  # type: ignore[arg-type]


def test_a_remote_source_is_asked_for_everything_at_once() -> None:
    asked: list[list[str]] = []

    class Remote:
        label = "up 2.0"

        def paths(self) -> list[str]:
            return ["up/__init__.py", "up/m.py"]

        def prefetch(self, paths: list[str]) -> None:
            asked.append(paths)

        def read(self, path: str) -> bytes:
            return GOOD.encode() if path == "up/m.py" else b""

    tree = Tree(Remote())
    assert find(tree, "up.m:f") is not None
    assert asked == []
    assert tree.mentions("f") == ["up.m"]
    assert asked == [["up/__init__.py", "up/m.py"]]
