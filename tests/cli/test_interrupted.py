"""Ctrl-C at each step of a write: the old file is there or the new one, whole."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ascend_shims import cli
from ascend_shims.cli import doctor
from ascend_shims.doctor.bundle import write_bundle
from ascend_shims.files import write_whole
from ascend_shims.upstream.sources.cache import Cache

from ..fresh import python
from ..test_killed import REGISTRY, wheel
from .test_drift import index  # noqa: F401

OLD, NEW = b"old" * 1000, b"new" * 1000


def interrupted_at_each_call(
    act: Callable[[], Any], check: Callable[[bool], None]
) -> int:
    """Run `act` with Ctrl-C at its first call, its second, and so on.

    Calls are counted, those into C as well, and their returns. `check` is called after
    each, with whether it came to its end; so is the number of times it took.
    """
    for at in range(1, 100_000):
        ended = False
        key = _Key(at)
        try:
            sys.setprofile(key)
            act()
            ended = True
        except KeyboardInterrupt:
            pass
        finally:
            key.at = 0
            sys.setprofile(None)
        check(ended)
        if ended:
            return at
    raise AssertionError("it never came to its end")


class _Key:
    """A profiler that presses Ctrl-C at the call of that number."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self, *_: object) -> None:
        self.count += 1
        if self.count == self.at:
            # It is raised where the call is, and nothing is counted any more.
            raise KeyboardInterrupt


def _whole(path: Path) -> None:
    write_whole(path, NEW)


def _bundle(path: Path) -> None:
    write_bundle(path, NEW, force=True)


@pytest.mark.parametrize("write", [_whole, _bundle])
def test_what_replaces_a_file(write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "file.tar.gz"
    path.write_bytes(OLD)
    seen = set()

    def check(ended: bool) -> None:
        now = path.read_bytes()
        seen.add(now)
        assert now in (OLD, NEW)
        assert not ended or now == NEW
        assert list(tmp_path.iterdir()) == [path]
        path.write_bytes(OLD)

    assert interrupted_at_each_call(lambda: write(path), check) > 30
    assert seen == {OLD, NEW}


def test_a_bundle_that_is_new(tmp_path: Path) -> None:
    path = tmp_path / "file.tar.gz"
    seen = set()

    def check(ended: bool) -> None:
        now = path.read_bytes() if path.exists() else None
        seen.add(now)
        assert now in (None, NEW)
        assert not ended or now == NEW
        path.unlink(missing_ok=True)
        assert list(tmp_path.iterdir()) == []

    write = lambda: write_bundle(path, NEW, force=False)  # noqa: E731
    assert interrupted_at_each_call(write, check) > 30
    assert seen == {None, NEW}


def test_an_entry_of_the_cache(tmp_path: Path) -> None:
    assert Cache(tmp_path).put("kind", "key", data=OLD)
    files = sorted(tmp_path.rglob("*"))
    seen = set()

    def check(ended: bool) -> None:
        # As another process: this one's may be locked for good.
        cache = Cache(tmp_path)
        now = cache.get("kind", "key")
        seen.add(now)
        assert now in (OLD, NEW)
        assert not ended or now == NEW
        assert sorted(tmp_path.rglob("*")) == files
        assert cache.put("kind", "key", data=OLD)

    put = lambda: Cache(tmp_path).put("kind", "key", data=NEW)  # noqa: E731
    assert interrupted_at_each_call(put, check) > 30
    assert seen == {OLD, NEW}


# The commands


STEPS = ("open", "fchmod", "fsync", "replace", "rename", "link", "unlink")
"""Of `os`, in files of the folder that is written to."""


class Steps:
    """Counts what is done to files that are being written; one of them meets Ctrl-C."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.at, self.after, self.count = str(folder), 0, False, 0
        for name in STEPS:
            patch.setattr(os, name, self._counting(getattr(os, name)))

    def _counting(self, real: Any) -> Any:
        def step(first: Any, *more: Any, **named: Any) -> Any:
            ours = isinstance(first, int) or str(first).startswith(self.folder)
            writes = real.__name__ != "open" or (more and more[0] & os.O_CREAT)
            if not (ours and writes and self.at):
                return real(first, *more, **named)
            self.count += 1
            if self.count == self.at and not self.after:
                raise KeyboardInterrupt
            done = real(first, *more, **named)
            if self.count == self.at:
                raise KeyboardInterrupt
            return done

        return step


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to write to, with a registry and releases beside it."""
    for name in [one for one in os.environ if one.startswith("ASCEND_SHIMS")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ASCEND_SHIMS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "registry.yaml").write_text(REGISTRY)
    for version in ("1.0", "2.0"):
        wheel(tmp_path, version)
    code = tmp_path / "code"
    code.mkdir()
    (code / "patches.py").write_text(
        "import vllm.v1.worker.gpu.model_runner as runner\n"
        "def quiet(*args): ...\n"
        "runner.GPUModelRunner.profile_run = quiet\n"
    )
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


LOCK = ["lock", "madeup-1.0-py3-none-any.whl", "--registry", "out/registry.yaml"]


@pytest.mark.parametrize(
    ("words", "file"),
    [
        pytest.param(
            ["lock", "madeup-2.0-py3-none-any.whl", "--registry", "out/registry.yaml"],
            "out/registry.lock",
            id="lock",
        ),
        pytest.param(
            ["doctor", "--report", "out/shims.tar.gz", "--force"],
            "out/shims.tar.gz",
            id="doctor",
        ),
        pytest.param(
            ["doctor", "--report", "out/new.tar.gz"], "out/new.tar.gz", id="doctor-new"
        ),
        pytest.param(
            ["scan", "code", "--registry-out", "out/draft.yaml", "--force"],
            "out/draft.yaml",
            id="scan",
        ),
        pytest.param(
            ["scan", "code", "--registry-out", "out/new.yaml"], "out/new.yaml", id="new"
        ),
        pytest.param(
            [
                *["report", "--html", "out/page.html", "--package", "madeup"],
                *["--registry", "out/registry.yaml", "--from", "1.1"],
            ],
            "out/page.html",
            id="report",
        ),
        pytest.param(
            [
                *["drift", "--against", "madeup-2.0-py3-none-any.whl"],
                *["--registry", "out/registry.yaml", "--package", "madeup"],
            ],
            "cache/",
            id="drift",
        ),
    ],
)
def test_a_command_leaves_what_was_there(
    words: list[str],
    file: str,
    place: Path,
    index: str,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index)
    # What is looked at is the same each time, and takes a second.
    monkeypatch.setattr(doctor, "_diagnosis", functools.cache(doctor._diagnosis))
    assert cli.main(LOCK) == 0
    for name in ("shims.tar.gz", "draft.yaml"):
        (place / "out" / name).write_bytes(OLD)
    before = content(place)
    steps = Steps(place, monkeypatch)
    met = 0
    for after in (False, True):
        for at in range(1, 1000):
            steps.at, steps.after, steps.count = at, after, 0
            code = cli.main(list(words))
            steps.at = 0
            said = capsys.readouterr().err
            now = content(place)
            changed = {
                name for name in {*now, *before} if now.get(name) != before.get(name)
            }
            # Reading a release may keep some of it in the cache, which is whole, too.
            assert all(n.startswith((file, "cache/")) for n in changed), (at, changed)
            assert [one for one in now if "tmp-" in one or "/." in one] == []
            if code != 130:
                assert code in (0, 1), said
                break
            assert said.splitlines()[-1] == "shims: interrupted"
            assert "Traceback" not in said
            met += 1
            _put_back(place, before)
        else:
            raise AssertionError("it never came to its end")
        _put_back(place, before)
    assert met >= 4


def _put_back(place: Path, before: dict[str, bytes]) -> None:
    for name in content(place).keys() - before.keys():
        (place / name).unlink()
    for name, data in before.items():
        (place / name).write_bytes(data)


# Threads


@pytest.mark.parametrize(
    ("waiting", "expected"), [("", "finalized"), ("thread.start()", "")]
)
def test_what_still_waits_ends_with_the_command(waiting: str, expected: str) -> None:
    code = (
        "import atexit, sys, threading\n"
        "from ascend_shims.cli import entry\n"
        "atexit.register(print, 'finalized')\n"
        "thread = threading.Thread(\n"
        "    target=threading.Event().wait, name='shims-open', daemon=True\n"
        ")\n"
        f"{waiting}\n"
        "sys.argv = ['shims', '--version']\n"
        "entry()\n"
    )
    first, *rest = python(code).splitlines()
    assert first.startswith("ascend-shims, version ")
    assert rest == [expected] * bool(expected)
