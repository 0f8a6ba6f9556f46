"""Revisions of a clone, read from its objects, the work tree left alone."""

from __future__ import annotations

import gc
import os
import subprocess
from pathlib import Path

import pytest

from ascend_shims.upstream.source import SourceError
from ascend_shims.upstream.sources import open_source
from ascend_shims.upstream.sources.errors import BadSource
from ascend_shims.upstream.sources.revisions import revision_version

from .conftest import PLAIN


def _git(where: Path, *arguments: str) -> str:
    who = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.invalid",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.invalid",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "file",
    }
    done = subprocess.run(
        ["git", *arguments],
        cwd=where,
        env={**os.environ, **who},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def _write(root: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Two commits, tagged v1.0 and v1.1, and a dirty tree on top."""
    root = tmp_path / "clone"
    root.mkdir()
    _git(root, "init", "-q", "-b", "main")
    _write(root, {**PLAIN, "tests/__init__.py": b"", "setup.py": b"1/0"})
    _git(root, "add", ".")
    _git(root, "commit", "-qm", "one")
    _git(root, "tag", "v1.0")
    _write(root, {"pkg/a.py": b"A = 2\n", "pkg/né w.py": b"N\n"})
    (root / "pkg" / "same.py").symlink_to("sub/b.py")
    (root / "pkg" / "loop.py").symlink_to("loop.py")
    (root / "pkg" / "out.py").symlink_to("/etc/passwd")
    _git(root, "add", ".")
    _git(root, "commit", "-qm", "two")
    _git(root, "tag", "v1.1")
    _write(root, {"pkg/a.py": b"dirty\n", "pkg/new.py": b"untracked\n"})
    return root


def test_revisions_of_a_dirty_clone(clone: Path) -> None:
    before = _git(clone, "status", "--porcelain"), (clone / ".git/index").stat()
    old = open_source(f"git:{clone}@v1.0")
    assert {p: old.read(p) for p in old.paths()} == PLAIN
    assert old.version == "1.0"
    assert old.label.startswith("pkg v1.0 (")
    new = open_source(f"git:{clone}@main")
    assert new.read("pkg/a.py") == b"A = 2\n"
    assert new.read("pkg/né w.py") == b"N\n"
    assert new.version == "1.1"
    assert "pkg/new.py" not in new.paths()
    status = (clone / ".git/index").stat()
    after = _git(clone, "status", "--porcelain"), status
    assert after[0] == before[0]
    assert after[1].st_mtime_ns == before[1].st_mtime_ns
    assert (clone / "pkg" / "a.py").read_bytes() == b"dirty\n"


def test_short_names_of_commits_are_no_versions(clone: Path) -> None:
    commit = _git(clone, "rev-parse", "v1.0")
    # Such a name is there for one in some dozens of commits.
    assert revision_version(clone, commit[:7], commit) == "1.0"
    assert revision_version(clone, "1.7", commit) == "1.7"
    _git(clone, "tag", "-d", "v1.0")
    assert revision_version(clone, commit[:7], commit) is None
    assert revision_version(clone, "12345678", "12345678" + "0" * 32) is None


def test_links_in_a_revision(clone: Path) -> None:
    source = open_source(f"git:{clone}@v1.1")
    assert source.read("pkg/same.py") == PLAIN["pkg/sub/b.py"]
    for name, why in (("loop", "circle"), ("out", "nothing inside"), ("no", "no such")):
        with pytest.raises(SourceError, match=why):
            source.read(f"pkg/{name}.py")


def test_bare_shallow_and_worktree_clones(clone: Path, tmp_path: Path) -> None:
    _git(tmp_path, "clone", "-q", "--bare", str(clone), "bare.git")
    _git(tmp_path, "clone", "-q", "--depth=1", clone.as_uri(), "shallow")
    _git(clone, "worktree", "add", "-q", str(tmp_path / "tree"), "v1.0")
    for name, revision in (("bare.git", "v1.1"), ("shallow", "HEAD")):
        source = open_source(f"git:{tmp_path / name}@{revision}")
        assert source.read("pkg/a.py") == b"A = 2\n"
    assert open_source(f"git:{tmp_path / 'tree'}@HEAD").read("pkg/a.py") == b"A = 1\n"
    first = _git(clone, "rev-parse", "v1.0")
    with pytest.raises(BadSource, match="has no revision"):
        open_source(f"git:{tmp_path / 'shallow'}@{first}")


def test_a_partial_clone_fetches_nothing(clone: Path, tmp_path: Path) -> None:
    _git(clone, "config", "uploadpack.allowFilter", "true")
    arguments = ("--filter=blob:none", "--no-checkout", clone.as_uri(), "partial")
    _git(tmp_path, "clone", "-q", *arguments)
    source = open_source(f"git:{tmp_path / 'partial'}@v1.0")
    assert "pkg/a.py" in source.paths()
    with pytest.raises(SourceError, match="lacks this object"):
        source.read("pkg/a.py")
    packs = list((tmp_path / "partial/.git/objects/pack").glob("*.pack"))
    assert len(packs) == 1


def test_a_folder_inside_a_clone(tmp_path: Path) -> None:
    root = tmp_path / "mono"
    root.mkdir()
    _git(root, "init", "-q")
    _write(root, {f"py/src/{name}": data for name, data in PLAIN.items()})
    _write(root, {"other/__init__.py": b""})
    _git(root, "add", ".")
    _git(root, "commit", "-qm", "one")
    source = open_source(f"git:{root / 'py'}@HEAD")
    assert {p: source.read(p) for p in source.paths()} == PLAIN


def test_nothing_that_the_clone_configures_is_run(clone: Path, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    script = tmp_path / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch '{mark}'\n")
    script.chmod(0o755)
    for option in (
        "core.fsmonitor",
        "core.pager",
        "filter.x.smudge",
        "core.sshCommand",
    ):
        _git(clone, "config", option, str(script))
    (clone / ".git/info/attributes").write_text("*.py filter=x diff=x\n")
    source = open_source(f"git:{clone}@v1.0")
    assert {p: source.read(p) for p in source.paths()} == PLAIN
    assert not mark.exists()


def test_variables_of_a_surrounding_git_do_not_count(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert open_source(f"git:{clone}@v1.0").read("pkg/a.py") == b"A = 1\n"


def test_a_huge_file_is_an_error_of_the_file(clone: Path) -> None:
    _write(clone, {"pkg/huge.py": bytes(20_000_000)})
    _git(clone, "add", ".")
    _git(clone, "commit", "-qm", "three")
    source = open_source(f"git:{clone}@HEAD")
    with pytest.raises(SourceError, match="20000000 bytes are more"):
        source.read("pkg/huge.py")
    assert source.read("pkg/a.py") == b"dirty\n"


@pytest.mark.parametrize(
    "revision", ["nothing", "--all", "-h", "v1.0..v1.1", "HEAD:pkg", "$(touch x)", ";"]
)
def test_revisions_that_are_none(clone: Path, revision: str) -> None:
    with pytest.raises(BadSource):
        open_source(f"git:{clone}@{revision}")


def test_paths_that_are_no_clone(tmp_path: Path) -> None:
    with pytest.raises(BadSource, match="not a directory"):
        open_source(f"git:{tmp_path / 'absent'}@HEAD")
    with pytest.raises(BadSource, match="not a git repository"):
        open_source(f"git:{tmp_path}@HEAD")
    for spec in ("git:", "git:x@", "git:@x"):
        with pytest.raises(BadSource, match="write git:PATH@REVISION"):
            open_source(spec)


def test_its_process_ends_with_the_source(clone: Path) -> None:
    source = open_source(f"git:{clone}@v1.0")
    source.read("pkg/a.py")
    process = source._objects._process  # type: ignore[attr-defined]
    assert process.poll() is None
    del source
    gc.collect()
    assert process.poll() == 0
