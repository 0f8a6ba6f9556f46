"""`kill -9` at any moment of a write: what is read afterwards is whole."""

from __future__ import annotations

import functools
import os
import signal
import sys
import zipfile
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ascend_shims import cli
from ascend_shims.files import write_whole
from ascend_shims.upstream import lock as locking
from ascend_shims.upstream.lock import Lock, load_lock, save_lock
from ascend_shims.upstream.sources.cache import Cache

TOP = Path(__file__).parents[1]

Arm = Callable[[], None]


def killed_at_each_call(
    act: Callable[[Arm], Any], check: Callable[[bool], None]
) -> int:
    """Run `act` in processes that are killed at its first call, its second, and so on.

    Calls are counted, those into C as well, and their returns, from where `act` calls
    what it is given. `check` is called after each, with whether it came to its end; so
    is the number of processes it took until one did.
    """
    for at in range(1, 100_000):
        pid = os.fork()
        if not pid:
            code = 1
            try:
                act(functools.partial(_arm, at))
                sys.setprofile(None)
                code = 0
            finally:
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert status in (0, -signal.SIGKILL)
        check(status == 0)
        if status == 0:
            return at
    raise AssertionError("it never came to its end")


def _arm(at: int) -> None:
    count = 0

    def tick(*_: object) -> None:
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(tick)


def left(folder: Path) -> list[Path]:
    """Files that are no entries: what killed processes were writing."""
    return [p for p in folder.rglob("*") if p.name.startswith((".", "tmp-"))]


def test_a_file_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    seen = set()

    def act(arm: Arm) -> None:
        arm()
        write_whole(path, b"new" * 100_000)

    def check(ended: bool) -> None:
        now = path.read_bytes()
        seen.add(now)
        assert now in (b"old" * 100_000, b"new" * 100_000)
        assert not ended or now.startswith(b"new")
        write_whole(path, b"old" * 100_000)

    write_whole(path, b"old" * 100_000)
    assert killed_at_each_call(act, check) > 40
    assert len(seen) == 2
    assert left(tmp_path)


def test_a_write_that_fails_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "file"
    write_whole(path, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_cache_has_the_old_entry_or_the_new_one_or_none(tmp_path: Path) -> None:
    old, new = b"old" * 50_000, b"new" * 50_000
    seen = set()

    def untrimmed() -> Cache:
        # Looking through all entries, at the first write of a process, is not at issue.
        cache = Cache(tmp_path)
        cache._untrimmed = 0
        return cache

    def act(arm: Arm) -> None:
        cache = untrimmed()
        arm()
        assert cache.put("kind", "key", data=new)

    def check(ended: bool) -> None:
        now = Cache(tmp_path).get("kind", "key")
        seen.add(now)
        assert now in (old, new)
        assert not ended or now == new
        assert untrimmed().put("kind", "key", data=old)

    assert Cache(tmp_path).put("kind", "key", data=old)
    assert killed_at_each_call(act, check) > 40
    assert seen == {old, new}
    # And where there was none.
    seen.clear()
    number = 0

    def first(arm: Arm) -> None:
        cache = untrimmed()
        arm()
        assert cache.put("other", str(number), data=new)

    def checked(ended: bool) -> None:
        nonlocal number
        now = Cache(tmp_path).get("other", str(number))
        seen.add(now)
        assert now in (None, new)
        assert not ended or now == new
        for path in left(tmp_path):
            # An hour later, the next one to write clears it away.
            os.utime(path, (0, 0))
            halves.add(path)
        assert Cache(tmp_path).put("kind", "key", data=old)
        assert left(tmp_path) == []
        number += 1

    halves: set[Path] = set()
    assert killed_at_each_call(first, checked) > 40
    assert seen == {None, new}
    assert len(halves) > 10


REGISTRY = """\
schema: 1
upstreams: [madeup]
package: ascend_shims.patches
gaps:
  - id: loud
    title: T
    status: open
    kind: workaround
    why: W
    remove_when: R
    unpatched: U
watch:
  - {symbol: "madeup.core:answer", how: calls}
"""


def wheel(folder: Path, version: str) -> Path:
    path = folder / f"madeup-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("madeup/__init__.py", "")
        archive.writestr("madeup/core.py", "def answer(word): return word\n")
        info = f"madeup-{version}.dist-info"
        metadata = f"Metadata-Version: 2.1\nName: madeup\nVersion: {version}\n"
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_the_lock_is_the_old_one_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command `shims lock`, killed while it writes."""
    monkeypatch.setenv("ASCEND_SHIMS_CACHE", "off")
    monkeypatch.delenv("ASCEND_SHIMS_REGISTRY", raising=False)
    monkeypatch.chdir(tmp_path)
    registry = tmp_path / "registry.yaml"
    registry.write_text(REGISTRY)
    path = tmp_path / "registry.lock"
    first, second = (wheel(tmp_path, version) for version in ("1.0", "2.0"))

    def shims_lock(source: Path) -> None:
        words = ["shims", "lock", str(source), "--registry", str(registry)]
        monkeypatch.setattr(sys, "argv", words)
        try:
            cli.main()
        except SystemExit as ended:
            assert ended.code in (0, None)

    shims_lock(first)
    (known,) = tmp_path.glob("*.lock")
    assert known == path
    old = load_lock(path)
    assert list(old.baselines) == ["madeup==1.0"]
    seen = set()

    def act(arm: Arm) -> None:
        def armed(*args: Any) -> None:
            arm()
            write_whole(*args)

        locking.write_whole = armed  # type: ignore[attr-defined]
        shims_lock(second)

    def check(ended: bool) -> None:
        now = load_lock(path)
        seen.add(len(now.baselines))
        assert list(now.baselines) in (
            ["madeup==1.0"],
            ["madeup==1.0", "madeup==2.0"],
        )
        assert not ended or len(now.baselines) == 2
        save_lock(Lock(old.baselines), path)
        assert msgspec.to_builtins(load_lock(path)) == msgspec.to_builtins(old)

    assert killed_at_each_call(act, check) > 40
    assert seen == {1, 2}


@pytest.fixture
def kept(tmp_path: Path) -> Callable[[], Any]:
    """The results of `tools/matrix` as a run that starts now finds them."""
    loader = SourceFileLoader("tools_matrix", str(TOP / "tools" / "matrix"))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    tool = module_from_spec(spec)
    loader.exec_module(tool)
    tool.KEPT = tmp_path / "matrix"  # type: ignore[attr-defined]
    return lambda: tool.Kept("code", anew=False)


def test_results_of_the_matrix_are_whole_and_none_is_lost(
    kept: Callable[[], Any],
) -> None:
    certain = {("0", "first")}
    kept().add({"release": "0", "case": "first"})
    number = 0

    def act(arm: Arm) -> None:
        found = kept()
        arm()
        found.add({"release": str(number), "case": "killed", "tokens": [1] * 1000})

    def check(ended: bool) -> None:
        nonlocal number
        found = kept().results
        assert certain <= found.keys()
        assert len(found) - len(certain) in (0, 1)
        for key in found.keys() - certain:
            assert key == (str(number), "killed")
            assert found[key]["tokens"] == [1] * 1000
            certain.add(key)
        assert not ended or (str(number), "killed") in certain
        number += 1
        # A run that goes on writes after what was left.
        kept().add({"release": str(number), "case": "next"})
        certain.add((str(number), "next"))

    assert killed_at_each_call(act, check) > 15
    assert kept().results.keys() == certain


def test_half_a_line_of_the_matrix_costs_no_other(
    kept: Callable[[], Any], tmp_path: Path
) -> None:
    kept().add({"release": "0", "case": "first"})
    (file,) = (tmp_path / "matrix").iterdir()
    whole = file.read_bytes()
    for length in range(1, len(whole)):
        file.write_bytes(whole + whole[:length])
        kept().add({"release": "1", "case": "next"})
        assert kept().results.keys() == {("0", "first"), ("1", "next")}
