"""The archive is whole or not there, for its owner alone, and replaces nothing."""

from __future__ import annotations

import errno
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ascend_shims.doctor import bundle
from ascend_shims.doctor.bundle import BundleError, check_target, pack, write_bundle


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_packed_comes_out() -> None:
    data = pack({"a.json": {"x": ["é"]}, "b.txt": "text\n"})
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        found = {}
        for member in tar:
            file = tar.extractfile(member)
            assert file is not None
            found[member.name] = file.read()
            assert (member.mode, member.uid, member.uname) == (0o600, 0, "")
            assert member.mtime == 0
    assert json.loads(found["shims-report/a.json"]) == {"x": ["é"]}
    assert found["shims-report/b.txt"] == b"text\n"
    assert len(found) == 2
    assert pack({"a.json": {"x": ["é"]}, "b.txt": "text\n"}) == data


def test_it_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_bundle(tmp_path / "r.tgz", b"data", force=False)
    finally:
        os.umask(before)
    assert (tmp_path / "r.tgz").read_bytes() == b"data"
    assert (tmp_path / "r.tgz").stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["r.tgz"]


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_what_is_there_stays_without_force(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "r.tgz", tmp_path / "other"
    if kind == "file":
        path.write_bytes(b"old")
    else:
        path.symlink_to(other)
    if kind == "link":
        other.write_bytes(b"old")
    before = names(tmp_path)
    with pytest.raises(BundleError, match="add --force"):
        write_bundle(path, b"new", force=False)
    assert names(tmp_path) == before
    write_bundle(path, b"new", force=True)
    assert (path.read_bytes(), path.is_symlink()) == (b"new", False)
    # What a link led to is not what was named.
    assert not other.exists() or other.read_bytes() == b"old"


def test_what_comes_to_be_there_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.tgz"
    real = os.fsync

    def fsync(handle: int) -> None:
        path.write_bytes(b"theirs")
        real(handle)

    monkeypatch.setattr(bundle.os, "fsync", fsync)
    with pytest.raises(BundleError, match="is there already"):
        write_bundle(path, b"ours", force=False)
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["r.tgz"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full")])
def test_an_interrupted_one_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fsync(_handle: int) -> None:
        raise error

    monkeypatch.setattr(bundle.os, "fsync", fsync)
    with pytest.raises((BundleError, KeyboardInterrupt)):
        write_bundle(tmp_path / "r.tgz", b"data", force=True)
    assert names(tmp_path) == []


def test_a_file_system_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_words: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(bundle.os, "link", link)
    write_bundle(tmp_path / "r.tgz", b"data", force=False)
    assert (tmp_path / "r.tgz").read_bytes() == b"data"
    assert names(tmp_path) == ["r.tgz"]


def test_places_where_none_can_be(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is a directory; name a file in it"):
        check_target(tmp_path, force=True)
    with pytest.raises(BundleError, match="there is no directory"):
        check_target(tmp_path / "none" / "r.tgz", force=True)
    with pytest.raises(BundleError, match=r"name it r\.tar\.gz"):
        check_target(tmp_path / "r.zip", force=False)
    check_target(tmp_path / "r.tgz", force=False)
    check_target(tmp_path / "r.tar.gz", force=False)
