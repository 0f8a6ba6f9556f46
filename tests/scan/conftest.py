"""Code of a made-up plugin, scanned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from ascend_shims.scan.found import Found, Scanned
from ascend_shims.scan.scanning import scan

Scan = Callable[..., Scanned]


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """Files beneath a folder; gives the folder."""

    def put(files: Mapping[str, str], folder: str = "code") -> Path:
        root = tmp_path / folder
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), "utf-8")
        return root

    return put


@pytest.fixture
def scanned(write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Scan:
    """A scan of a plugin: of one file `plug/m.py`, or of files by name."""

    def run(code: str | Mapping[str, str], *upstreams: str, **options: bool) -> Scanned:
        files = {"plug/m.py": code} if isinstance(code, str) else dict(code)
        root = write({"plug/__init__.py": "", **files})
        monkeypatch.chdir(root)
        return scan([Path("plug")], upstreams, **options)

    return run


def rows(scanned: Scanned) -> set[tuple[str, str, str | None]]:
    """Form, way of relying and target of every patch."""
    return {(one.form, one.how, one.target) for one in scanned.patches}


def only(scanned: Scanned) -> Found:
    """The one patch that there is."""
    (one,) = scanned.patches
    return one
