"""Pipes in the place of files: waited for while somebody is at the other end."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ascend_shims import files
from ascend_shims.files import read_piped, write_piped


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_a_pipe_that_nobody_else_has_is_refused(
    pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PATIENCE", 0.1)
    with pytest.raises(OSError, match="nobody writes to this pipe"):
        read_piped(pipe)
    with pytest.raises(OSError, match="No such device or address"):
        write_piped(pipe, b"x")


def test_what_comes_later_and_in_parts_is_read_to_its_end(pipe: Path) -> None:
    def write() -> None:
        with pipe.open("wb") as file:
            for _ in range(3):
                file.write(b"x" * 100_000)

    writer = threading.Thread(target=write)
    writer.start()
    assert read_piped(pipe) == b"x" * 300_000
    writer.join()


def test_more_than_a_pipe_holds_is_written(pipe: Path) -> None:
    got = []
    reading = threading.Event()

    def read() -> None:
        handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(handle, True)
        reading.set()
        with os.fdopen(handle, "rb") as file:
            # Before anybody writes there is nothing, and no end either.
            while not (some := file.read()):
                pass
            got.append(some)

    reader = threading.Thread(target=read)
    reader.start()
    assert reading.wait(60)
    write_piped(pipe, b"x" * 300_000)
    reader.join()
    assert b"".join(got) == b"x" * 300_000


def test_a_file_is_read_as_ever(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "empty").write_bytes(b"")
    assert read_piped(tmp_path / "file") == b"content"
    assert read_piped(tmp_path / "empty") == b""
    with pytest.raises(FileNotFoundError):
        read_piped(tmp_path / "absent")
