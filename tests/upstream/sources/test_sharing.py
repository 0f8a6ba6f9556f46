"""Several releases at once: what they have in common is fetched once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ascend_shims.upstream.fetching import Releases
from ascend_shims.upstream.sources import Sources, SourceUnavailable

from .conftest import Mirror, wheel

SAME = {f"pkg/same{i}.py": f"x = {i}\n".encode() * 200 for i in range(5)}


def _noise(size: int) -> bytes:
    import random

    return random.Random(size).randbytes(size)


def _release(mirror: Mirror, folder: Path, version: str) -> None:
    # Noise in between, so that no file comes along with another one.
    files: dict[str, bytes] = {"pkg/__init__.py": b""}
    for number, (path, data) in enumerate(
        {**SAME, "pkg/own.py": f"v = '{version}'\n".encode() * 300}.items()
    ):
        files[f"pkg/noise{number}.bin"] = _noise(70_000 + number)
        files[path] = data
    files["pkg/last.bin"] = _noise(99_000)
    mirror.add(wheel(folder / f"pkg-{version}-py3-none-any.whl", files))


@pytest.fixture
def three(mirror: Mirror, tmp_path: Path) -> Mirror:
    for version in ("1.0", "1.1", "1.2"):
        _release(mirror, tmp_path, version)
    return mirror


def _all(releases: Releases, *versions: str) -> dict[str, list[str]]:
    return {f"pkg=={v}": [*SAME, "pkg/own.py", "pkg/no_such.py"] for v in versions}


@pytest.mark.parametrize("cache", ["on", "off"])
def test_what_releases_share_is_fetched_once(
    three: Mirror, cache: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cache == "off":
        monkeypatch.setenv("ASCEND_SHIMS_CACHE", "off")
    releases = Releases(Sources())
    releases.fetch(_all(releases, "1.0", "1.1", "1.2"))
    assert len(three.got("/simple/")) == 1
    # Each release's directory, five files for all, and one file of each.
    assert len(three.got("/files/")) == 3 + len(SAME) + 3
    asked = len(three.asked)
    for version in ("1.0", "1.1", "1.2"):
        source = releases[f"pkg=={version}"]
        assert {path: source.read(path) for path in SAME} == SAME
        assert source.read("pkg/own.py").startswith(f"v = '{version}'".encode())
    assert len(three.asked) == asked


def test_a_later_command_has_what_the_releases_share(three: Mirror) -> None:
    first = Releases(Sources())
    first.fetch(_all(first, "1.0"))
    asked = len(three.got("/files/"))
    second = Releases(Sources())
    second.fetch(_all(second, "1.2"))
    assert len(three.got("/files/")) == asked + 2
    assert second.sources.stats.cached >= len(SAME)


def test_a_release_is_opened_once_and_ahead(three: Mirror) -> None:
    releases = Releases(Sources())
    for _ in range(5):
        releases.begin("pkg==1.0")
    assert releases["pkg==1.0"] is releases["pkg==1.0"]
    assert len(three.got("/files/")) == 1


def test_what_goes_wrong_is_raised_where_it_is_asked_for(three: Mirror) -> None:
    releases = Releases(Sources())
    releases.begin("pkg==9.9")
    releases.begin("nonsense ***")
    assert releases["pkg==1.0"].version == "1.0"
    with pytest.raises(SourceUnavailable, match=r"no release fits pkg==9\.9"):
        releases["pkg==9.9"]
    with pytest.raises(SourceUnavailable, match="names no source"):
        releases.fetch({"nonsense ***": ["a.py"]})


def test_threads_do_not_keep_the_interpreter() -> None:
    sources = Sources()
    held = threading.Event()
    sources.open = lambda *_: held.wait()  # type: ignore[method-assign,assignment]
    releases = Releases(sources)
    before = set(threading.enumerate())
    releases.begin("pkg==1.0")
    (thread,) = set(threading.enumerate()) - before
    assert thread.daemon
    held.set()


def test_marks_and_identity(three: Mirror) -> None:
    releases = Releases(Sources())
    one, two = (releases[f"pkg=={version}"] for version in ("1.0", "1.1"))
    assert one.is_far  # type: ignore[attr-defined]
    marks = [source.mark("pkg/same1.py") for source in (one, two)]  # type: ignore[attr-defined]
    assert marks[0] == marks[1]
    assert marks[0] is not None
    assert one.mark("pkg/own.py") != two.mark("pkg/own.py")  # type: ignore[attr-defined]
    assert one.mark("pkg/no.py") is None  # type: ignore[attr-defined]
    identities = {one.identity, two.identity}  # type: ignore[attr-defined]
    assert len(identities) == 2
    assert None not in identities
