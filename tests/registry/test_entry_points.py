"""Entry points, read from metadata as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ascend_shims.environment.entry_points import EntryPoint, read_entry_points

OURS = "[ascend_shims.registries]\n"


def _info(site: Path, name: str, text: str | bytes | None) -> Path:
    folder = site / name
    folder.mkdir(parents=True)
    if text is not None:
        data = text.encode() if isinstance(text, str) else text
        (folder / "entry_points.txt").write_bytes(data)
    return folder


def _read(*sites: Path) -> list[tuple[str, str]]:
    return [(e.name, e.value) for e in read_entry_points([str(s) for s in sites])]


TEXTS: list[tuple[str | bytes | None, list[tuple[str, str]]]] = [
    (f"{OURS}acme = acme_npu.shims\n", [("acme", "acme_npu.shims")]),
    (f"{OURS}a=b\nc =d.e\n\n[other]\nx = y\n", [("a", "b"), ("c", "d.e")]),
    (f"[other]\nx = y\n{OURS}# a = comment\n a = b\n", [("a", "b")]),
    (f"{OURS}a = b [extra]\n", [("a", "b")]),
    (f"{OURS}a = b:c\n", [("a", "b:c")]),
    (f"{OURS}a\n", [("a", "")]),
    (f"[other]\n{'x = y' * 9999}\n{OURS}a = b\n", [("a", "b")]),
    (f"{OURS}a = b\n".replace("\n", "\r\n"), [("a", "b")]),
    (OURS.encode() + b"a = \xff\n", [("a", "\ufffd")]),
    ("[other]\nascend_shims.registries = x\n", []),
    (b"\xff\xfe\x00", []),
    ("", []),
    (None, []),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_what_one_says(
    text: str | bytes | None, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    _info(tmp_path, "acme_npu-1.0.dist-info", text)
    assert _read(tmp_path) == expected


@pytest.mark.parametrize(
    ("folder", "metadata", "expected"),
    [
        ("acme_npu-1.0.dist-info", "Name: acme-npu\nVersion: 1.1\n", "acme-npu 1.1"),
        ("acme_npu-1.0.dist-info", None, "acme_npu 1.0"),
        ("acme_npu-1.0.dist-info", "", "acme_npu 1.0"),
        ("acme_npu.egg-info", None, "acme_npu"),
    ],
)
def test_who_says_so(
    folder: str, metadata: str | None, expected: str, tmp_path: Path
) -> None:
    info = _info(tmp_path, folder, f"{OURS}a = b\n")
    if metadata is not None:
        (info / "METADATA").write_text(metadata)
    assert read_entry_points([str(tmp_path)]) == (
        EntryPoint("a", "b", expected, str(info)),
    )


def test_the_first_copy_of_a_distribution_counts(tmp_path: Path) -> None:
    _info(tmp_path / "one", "acme_npu-2.0.dist-info", f"{OURS}a = first\n")
    _info(tmp_path / "two", "Acme.Npu-1.0.dist-info", f"{OURS}a = second\n")
    _info(tmp_path / "two", "other-1.0.dist-info", f"{OURS}b = third\n")
    found = _read(tmp_path / "one", tmp_path / "two")
    assert found == [("a", "first"), ("b", "third")]


def test_what_an_interrupted_pip_leaves_says_nothing(tmp_path: Path) -> None:
    _info(tmp_path, "~cme_npu-1.0.dist-info", f"{OURS}a = b\n")
    assert _read(tmp_path) == []


def test_a_path_may_hold_anything(tmp_path: Path) -> None:
    (tmp_path / "file.zip").write_bytes(b"PK")
    (tmp_path / "x-1.dist-info").write_text("a file")
    _info(tmp_path / "good", "acme_npu-1.0.dist-info", f"{OURS}a = b\n")
    path = [tmp_path / "absent", tmp_path / "file.zip", tmp_path, tmp_path / "good"]
    assert _read(*path) == [("a", "b")]
    assert read_entry_points(["\0"]) == ()


def test_a_folder_is_read_again_once_it_has_changed(tmp_path: Path) -> None:
    assert _read(tmp_path) == []
    _info(tmp_path, "acme_npu-1.0.dist-info", f"{OURS}a = b\n")
    later = tmp_path.stat().st_mtime_ns + 1_000_000_000
    os.utime(tmp_path, ns=(later, later))
    assert _read(tmp_path) == [("a", "b")]
