"""`shims` in this process, on whatever words, with nothing of the world to spoil."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ascend_shims import cli

__all__ = ["Said", "Shell"]

PATIENCE = 240
"""Seconds until a command counts as hanging: more than a busy machine needs."""


class HangsError(BaseException):
    """A command does not come to its end."""


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


class Shell:
    """Runs commands in `folder`; what they would start fails, files elsewhere stay."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder.resolve()
        self.strayed: list[str] = []
        patch.chdir(folder)
        for name in [one for one in os.environ if one.startswith(("ASCEND_", "PIP_"))]:
            patch.delenv(name)
        for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR"):
            patch.setenv(name, str(self.folder))
        patch.setattr("tempfile.tempdir", str(self.folder))
        patch.setenv("ASCEND_SHIMS_CACHE", str(self.folder / "cache"))
        # Nobody listens there.
        patch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        patch.setenv("PIP_CONFIG_FILE", "/dev/null")
        patch.setenv("NO_PROXY", "*")
        patch.setattr("subprocess.Popen.__init__", _refused)
        patch.setattr("os.execve", _refused)
        patch.setattr("time.sleep", _interrupt)
        # It would import all of upstream into this process.
        patch.setattr("ascend_shims.cli.demo.find_spec", lambda name: None)

    def run(self, words: list[str]) -> Said:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        err.reconfigure(errors="backslashreplace")
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            self._watched(),
        ):
            code = cli.main(list(words))
        out.flush()
        err.flush()
        said = [one.buffer.getvalue().decode() for one in (out, err)]  # type: ignore[attr-defined]
        return Said(code, *said)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        before = signal.signal(signal.SIGALRM, _hangs)
        signal.alarm(PATIENCE)
        _watch(self)
        try:
            yield
        finally:
            _watch(None)
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    def opened(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Note a file elsewhere that is written."""
        name, *more = arguments
        flags = more[-1] if event == "open" else os.O_CREAT
        writes = isinstance(flags, int) and flags & (
            os.O_CREAT | os.O_WRONLY | os.O_RDWR
        )
        if not writes or isinstance(name, int):
            return
        path = os.path.abspath(os.fsdecode(name))  # noqa: PTH100 - links stay
        if (
            not path.startswith((str(self.folder), "/dev/"))
            and "__pycache__" not in path
        ):
            self.strayed.append(path)


_watching: Shell | None = None
_is_hooked = False


def _watch(shell: Shell | None) -> None:
    """Have a shell told of files, by the one hook of the process: none can be removed,
    and each is called for every `id()` from then on."""
    global _watching, _is_hooked
    _watching = shell
    if not _is_hooked:
        sys.addaudithook(_heard)
        _is_hooked = True


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching is not None and event in ("open", "os.rename", "os.mkdir"):
        _watching.opened(event, arguments)


def _refused(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def _interrupt(_seconds: float) -> None:
    raise KeyboardInterrupt


def _hangs(*_: object) -> None:
    raise HangsError
