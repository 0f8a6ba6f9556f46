"""Folders, archives on disk, this interpreter; and archives made to do harm."""

from __future__ import annotations

import io
import struct
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ascend_shims.upstream.source import SourceError
from ascend_shims.upstream.sources import open_source, packs, zips
from ascend_shims.upstream.sources.errors import BadSource
from ascend_shims.upstream.sources.layout import find_layout, unsafe

from .conftest import PLAIN, Mirror, sdist, wheel


def _tree(root: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


@pytest.fixture
def marked(tmp_path: Path) -> Iterator[Path]:
    """A file that any code run by mistake creates."""
    mark = tmp_path / "executed"
    yield mark
    assert not mark.exists()


_CHECKOUT = {
    **PLAIN,
    "setup.py": b"raise SystemExit\n",
    "tests/__init__.py": b"",
    "tests/test_a.py": b"",
    "pkg/data.txt": b"",
}


def test_a_checkout_a_source_folder_and_a_package(tmp_path: Path) -> None:
    root = _tree(tmp_path / "repo", _CHECKOUT)
    nested = _tree(tmp_path / "nested" / "src", dict(PLAIN)).parent
    for path in (root, nested, root / "pkg"):
        source = open_source(str(path))
        assert {p: source.read(p) for p in source.paths()} == PLAIN
    with pytest.raises(BadSource, match="none of vllm"):
        open_source(str(tmp_path), packages=["vllm"])
    with pytest.raises(BadSource, match="no Python package"):
        open_source(str(tmp_path))


def test_packages_can_be_chosen(tmp_path: Path) -> None:
    root = _tree(tmp_path / "r", {"one/__init__.py": b"", "two/__init__.py": b""})
    assert sorted(open_source(str(root)).paths()) == [
        "one/__init__.py",
        "two/__init__.py",
    ]
    chosen = open_source(str(root), packages=["two", "absent"])
    assert list(chosen.paths()) == ["two/__init__.py"]


def test_the_version_of_a_folder(tmp_path: Path) -> None:
    files = {**PLAIN, "pkg/_version.py": b"__version__ = version = '0.33.0'\n"}
    assert open_source(str(_tree(tmp_path / "r", files))).version == "0.33.0"
    assert open_source(str(_tree(tmp_path / "s", dict(PLAIN)))).version is None


def test_links_in_a_folder(tmp_path: Path) -> None:
    root = _tree(tmp_path / "repo", dict(PLAIN))
    outside = _tree(tmp_path / "outside", {"secret.py": b"secret"})
    (root / "pkg" / "loop.py").symlink_to("loop.py")
    (root / "pkg" / "out.py").symlink_to(outside / "secret.py")
    (root / "pkg" / "again").symlink_to(root, target_is_directory=True)
    (root / "pkg" / "same.py").symlink_to("a.py")
    source = open_source(str(root))
    assert source.read("pkg/same.py") == PLAIN["pkg/a.py"]
    bad = ("pkg/loop.py", "pkg/out.py", "../outside/secret.py", "pkg/no.py", "a\0b")
    for path in bad:
        with pytest.raises(SourceError):
            source.read(path)
    assert not [path for path in source.paths() if "again" in path]


def test_a_huge_file_in_a_folder_is_an_error_of_the_file(tmp_path: Path) -> None:
    root = _tree(tmp_path / "repo", dict(PLAIN))
    with (root / "pkg" / "huge.py").open("wb") as stream:
        stream.truncate(500_000_000)
    source = open_source(str(root))
    with pytest.raises(SourceError, match="500000000 bytes are more"):
        source.read("pkg/huge.py")
    assert source.read("pkg/a.py") == PLAIN["pkg/a.py"]


def test_the_interpreters_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marked: Path
) -> None:
    bomb = f"open({str(marked)!r}, 'w')\n".encode()
    files = {"fakepkg/__init__.py": bomb, "fakepkg/m.py": b"M = 1\n"}
    info = {
        "fakepkg-1.5.dist-info/METADATA": b"Name: fakepkg\nVersion: 1.5\n",
        "fakepkg-1.5.dist-info/RECORD": b"fakepkg/__init__.py,,\n",
    }
    monkeypatch.syspath_prepend(str(_tree(tmp_path / "site", {**files, **info})))
    source = open_source("installed:fakepkg")
    assert source.label == "fakepkg 1.5 (installed)"
    assert source.version == "1.5"
    assert {p: source.read(p) for p in source.paths()} == files
    assert "fakepkg" not in sys.modules
    assert list(open_source("installed", packages=["fakepkg"]).paths()) == sorted(files)
    for name in ("nothing_of_the_kind", "no-name", "a.b"):
        with pytest.raises(BadSource, match=r"@latest"):
            open_source(f"installed:{name}")


def test_archives_on_disk(tmp_path: Path, marked: Path) -> None:
    bomb = f"open({str(marked)!r}, 'w')\n".encode()
    files = {**PLAIN, "pkg/__init__.py": bomb}
    one = wheel(tmp_path / "pkg-1.0-py3-none-any.whl", files)
    two = sdist(tmp_path / "pkg-1.0.tar.gz", {**files, "setup.py": bomb})
    zipped = tmp_path / "pkg-1.0.zip"
    with zipfile.ZipFile(zipped, "w") as archive:
        for name, data in files.items():
            archive.writestr(f"pkg-1.0/{name}", data)
    for file in (one, two, zipped):
        source = open_source(str(file))
        assert (source.label, source.version) == ("pkg 1.0", "1.0")
        assert {p: source.read(p) for p in source.paths()} == files
    with pytest.raises(BadSource, match="cannot be read"):
        open_source(str(tmp_path / "absent-1.0-py3-none-any.whl"))


def test_a_wheels_data_folder_counts_as_installed(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": b"",
        "pkg-1.0.data/platlib/pkg/p.py": b"P",
        "pkg-1.0.data/scripts/run.py": b"S",
        "pkg-1.0.dist-info/x.py": b"D",
    }
    source = open_source(str(wheel(tmp_path / "pkg-1.0-py3-none-any.whl", files)))
    assert source.paths() == ("pkg/__init__.py", "pkg/p.py")


_UNSAFE = ["/etc/evil.py", "../evil.py", "pkg/../../evil.py", "C:/evil.py", "pkg\\e.py"]


@pytest.mark.parametrize("remote", [False, True])
def test_names_that_lead_elsewhere(
    mirror: Mirror, tmp_path: Path, remote: bool
) -> None:
    file = tmp_path / "pkg-1.0-py3-none-any.whl"
    wheel(file, {**PLAIN, **dict.fromkeys(_UNSAFE, b"evil")})
    mirror.add(file)
    source = open_source("pkg==1.0" if remote else str(file))
    assert {p: source.read(p) for p in source.paths()} == PLAIN
    assert set(source.problems) == set(_UNSAFE)
    with pytest.raises(SourceError, match="its name is absolute"):
        source.read("/etc/evil.py")


def test_a_tar_made_to_do_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "MEMBER_BYTES", 1000)
    monkeypatch.setattr(zips, "MEMBER_BYTES", 1000)

    def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
        info = tarfile.TarInfo(f"pkg-1.0/{name}" if not name.startswith("/") else name)
        info.type, info.linkname = kind, link
        return info

    files: dict[str, bytes | tarfile.TarInfo] = {
        **PLAIN,
        "pkg/huge.py": bytes(2000),
        "pkg/loop.py": special("pkg/loop.py", tarfile.SYMTYPE, "pool.py"),
        "pkg/pool.py": special("pkg/pool.py", tarfile.SYMTYPE, "loop.py"),
        "pkg/out.py": special("pkg/out.py", tarfile.SYMTYPE, "/etc/passwd"),
        "pkg/up.py": special("pkg/up.py", tarfile.SYMTYPE, "../../../x.py"),
        "pkg/same.py": special("pkg/same.py", tarfile.SYMTYPE, "sub/b.py"),
        "pkg/hard.py": special("pkg/hard.py", tarfile.LNKTYPE, "pkg-1.0/pkg/a.py"),
        "pkg/dev.py": special("pkg/dev.py", tarfile.CHRTYPE),
        "abs": special("/tmp/evil.py", tarfile.REGTYPE),
        "dots": special("../evil.py", tarfile.REGTYPE),
    }
    source = open_source(str(sdist(tmp_path / "pkg-1.0.tar.gz", files)))
    bad = {f"pkg/{name}.py" for name in ("huge", "loop", "pool", "out", "up", "dev")}
    assert set(source.paths()) == {*PLAIN, *bad, "pkg/same.py", "pkg/hard.py"}
    for path in sorted(bad):
        with pytest.raises(SourceError, match=path):
            source.read(path)
    assert source.read("pkg/same.py") == PLAIN["pkg/sub/b.py"]
    assert source.read("pkg/hard.py") == PLAIN["pkg/a.py"]
    assert set(source.problems) == {"/tmp/evil.py", "pkg-1.0/../evil.py"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["pkg-1.0.tar.gz"]


def test_a_tar_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {**PLAIN, "pkg/zeros.bin": bytes(5_000_000)}
    file = sdist(tmp_path / "pkg-1.0.tar.gz", files)
    for name, limit, said in (
        ("TAR_BYTES", 1_000_000, "unpacked it has more than"),
        ("_MEMBERS", 3, "more than 3 members"),
        ("PACK_BYTES", 10, "more than 10 bytes"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(packs, name, limit)
            with pytest.raises(BadSource, match=said):
                open_source(str(file))
    assert open_source(str(file)).read("pkg/a.py") == PLAIN["pkg/a.py"]


@pytest.mark.parametrize("cut", [0, 1, 20, 200])
def test_archives_cut_off(tmp_path: Path, cut: int) -> None:
    for file in (
        wheel(tmp_path / "pkg-1.0-py3-none-any.whl"),
        sdist(tmp_path / "pkg-1.0.tar.gz"),
    ):
        data = file.read_bytes()
        file.write_bytes(data[: max(0, cut - 1) or 0] if cut < 20 else data[:-cut])
        with pytest.raises(BadSource, match="cannot be read"):
            open_source(str(file))


def test_a_member_of_500_mb_and_a_bomb(tmp_path: Path) -> None:
    file = tmp_path / "pkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("pkg/a.py", b"A = 1\n")
        with archive.open("pkg/huge.py", "w") as stream:
            for _ in range(500):
                stream.write(bytes(1_000_000))
    # A bomb that lies about its size unpacks no further than it claims.
    data = file.read_bytes()
    liar = tmp_path / "liar-1.0-py3-none-any.whl"
    liar.write_bytes(data.replace(struct.pack("<L", 500_000_000), struct.pack("<L", 9)))
    for path, why in ((file, "500000000 bytes are more"), (liar, "checksum")):
        source = open_source(str(path))
        assert "pkg/huge.py" in source.paths()
        with pytest.raises(SourceError, match=why):
            source.read("pkg/huge.py")
        assert source.read("pkg/a.py") == b"A = 1\n"


def test_members_that_are_not_what_they_claim(tmp_path: Path) -> None:
    file = wheel(tmp_path / "pkg-1.0-py3-none-any.whl", PLAIN)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_LZMA) as archive:
        archive.writestr("pkg/lzma.py", b"x" * 100)
    source = open_source(str(file))
    with pytest.raises(SourceError, match="compression method 14"):
        source.read("pkg/lzma.py")
    data = bytearray(file.read_bytes())
    at = data.index(b"A = 1") if b"A = 1" in data else data.index(b"pkg/a.py") + 8
    data[at] ^= 0xFF
    file.write_bytes(bytes(data))
    with pytest.raises(SourceError, match=r"pkg/a\.py of pkg 1\.0: "):
        open_source(str(file)).read("pkg/a.py")


@given(st.data())
def test_any_damage_is_an_error_or_harmless(data: st.DataObject) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in PLAIN.items():
            archive.writestr(name, content)
    raw = bytearray(buffer.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 255))

    def fetch(start: int, end: int) -> bytes:
        return bytes(raw[start:end])

    try:
        listing = zips.read_listing(len(raw), fetch)
    except SourceError:
        return
    for member in listing.members:
        assert unsafe(member.path) is None
        if zips.refusal(member):
            continue
        try:
            content = zips.unpack(member, fetch(member.start, member.end))
        except SourceError:
            continue
        assert len(content) == member.size


@given(st.text(max_size=20))
def test_a_safe_name_stays_inside(name: str) -> None:
    root = Path("/a/folder")
    if unsafe(name) is None:
        assert (root / name).is_relative_to(root)
        assert ".." not in (root / name).parts


@pytest.mark.parametrize(
    ("paths", "packages", "found"),
    [
        (["pkg/__init__.py", "tests/__init__.py"], (), ("", ("pkg",))),
        (["src/pkg/__init__.py", "docs/conf.py"], (), ("src/", ("pkg",))),
        (["a/b/pkg/__init__.py", "x/__init__.py"], ("pkg",), ("a/b/", ("pkg",))),
        (["x/pkg/__init__.py", "pkg/__init__.py"], ("pkg",), ("", ("pkg",))),
        (["x/__init__.py"], ("pkg",), ("", ("x",))),
        (["setup.py"], (), ("", ())),
    ],
)
def test_where_the_import_root_is(
    paths: list[str], packages: tuple[str, ...], found: tuple[str, tuple[str, ...]]
) -> None:
    assert find_layout(paths, packages) == found
