"""`tools/build`: the same bytes anywhere and at any time, and what is in them."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

import pytest

from ascend_shims import __version__

from ..fresh import run
from .environments import OFFLINE, ROOT

pytestmark = [
    pytest.mark.any_release,
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a git checkout"),
]

COMMITTED = 1_767_225_600
"""When the copies were committed: 2026-01-01, 00:00 UTC."""

LITTER = (
    "__pycache__/setup.cpython-311.pyc",
    "ascend_shims/__pycache__/plan.cpython-311.pyc",
    "tests/__pycache__/fresh.cpython-311.pyc",
    ".venv/lib/python3.11/site-packages/other.py",
    ".venvs/0.28.0/lib/python3.11/site-packages/other.py",
    "build/lib/ascend_shims/stale.py",
    "dist/ascend_shims-0.0.1-py3-none-any.whl",
    "ascend_shims.egg-info/SOURCES.txt",
    ".mypy_cache/3.11/cache.json",
    ".hypothesis/examples/one",
)
"""What work leaves in a tree, and git ignores."""


@dataclass(frozen=True)
class Built:
    """What `tools/build` made in one copy of the tree."""

    tree: Path
    wheel: Path
    sdist: Path
    printed: str

    def wheel_names(self) -> list[str]:
        return zipfile.ZipFile(self.wheel).namelist()

    def sdist_members(self) -> dict[str, tarfile.TarInfo]:
        """Without the folder that all of it is in."""
        with tarfile.open(self.sdist) as archive:
            return {m.name.partition("/")[2]: m for m in archive if not m.isdir()}

    def sdist_files(self) -> dict[str, bytes]:
        """What is in them."""
        found = {}
        with tarfile.open(self.sdist) as archive:
            for member in archive:
                file = archive.extractfile(member)
                if file is not None:
                    found[member.name.partition("/")[2]] = file.read()
        return found


def _files(tree: Path) -> list[str]:
    return run("git", "ls-files", "-co", "--exclude-standard", cwd=tree).splitlines()


def _git(tree: Path, *words: str) -> None:
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
    date = f"{COMMITTED} +0000"
    env = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    run("git", *who, *words, cwd=tree, env=env)


@pytest.fixture(scope="module")
def commit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with this tree, as it is now, in one commit."""
    tree = tmp_path_factory.mktemp("commit")
    for name in _files(ROOT):
        here, there = ROOT / name, tree / name
        there.parent.mkdir(parents=True, exist_ok=True)
        if here.is_symlink():
            there.symlink_to(here.readlink())
        elif here.is_file():
            shutil.copy(here, there)
    _git(tree, "init", "-q")
    _git(tree, "add", "-A")
    _git(tree, "commit", "-q", "--no-verify", "-m", "All of it")
    return tree


def _cloned(commit: Path, tree: Path, umask: int = 0o022) -> Path:
    """A checkout by somebody with that umask."""
    old = os.umask(umask)
    try:
        run("git", "clone", "-q", commit, tree)
    finally:
        os.umask(old)
    return tree


@pytest.fixture(scope="module")
def builder() -> Path:
    """An interpreter with what builds and checks."""
    code = "import runpy, sys; print(runpy.run_path(sys.argv[1])['prepared']())"
    words = [sys.executable, "-B", "-c", code, str(ROOT / "tools" / "build")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode and any(sign in done.stderr for sign in OFFLINE):
        pytest.skip("the package index does not answer")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def _built(tree: Path, builder: Path, umask: int, **env: str) -> Built:
    tool = ("tools/build", "--python", builder)
    old = os.umask(umask)
    try:
        said = run(
            sys.executable, *tool, cwd=tree, env={"SOURCE_DATE_EPOCH": "", **env}
        )
    finally:
        os.umask(old)
    wheel = tree / "dist" / f"ascend_shims-{__version__}-py3-none-any.whl"
    return Built(
        tree, wheel, tree / "dist" / f"ascend_shims-{__version__}.tar.gz", said
    )


@pytest.fixture(scope="module")
def here(
    builder: Path, commit: Path, tmp_path_factory: pytest.TempPathFactory
) -> Built:
    tree = _cloned(commit, tmp_path_factory.mktemp("here") / "a")
    return _built(tree, builder, 0o022, TZ="UTC", LC_ALL="C.UTF-8")


@pytest.fixture(scope="module")
def elsewhere(
    builder: Path, commit: Path, tmp_path_factory: pytest.TempPathFactory
) -> Built:
    """Under another umask, time zone, locale and path; older files, and litter."""
    tree = tmp_path_factory.mktemp("elsewhere") / "far" / "from here" / "ascend-shims"
    _cloned(commit, tree, umask=0o077)
    for name in LITTER:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("litter")
    for name in _files(tree):
        os.utime(tree / name, (1_000_000_000, 1_000_000_000), follow_symlinks=False)
    env = {"TZ": "Asia/Shanghai", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    return _built(tree, builder, 0o077, **env)


def test_two_builds_have_the_same_bytes(here: Built, elsewhere: Built) -> None:
    assert here.tree != elsewhere.tree
    assert _digest(here.wheel) == _digest(elsewhere.wheel)
    assert _digest(here.sdist) == _digest(elsewhere.sdist)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_it_prints_what_it_made(here: Built) -> None:
    expected = [
        (
            f"{file.stat().st_size:,}",
            hashlib.sha256(file.read_bytes()).hexdigest(),
            file,
        )
        for file in (here.wheel, here.sdist)
    ]
    said = [line.split(maxsplit=2) for line in here.printed.splitlines()]
    assert [(size, digest, Path(file)) for size, digest, file in said] == expected
    assert {file.name for file in here.wheel.parent.iterdir()} == {
        here.wheel.name,
        here.sdist.name,
    }


def test_all_of_it_is_as_old_as_the_commit(here: Built) -> None:
    dates = {info.date_time for info in zipfile.ZipFile(here.wheel).infolist()}
    assert dates == {(2026, 1, 1, 0, 0, 0)}
    with tarfile.open(here.sdist) as archive:
        times = {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in archive}
    assert times == {(COMMITTED, 0, 0, "", "")}
    # In gzip's own header, too.
    assert here.sdist.read_bytes()[4:8] == COMMITTED.to_bytes(4, "little")


def test_modes_are_those_of_any_checkout(here: Built) -> None:
    *infos, record = zipfile.ZipFile(here.wheel).infolist()
    assert {info.external_attr >> 16 for info in infos} == {0o100644}
    # Which setuptools writes without a file.
    assert record.filename.endswith("/RECORD")
    assert record.external_attr >> 16 == 0o100664
    members = here.sdist_members()
    runnable = {name for name, member in members.items() if member.mode & 0o111}
    assert {"tools/build", "tools/test", ".ci/run"} <= runnable
    assert {member.mode for member in members.values()} == {0o644, 0o755}
    assert not any(name.startswith("ascend_shims/") for name in runnable)


def test_the_tree_makes_the_wheel_that_the_sdist_makes(
    here: Built, builder: Path, commit: Path, tmp_path: Path
) -> None:
    build = (builder, "-m", "build", "--no-isolation", "--wheel", "--outdir", tmp_path)
    tree = _cloned(commit, tmp_path / "tree")
    run(*build, tree, env={"SOURCE_DATE_EPOCH": str(COMMITTED)})
    assert _digest(tmp_path / here.wheel.name) == _digest(here.wheel)


def _without_links(tree: Path) -> Iterator[str]:
    for name in _files(tree):
        path = tree / name
        if path.is_symlink() and path.is_dir():
            yield from (f"{name}/{one.name}" for one in path.glob("*.py"))
        else:
            yield name


def test_the_sdist_has_what_git_has_and_nothing_else(elsewhere: Built) -> None:
    members = elsewhere.sdist_members()
    assert {member.type for member in members.values()} == {tarfile.REGTYPE}
    expected = set(_without_links(elsewhere.tree)) - {".gitignore"}
    about = {name for name in members if name.startswith("ascend_shims.egg-info/")}
    assert members.keys() - about - {"PKG-INFO"} == expected
    for name in ("LICENSE", "CHANGELOG.md", "docs/contributing.md", "tests/fresh.py"):
        assert name in expected
    files = elsewhere.sdist_files()
    assert b"litter" not in files["ascend_shims.egg-info/SOURCES.txt"]
    # setup.cfg alone is not as it is here: setuptools adds what it makes of it.
    for name in expected - {"setup.cfg"}:
        assert files[name] == (elsewhere.tree / name).read_bytes(), name


def test_what_is_linked_to_is_in_both(here: Built) -> None:
    archive, files = zipfile.ZipFile(here.wheel), here.sdist_files()
    linked = ["gap_registry.lock", "gap_registry.yaml"]
    linked += [f"patches/{path.name}" for path in (here.tree / "patches").glob("*.py")]
    assert len(linked) > 10
    for name in linked:
        text = (here.tree / name).read_bytes()
        assert archive.read(f"ascend_shims/{name}") == text
        assert files[f"ascend_shims/{name}"] == text


def test_the_wheel_has_the_package_and_nothing_else(elsewhere: Built) -> None:
    names = set(elsewhere.wheel_names())
    about = {name for name in names if ".dist-info/" in name}
    files = {f for f in _without_links(elsewhere.tree) if f.startswith("ascend_shims/")}
    read_by_people = {"ascend_shims/simnpu/README.md"}
    assert "ascend_shims/py.typed" in names
    assert names - about == files - read_by_people
    home = f"ascend_shims-{__version__}.dist-info"
    assert about == {
        f"{home}/{name}"
        for name in (
            "METADATA",
            "RECORD",
            "WHEEL",
            "entry_points.txt",
            "licenses/LICENSE",
            "top_level.txt",
        )
    }


def test_the_metadata(here: Built) -> None:
    archive = zipfile.ZipFile(here.wheel)
    text = archive.read(f"ascend_shims-{__version__}.dist-info/METADATA").decode()
    said = Parser().parse(io.StringIO(text))
    assert said["Name"] == "ascend-shims"
    assert said["Version"] == __version__
    assert said["License-Expression"] == "Apache-2.0"
    assert said["License-File"] == "LICENSE"
    assert said["Requires-Python"] == ">=3.10"
    assert said["Keywords"].startswith("vllm,ascend,npu")
    assert said["Description-Content-Type"] == "text/markdown"
    proved = [f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 14)]
    assert set(proved) <= set(said.get_all("Classifier", []))
    # There is no place to send anybody to.
    assert said.get_all("Project-URL") is None
    assert said["Home-page"] is None
    assert not re.findall(r"(?m)^(?:Author|Maintainer)(?:-email)?:", text)


def test_the_changelog_has_the_version(here: Built) -> None:
    heads = re.findall(r"(?m)^## (\S+)", here.sdist_files()["CHANGELOG.md"].decode())
    assert __version__ in heads


@pytest.mark.parametrize("said", ["yesterday", "-1", "1.5"])
def test_a_date_that_is_none_is_told(
    said: str, here: Built, builder: Path, tmp_path: Path
) -> None:
    done = _attempt(here.tree, builder, tmp_path, SOURCE_DATE_EPOCH=said)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        f"tools/build: SOURCE_DATE_EPOCH={said} is not a number of seconds, "
        "as 1767225600"
    )
    assert not (tmp_path / "out").exists()


def test_without_git_it_says_what_to_do(
    here: Built, builder: Path, tmp_path: Path
) -> None:
    (tmp_path / "tools").mkdir()
    tool = (here.tree / "tools" / "build").read_text()
    (tmp_path / "tools" / "build").write_text(tool)
    done = _attempt(tmp_path, builder, tmp_path)
    assert done.returncode == 2
    assert "python -m build --wheel" in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_does_not_build_leaves_nothing(
    builder: Path, commit: Path, tmp_path: Path
) -> None:
    tree = _cloned(commit, tmp_path / "tree")
    # Metadata that is refused.
    text = (tree / "setup.cfg").read_text()
    (tree / "setup.cfg").write_text(text.replace(f"= {__version__}\n", "= x.y\n"))
    done = _attempt(tree, builder, tmp_path)
    assert done.returncode == 2
    assert "not as committed: setup.cfg" in done.stderr
    assert "Invalid version: 'x.y'" in done.stderr
    assert not (tmp_path / "out").exists()


def _attempt(
    tree: Path, builder: Path, room: Path, **env: str
) -> subprocess.CompletedProcess[str]:
    words = ("tools/build", "--python", builder, "--out", room / "out")
    return subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=tree,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
