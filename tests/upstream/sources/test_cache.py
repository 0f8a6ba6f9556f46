"""The cache: whatever happens to it, only right bytes come out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ascend_shims.upstream.sources import open_source
from ascend_shims.upstream.sources.cache import Cache, cache_directory

from .conftest import PLAIN, Mirror, sdist, wheel


def _entries(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_what_is_put_is_got(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    assert cache.get("kind", "a", "b") is None
    assert cache.put("kind", "a", "b", data=b"\0data")
    assert cache.get("kind", "a", "b") == b"\0data"
    assert Cache(tmp_path).get("kind", "a", "b") == b"\0data"
    assert cache.get("kind", "ab") is None
    assert cache.get("other", "a", "b") is None


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "longer"])
def test_a_damaged_entry_is_gone(tmp_path: Path, damage: str) -> None:
    cache = Cache(tmp_path)
    cache.put("kind", "key", data=b"x" * 100)
    (entry,) = _entries(tmp_path)
    raw = entry.read_bytes()
    changed = {
        "cut": raw[:-1],
        "flipped": raw[:-1] + b"y",
        "empty": b"",
        "longer": raw + b"x",
    }
    entry.write_bytes(changed[damage])
    assert cache.get("kind", "key") is None
    assert _entries(tmp_path) == []
    cache.put("kind", "key", data=b"new")
    assert cache.get("kind", "key") == b"new"


@pytest.mark.parametrize("kind", ["page", "listing", "member", "pack"])
def test_damaged_entries_are_fetched_again(
    mirror: Mirror, tmp_path: Path, kind: str
) -> None:
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl"))
    mirror.add(sdist(tmp_path / "pkg-2.0.tar.gz"))
    for version in ("1.0", "2.0"):
        open_source(f"pkg=={version}").read("pkg/a.py")
    folder = tmp_path / "cache" / "sources" / kind
    damaged = _entries(folder)
    assert len(damaged) >= 1
    for entry in damaged:
        entry.write_bytes(entry.read_bytes()[:-2] + b"??")
    before = len(mirror.asked)
    for version in ("1.0", "2.0"):
        source = open_source(f"pkg=={version}")
        assert source.read("pkg/a.py") == PLAIN["pkg/a.py"]
    assert len(mirror.asked) > before


def test_a_cache_that_cannot_be_written_is_done_without(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("ASCEND_SHIMS_CACHE", str(blocked))
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl"))
    mirror.add(sdist(tmp_path / "pkg-2.0.tar.gz"))
    source = open_source("pkg==1.0")
    source.prefetch(source.paths())
    count = source.stats.requests
    assert {path: source.read(path) for path in source.paths()} == PLAIN
    assert source.stats.requests == count
    source = open_source("pkg==2.0")
    assert {path: source.read(path) for path in source.paths()} == PLAIN
    assert blocked.read_text() == ""


def test_the_least_used_entries_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=10_000)
    for number in range(8):
        cache.put("kind", str(number), data=bytes(1000))
    old = time.time() - 200_000
    for entry in _entries(tmp_path):
        os.utime(entry, (old, old))
    assert cache.get("kind", "0") == bytes(1000)
    for number in range(8, 12):
        cache.put("kind", str(number), data=bytes(1000))
    cache.trim()
    assert sum(entry.stat().st_size for entry in _entries(tmp_path)) <= 10_000
    assert cache.get("kind", "0") == bytes(1000)
    assert [cache.get("kind", str(n)) for n in range(8, 12)] == [bytes(1000)] * 4
    assert [cache.get("kind", str(n)) for n in range(1, 8)].count(None) >= 2


def test_trimming_leaves_what_is_not_ours(tmp_path: Path) -> None:
    mine = tmp_path / "thesis.txt"
    mine.write_text("x" * 5000)
    cache = Cache(tmp_path, limit=100)
    for number in range(5):
        cache.put("kind", str(number), data=bytes(1000))
    cache.trim()
    assert mine.read_text() == "x" * 5000


def test_remains_of_killed_processes_are_cleared(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("kind", "key", data=b"x")
    folder = _entries(tmp_path)[0].parent
    old, new = folder / "tmp-old", folder / "tmp-new"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache.trim()
    assert not old.exists()
    assert new.exists()
    assert cache.get("kind", "key") == b"x"


_WRITER = """
import sys
from pathlib import Path
from ascend_shims.upstream.sources.cache import Cache
cache = Cache(Path(sys.argv[1]), limit=3_000_000)
print("go", flush=True)
for turn in range(10**9):
    for key in range(40):
        data = bytes([key]) * 50_000
        cache.put("kind", str(key), data=data)
        found = cache.get("kind", str(key))
        if found not in (None, data):
            sys.exit("wrong bytes")
    print(turn, flush=True)
"""


def test_two_writers_one_of_them_killed(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(2)
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"go\n"
            # It has written everything once, and is at it again.
            assert writer.stdout.readline() == b"0\n"
        writers[0].kill()
        writers[0].wait()
        assert writers[1].stdout is not None
        turns = [writers[1].stdout.readline() for _ in range(5)]
        assert turns == [b"%d\n" % turn for turn in range(1, 6)]
        assert writers[1].poll() is None
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    cache = Cache(tmp_path)
    found = {key: cache.get("kind", str(key)) for key in range(40)}
    whole = {key: data for key, data in found.items() if data is not None}
    assert len(whole) > 30
    assert all(data == bytes([key]) * 50_000 for key, data in whole.items())


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({"ASCEND_SHIMS_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "/c"),
        ({"ASCEND_SHIMS_CACHE": "OFF", "HOME": "/h"}, None),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/ascend-shims"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/h/.cache/ascend-shims"),
        ({"HOME": "/h"}, "/h/.cache/ascend-shims"),
        ({}, None),
    ],
)
def test_where_it_lies(environ: dict[str, str], place: str | None) -> None:
    assert cache_directory(environ) == (Path(place) if place else None)


@pytest.mark.parametrize("name", ["new", "new/deep", "link", "."])
def test_a_folder_that_can_be_written_is_not_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there")
    before = sorted(tmp_path.rglob("*"))
    assert Cache(tmp_path / name).refused() is None
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("file", "Not a directory"),
        ("file/below", "Not a directory"),
        ("gone", "No such file or directory"),
        ("/proc/shims", "No such file or directory"),
    ],
)
def test_one_that_cannot_is(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "gone").symlink_to("nowhere")
    folder = tmp_path / name
    assert not Cache(folder).put("kind", "key", data=b"x")
    assert Cache(folder).refused() == f"{folder} cannot be written ({why})"


def test_nothing_is_refused_where_nothing_is_to_be_kept() -> None:
    assert Cache(None).refused() is None
