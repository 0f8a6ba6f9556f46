"""Released wheels: few bytes, few requests, and never the wrong bytes."""

from __future__ import annotations

import io
import random
import threading
from pathlib import Path

import pytest
from rich.console import Console

from ascend_shims.upstream.source import SourceError
from ascend_shims.upstream.sources import Bar, SourceUnavailable, open_source
from ascend_shims.upstream.sources.remote import groups
from ascend_shims.upstream.sources.zips import Member

from .conftest import PLAIN, Mirror, sdist, wheel


def _noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


class _Told:
    def __init__(self) -> None:
        self.said: list[object] = []
        self.received = 0

    def begin(self, what: str, size: int | None) -> None:
        self.said.append((what, size))

    def advance(self, size: int) -> None:
        self.received += size

    def end(self) -> None:
        self.said.append("end")


def _spread(tmp_path: Path) -> dict[str, bytes]:
    """Sixty modules; after each tenth lies half a megabyte of something else."""
    files = {"pkg/__init__.py": b""}
    for number in range(60):
        files[f"pkg/m{number:02}.py"] = b"# " + _noise(number, 900).hex().encode()
        if number % 10 == 9:
            files[f"pkg/lib{number}.so"] = _noise(number, 500_000)
    return files


def test_a_wheel_of_500_mb_costs_a_few_kilobytes(
    mirror: Mirror, tmp_path: Path
) -> None:
    big = wheel(tmp_path / "pkg-1.0-py3-none-any.whl", before=500_000_000)
    mirror.hashes = False
    mirror.add(big)
    source = open_source("pkg==1.0")
    assert source.label == "pkg 1.0"
    assert source.paths() == tuple(sorted(PLAIN))
    assert {path: source.read(path) for path in source.paths()} == PLAIN
    assert source.stats.bytes < 100_000
    assert mirror.sent == source.stats.bytes
    assert source.stats.requests == len(mirror.asked)


def test_neighbours_come_with_one_request(mirror: Mirror, tmp_path: Path) -> None:
    files = _spread(tmp_path)
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl", files))
    source = open_source("pkg==1.0")
    before = source.stats
    wanted = [path for path in source.paths() if path < "pkg/m40"]
    assert len(wanted) == 41
    source.prefetch([*wanted, "pkg/unknown.py"])
    assert source.stats.requests - before.requests == 4
    payload = sum(len(files[path]) for path in wanted)
    assert source.stats.bytes - before.bytes < payload
    after = source.stats
    assert [source.read(path) for path in wanted] == [files[path] for path in wanted]
    assert source.stats == after


def test_a_long_central_directory_is_one_more_request(
    mirror: Mirror, tmp_path: Path
) -> None:
    files = {f"pkg/module_number_{number}.py": b"" for number in range(1500)}
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl", files))
    source = open_source("pkg==1.0")
    assert len(source.paths()) == 1500
    assert len(mirror.got("/files")) == 2


def test_the_size_is_said_before_the_bar() -> None:
    text = io.StringIO()
    bar = Bar(Console(file=text, width=80))
    bar.begin("pkg-1.0.tar.gz", 12_345_678)
    bar.advance(1000)
    bar.end()
    bar.begin("other.whl", None)
    bar.end()
    assert text.getvalue() == (
        "downloading pkg-1.0.tar.gz, 12.3 MB\ndownloading other.whl, of unknown size\n"
    )


def test_downloads_side_by_side_have_a_bar_each() -> None:
    text = io.StringIO()
    bar = Bar(Console(file=text, width=80, force_terminal=True))
    bar.count("checked", 0, 12)
    both = threading.Barrier(2)

    def download(name: str) -> None:
        bar.begin(name, 2_000_000)
        both.wait()
        bar.advance(1_000_000)
        both.wait()
        bar.end()

    threads = [threading.Thread(target=download, args=(n,)) for n in ("a.gz", "b.gz")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bar.count("checked", 12, 12)
    shown = text.getvalue()
    assert "downloading a.gz, 2.0 MB" in shown
    assert "downloading b.gz, 2.0 MB" in shown
    assert "0/12" in shown


def test_groups_keep_to_a_size_and_to_neighbours() -> None:
    def member(start: int, size: int) -> Member:
        return Member(f"m{start}", start, start + size, size, size, 0, 0)

    members = [member(i * 100_000, 90_000) for i in range(30)]
    far = member(10_000_000, 10)
    found = groups([far, *reversed(members)])
    assert [m for group in found for m in group] == [*members, far]
    assert max(g[-1].end - g[0].start for g in found) <= 1024 * 1024
    assert len(found) == 4
    assert groups([]) == []


def test_a_module_read_alone_is_one_request(mirror: Mirror, tmp_path: Path) -> None:
    files = _spread(tmp_path)
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl", files))
    source = open_source("pkg==1.0")
    before = source.stats.requests
    assert source.read("pkg/m05.py") == files["pkg/m05.py"]
    assert source.read("pkg/m05.py") == files["pkg/m05.py"]
    assert source.stats.requests == before + 1


@pytest.mark.parametrize("ranges", ["wrong", "short", "liar"])
def test_wrong_answers_to_ranges_are_errors_of_the_file(
    mirror: Mirror, tmp_path: Path, ranges: str
) -> None:
    files = _spread(tmp_path)
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl", files))
    source = open_source("pkg==1.0")
    mirror.ranges = ranges
    with pytest.raises(SourceError, match=r"pkg/m05\.py of pkg 1\.0: "):
        source.read("pkg/m05.py")
    source.prefetch(["pkg/m05.py", "pkg/m15.py"])
    mirror.ranges = "yes"
    assert source.read("pkg/m05.py") == files["pkg/m05.py"]


@pytest.mark.parametrize("sizes", [True, False])
def test_without_ranges_the_sdist_comes_as_a_whole(
    mirror: Mirror, tmp_path: Path, sizes: bool
) -> None:
    files = {**PLAIN, "pkg/data.so": _noise(0, 200_000)}
    mirror.ranges, mirror.sizes = "ignored", sizes
    big = mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl", files))
    small = mirror.add(sdist(tmp_path / "pkg-1.0.tar.gz"))
    told = _Told()
    source = open_source("pkg==1.0", progress=told)
    assert {path: source.read(path) for path in source.paths()} == PLAIN
    assert told.said == [(small.name, small.stat().st_size), "end"]
    assert told.received == small.stat().st_size
    assert source.stats.bytes < big.stat().st_size
    again = open_source("pkg==1.0", offline=True)
    assert {path: again.read(path) for path in again.paths()} == PLAIN


def test_without_ranges_and_sdist_the_wheel_comes_as_a_whole(
    mirror: Mirror, tmp_path: Path
) -> None:
    mirror.ranges = "ignored"
    file = mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl"))
    told = _Told()
    source = open_source("pkg==1.0", progress=told)
    assert {path: source.read(path) for path in source.paths()} == PLAIN
    assert told.said == [(file.name, file.stat().st_size), "end"]


def test_an_sdist_alone_leaves_its_tests_out(mirror: Mirror, tmp_path: Path) -> None:
    files = {
        **{f"src/{name}": data for name, data in PLAIN.items()},
        "setup.py": b"raise SystemExit\n",
        "tests/__init__.py": b"",
        "tests/test_a.py": b"",
    }
    mirror.add(sdist(tmp_path / "pkg-1.0.tar.gz", files))
    source = open_source("pkg==1.0")
    assert {path: source.read(path) for path in source.paths()} == PLAIN


def test_a_download_goes_on_where_it_broke_off(mirror: Mirror, tmp_path: Path) -> None:
    files = {**PLAIN, "pkg/noise.txt": _noise(1, 300_000)}
    file = mirror.add(sdist(tmp_path / "pkg-1.0.tar.gz", files))
    mirror.broken = 1
    source = open_source("pkg==1.0")
    assert {path: source.read(path) for path in source.paths()} == PLAIN
    asked = [r.headers.get("Range") for r in mirror.got("/files/")]
    assert asked == [None, f"bytes={file.stat().st_size // 2}-"]


def test_a_download_that_is_not_what_the_index_lists_is_refused(
    mirror: Mirror, tmp_path: Path
) -> None:
    file = mirror.add(sdist(tmp_path / "pkg-1.0.tar.gz"))
    page, _ = mirror.body()
    mirror.page = None
    digest = page.split(b'"sha256": "')[1][:64]
    wrong = page.replace(digest, b"0" * 64)
    mirror.body = lambda: (wrong, "application/vnd.pypi.simple.v1+json")  # type: ignore[method-assign]
    with pytest.raises(SourceUnavailable, match=f"{file.name} is not the one"):
        open_source("pkg==1.0")


def test_a_wheel_for_nothing_but_the_cpu_comes_first(
    mirror: Mirror, tmp_path: Path
) -> None:
    names = [
        "pkg-1.0-cp38-abi3-manylinux_2_28_x86_64.whl",
        "pkg-1.0-cp38-abi3-manylinux_2_28_aarch64.whl",
        "pkg-1.0+cpu-cp38-abi3-manylinux_2_28_x86_64.whl",
    ]
    for name, size in zip(names, (3000, 2000, 9000), strict=True):
        files = {**PLAIN, "pkg/x.so": _noise(0, size)}
        mirror.add(wheel(tmp_path / name, files))
    assert open_source("pkg==1.0").label == "pkg 1.0+cpu"
    del mirror.files[names[2]]
    mirror.add(wheel(tmp_path / "pkg-1.1-1-cp38-abi3-linux_s390x.whl"))
    open_source("pkg==1.1")
    assert mirror.asked[-1].path.endswith("s390x.whl")


def test_a_wheel_for_any_platform_comes_before_builds(
    mirror: Mirror, tmp_path: Path
) -> None:
    mirror.add(wheel(tmp_path / "pkg-1.0.0+cu129-cp38-abi3-linux_x86_64.whl"))
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl"))
    assert open_source("pkg==1.0").label == "pkg 1.0"
    assert open_source("pkg@latest").label == "pkg 1.0"
    assert open_source("pkg==1.0+cu129").label == "pkg 1.0.0+cu129"


def test_the_smaller_platform_wheel_is_read(mirror: Mirror, tmp_path: Path) -> None:
    for name, size in (("x86_64", 3000), ("aarch64", 2000)):
        files = {**PLAIN, "pkg/x.so": _noise(0, size)}
        mirror.add(wheel(tmp_path / f"pkg-1.0-cp38-abi3-linux_{name}.whl", files))
    open_source("pkg==1.0")
    assert {r.path for r in mirror.got("/files/")} == {
        "/files/pkg-1.0-cp38-abi3-linux_aarch64.whl"
    }


def test_a_broken_wheel_gives_way_to_the_next_candidate(
    mirror: Mirror, tmp_path: Path
) -> None:
    bad = tmp_path / "pkg-1.0-py3-none-any.whl"
    bad.write_bytes(b"this is no zip")
    mirror.add(bad)
    mirror.add(sdist(tmp_path / "pkg-1.0.tar.gz"))
    source = open_source("pkg==1.0")
    assert {path: source.read(path) for path in source.paths()} == PLAIN
    del mirror.files["pkg-1.0.tar.gz"]
    mirror.files["pkg-2.0-py3-none-any.whl"] = bad
    with pytest.raises(SourceUnavailable, match="not a zip archive"):
        open_source("pkg==2.0")
