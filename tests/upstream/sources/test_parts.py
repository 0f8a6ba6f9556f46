"""A wheel whose lock says where some of its files lie: its list stays where it is."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from ascend_shims.upstream.fetching import Releases
from ascend_shims.upstream.lock import Baseline, Lock, load_lock, save_lock
from ascend_shims.upstream.partial import texts_of
from ascend_shims.upstream.source import SourceError
from ascend_shims.upstream.sources import Sources
from ascend_shims.upstream.sources.parts import Part, PartSource, part_of

from .conftest import PLAIN, Mirror, sdist, wheel

FILES = {
    **PLAIN,
    # As in a release: its list is longer than what is read of it.
    **{f"pkg/models/model_number_{number:04}.py": b"" for number in range(2000)},
    "other/__init__.py": b"",
}
READ = ["pkg/__init__.py", "pkg/a.py", "pkg/sub/b.py"]

Make = Callable[..., Part]


@pytest.fixture
def part(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Part:
    """What a lock says of the wheel, which was read whole by somebody else."""
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl", FILES))
    monkeypatch.setenv("ASCEND_SHIMS_CACHE", "off")
    found = part_of(Sources().open("pkg==1.0"), READ, ["pkg.gone", "pkg.a"])
    monkeypatch.setenv("ASCEND_SHIMS_CACHE", str(tmp_path / "cache"))
    mirror.asked.clear()
    mirror.bodies.clear()
    assert found is not None
    return found


def _opened(part: Part) -> PartSource:
    source = Sources().open("pkg==1.0", part)
    assert isinstance(source, PartSource)
    return source


def _listed(mirror: Mirror) -> bool:
    """Whether the list of files was fetched, which is most of what there is."""
    return mirror.sent > 100_000


def test_what_a_lock_knows_of_a_wheel(part: Part) -> None:
    assert part.hash.startswith("sha256=")
    assert list(part.members) == READ
    assert all(len(place.split()) == 6 for place in part.members.values())
    assert (part.roots, part.absent) == (("other", "pkg"), ("pkg.gone",))


def test_only_a_wheel_with_a_hash_has_places(mirror: Mirror, tmp_path: Path) -> None:
    mirror.hashes = False
    mirror.add(wheel(tmp_path / "pkg-1.0-py3-none-any.whl"))
    mirror.add(sdist(tmp_path / "pkg-2.0.tar.gz"))
    assert part_of(Sources().open("pkg==1.0"), READ, []) is None
    assert part_of(Sources().open("pkg==2.0"), READ, []) is None


def test_what_is_known_is_read_without_the_list(mirror: Mirror, part: Part) -> None:
    source = _opened(part)
    assert (source.label, source.version) == ("pkg 1.0", "1.0")
    assert {path: source.read(path) for path in READ} == {p: FILES[p] for p in READ}
    assert not _listed(mirror)
    assert source.is_far
    assert source.problems == {}
    assert source.stats.bytes == mirror.sent


@pytest.mark.parametrize(
    ("module", "path"),
    [
        ("pkg", "pkg/__init__.py"),
        ("pkg.a", "pkg/a.py"),
        ("pkg.sub.b", "pkg/sub/b.py"),
        ("pkg.gone", None),
        ("pkg.gone.deeper", None),
        ("pkg.a.inside", None),
        ("torch.nn", None),
        ("abc", None),
    ],
)
def test_what_is_told_of_modules_without_the_list(
    mirror: Mirror, part: Part, module: str, path: str | None
) -> None:
    texts = texts_of(_opened(part))
    assert texts.paths.get(module) == path
    assert (module in texts.paths) == (path is not None)
    assert (module in texts.packages) == (path is not None)
    assert not _listed(mirror)


def test_a_package_around_a_known_module_is_one(mirror: Mirror, part: Part) -> None:
    texts = texts_of(_opened(part))
    assert "pkg.sub" in texts.packages
    assert not _listed(mirror)


@pytest.mark.parametrize(
    ("module", "path"),
    [
        ("pkg.models.model_number_0007", "pkg/models/model_number_0007.py"),
        ("pkg.sub", "pkg/sub/__init__.py"),
        ("other", "other/__init__.py"),
        ("pkg.nothing", None),
    ],
)
def test_for_another_module_the_list_is_fetched_once(
    mirror: Mirror, part: Part, module: str, path: str | None
) -> None:
    source = _opened(part)
    texts = texts_of(source)
    assert texts.paths.get(module) == path
    assert (module in texts.packages) == (path is not None)
    assert _listed(mirror)
    before = len(mirror.asked)
    assert len(texts.paths) == len(FILES)
    assert sorted(source.paths()) == sorted(FILES)
    if path is not None:
        assert source.mark(path) is not None
        assert source.read(path) == FILES[path]
    assert len(mirror.asked) <= before + 1
    with pytest.raises(SourceError, match="there is no such file"):
        source.read("pkg/nothing.py")


def test_the_same_texts_as_without_a_lock(mirror: Mirror, part: Part) -> None:
    partial, whole = texts_of(_opened(part)), texts_of(Sources().open("pkg==1.0"))
    assert dict(partial.paths) == dict(whole.paths)
    assert partial.names == whole.names
    assert partial.holding("return") == whole.holding("return") == ("pkg.sub.b",)
    assert all(partial.digest(name) == whole.digest(name) for name in whole.paths)


def test_several_are_fetched_with_few_requests(mirror: Mirror, part: Part) -> None:
    releases = Releases(Sources())
    releases.begin("pkg==1.0", part)
    both = [f"{stem}{end}" for stem in ("pkg/a", "pkg/sub/b") for end in _ENDS]
    releases.fetch({"pkg==1.0": [*both, "pkg/gone.py", "pkg/gone/__init__.py"]})
    asked = len(mirror.asked)
    source = releases["pkg==1.0"]
    assert [source.read(path) for path in READ[1:]] == [FILES[p] for p in READ[1:]]
    assert len(mirror.asked) == asked
    assert not _listed(mirror)


_ENDS = (".py", "/__init__.py")


def _other_wheel(part: Part) -> Part:
    return msgspec.structs.replace(part, hash=f"sha256={'0' * 64}")


def _other_place(part: Part) -> Part:
    start, *rest = part.members["pkg/__init__.py"].split()
    place = " ".join([str(int(start) + 1), *rest])
    return msgspec.structs.replace(
        part, members={**part.members, "pkg/__init__.py": place}
    )


def _no_number(part: Part) -> Part:
    return msgspec.structs.replace(part, members={"pkg/a.py": "0 1 2 3 x 5"})


def _too_few(part: Part) -> Part:
    return msgspec.structs.replace(part, members={"pkg/a.py": "0 1"})


def _none(part: Part) -> Part:
    return msgspec.structs.replace(part, members={})


@pytest.mark.parametrize(
    "change", [_other_wheel, _other_place, _no_number, _too_few, _none]
)
def test_places_of_another_file_are_not_gone_by(
    part: Part, change: Callable[[Part], Part]
) -> None:
    source = Sources().open("pkg==1.0", change(part))
    assert not isinstance(source, PartSource)
    assert source.read("pkg/a.py") == FILES["pkg/a.py"]


def test_a_server_that_gives_no_parts_is_read_as_without_a_lock(
    mirror: Mirror, part: Part
) -> None:
    mirror.ranges = "ignored"
    source = Sources().open("pkg==1.0", part)
    assert not isinstance(source, PartSource)
    assert source.read("pkg/sub/b.py") == FILES["pkg/sub/b.py"]


@pytest.mark.parametrize("ranges", ["wrong", "short", "liar"])
def test_a_server_that_gives_other_parts_later_is_not_believed(
    mirror: Mirror, part: Part, ranges: str
) -> None:
    mirror.ranges = ranges
    source = _opened(part)
    with pytest.raises(SourceError, match=r"pkg/sub/b\.py of pkg 1\.0: the server"):
        source.read("pkg/sub/b.py")


def test_a_list_that_cannot_be_had_is_told(mirror: Mirror, part: Part) -> None:
    source = _opened(part)
    texts = texts_of(source)
    mirror.statuses["/files/"] = 503
    assert texts.paths.get("pkg.models.model_number_0007") is None
    assert source.read("pkg/__init__.py") == b""
    ((label, reason),) = source.problems.items()
    assert label == "pkg 1.0"
    assert reason.startswith("its list of files: ")


def test_offline_the_list_is_gone_by(mirror: Mirror, part: Part) -> None:
    Sources().open("pkg==1.0")
    source = Sources(offline=True).open("pkg==1.0", part)
    assert not isinstance(source, PartSource)
    assert len(source.paths()) == len(FILES)


def test_a_lock_keeps_it(part: Part, tmp_path: Path) -> None:
    path = tmp_path / "gap_registry.lock"
    known = Baseline({}, {"pkg.a": "00"}, "11", {}, part)
    lock = Lock({"pkg==1.0": known, "pkg==2.0": dataclasses.replace(known, part=None)})
    save_lock(lock, path)
    assert load_lock(path) == lock
    parts = [baseline.part for baseline in load_lock(path).baselines.values()]
    assert parts == [part, None]
    # A lock is up to date wherever the same release was read from.
    assert known == dataclasses.replace(known, part=None)
    text = json.loads(path.read_text())
    del text["baselines"]["pkg==1.0"]["part"]
    path.write_text(json.dumps(text))
    # One that was written before there were places.
    assert load_lock(path).baselines["pkg==1.0"].part is None
