"""The wheel, wherever it may be put: registry, patches and entry points are found."""

from __future__ import annotations

import json
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..engine.world import World
from ..fresh import run
from ..test_packaging import wheel  # noqa: F401 - a fixture

PIP = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile")


@dataclass(frozen=True)
class Install:
    """A copy of the toolkit that comes before the environment's own."""

    home: Path
    """What is put on the path."""
    script: Path | None
    """Its command, where it has one."""

    def run(self, up: World, *words: str | Path) -> str:
        path = os.pathsep.join([str(self.home), str(up.root)])
        env = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        return run(*words, env=env, cwd=up.root)

    def python(self, up: World, code: str) -> str:
        return self.run(up, sys.executable, "-c", up.spelled(code))


def _zipped(wheel: Path, folder: Path) -> Install:  # noqa: F811
    return Install(wheel, None)


def _renamed(wheel: Path, folder: Path) -> Install:  # noqa: F811
    """Some tools keep zips without their name."""
    return Install(Path(shutil.copy(wheel, folder / "everything.zip")), None)


def _target(wheel: Path, folder: Path) -> Install:  # noqa: F811
    run(*PIP, "--target", folder / "there", wheel)
    return Install(folder / "there", folder / "there" / "bin" / "shims")


def _prefix(wheel: Path, folder: Path) -> Install:  # noqa: F811
    run(*PIP, "--ignore-installed", "--prefix", folder / "there", wheel)
    base = {"base": str(folder / "there"), "platbase": str(folder / "there")}
    home = Path(sysconfig.get_path("purelib", "posix_prefix", base))
    return Install(home, folder / "there" / "bin" / "shims")


KINDS: dict[str, Callable[[Path, Path], Install]] = {
    "zipped": _zipped,
    "a zip of another name": _renamed,
    "--target": _target,
    "--prefix": _prefix,
}


@pytest.fixture(scope="module", params=KINDS)
def install(
    request: pytest.FixtureRequest,
    wheel: Path,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Install:
    return KINDS[request.param](wheel, tmp_path_factory.mktemp("install"))


def test_patches_apply_by_call_and_by_entry_point(install: Install, up: World) -> None:
    said = install.python(
        up,
        """
        import importlib.metadata, ascend_shims, UP.a
        print(ascend_shims.__file__)
        points = importlib.metadata.entry_points(group="vllm.general_plugins")
        point = next(one for one in points if one.name == "ascend_shims")
        register = point.load()
        print(register.__code__.co_filename)
        register()
        print(UP.a.f(), ascend_shims.status().state("one"))
        ascend_shims.revert()
        print(UP.a.f())
        points = importlib.metadata.entry_points(group="pytest11")
        print([one.value for one in points if one.name == "ascend_shims"])
        """,
    )
    file, register, applied, reverted, pytest11 = said.splitlines()
    assert file == str(install.home / "ascend_shims" / "__init__.py")
    assert register == str(install.home / "ascend_shims" / "plugin.py")
    assert applied == "10 applied"
    assert reverted == "1"
    assert pytest11 == "['ascend_shims.testing.plugin']"


def test_its_own_registry_patches_and_lock_are_found(
    install: Install, up: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASCEND_SHIMS_REGISTRY")
    said = install.python(
        up,
        """
        import importlib, ascend_shims
        from ascend_shims.registry import load, packaged
        from ascend_shims.upstream.lock import load_lock
        registry = load()
        print([gap.id for gap in registry.gaps])
        print(len(load_lock(packaged().with_suffix(".lock")).baselines))
        print(importlib.import_module("ascend_shims.patches.runtime_guard").__file__)
        from ascend_shims.upstream.watched import from_registry
        print(len(from_registry(registry, packaged())))
        """,
    )
    from ascend_shims.registry import load

    gaps, baselines, patch, watched = said.splitlines()
    assert int(watched) > 100
    assert gaps == str([gap.id for gap in load().gaps])
    assert int(baselines) >= 2
    assert patch == str(install.home / "ascend_shims" / "patches" / "runtime_guard.py")


def test_its_commands_work(install: Install, up: World) -> None:
    module = (sys.executable, "-m", "ascend_shims")
    shims = module if install.script is None else (install.script,)
    report = json.loads(install.run(up, *shims, "status", "--json"))
    assert [gap["id"] for gap in report["gaps"]] == ["one"]
    check = json.loads(install.run(up, *shims, "apply-check", "--json"))
    assert (check["ok"], check["wanted"]) == (True, ["one"])
    code = up.spelled(
        "import ascend_shims, UP.a; print(UP.a.f(), ascend_shims.__file__)"
    )
    said = install.run(up, *shims, "run", "--", sys.executable, "-c", code)
    assert said == f"10 {install.home / 'ascend_shims' / '__init__.py'}\n"


def test_what_it_runs_in_other_interpreters_is_there(
    install: Install, up: World
) -> None:
    """Which load single packages of it by their path, and not the toolkit."""
    module = (sys.executable, "-m", "ascend_shims")
    proof = json.loads(install.run(up, *module, "verify", "--json"))
    assert (proof["ok"], proof["proved"]) == (True, True)
    stages = {stage["name"]: stage["gaps"] for stage in proof["stages"]}
    assert [gap["changed"] for gap in stages["one"]] == [6]
    assert proof["compared"]["by_root"][up.up] > 10
    found = json.loads(install.run(up, *module, "audit", f"{up.up}.a", "--json"))
    assert (found["rows"], found["modules"]) == ([], [f"{up.up}.a"])


def test_nothing_is_written_beside_it(install: Install, up: World) -> None:
    """So it may be read-only: what is kept is kept in the user's cache."""
    home = install.home if install.home.is_dir() else install.home.parent

    def files() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in home.rglob("*")}

    before = files()
    assert before
    install.python(up, "import ascend_shims, UP.a; ascend_shims.apply()")
    install.run(up, sys.executable, "-m", "ascend_shims", "show", "one")
    assert files() == before


PROJECT = """
import sys, ascend_shims

def test_it(shims):
    assert shims.status().state("one") == "pending"
    shims.apply()
    import UP.a
    assert UP.a.f() == 10

def test_its_own_registry(shims, monkeypatch):
    monkeypatch.delenv("ASCEND_SHIMS_REGISTRY")
    from ascend_shims.registry import load
    assert len(load().gaps) >= 12
    assert ascend_shims.__file__.startswith({home!r})
"""


@pytest.mark.parametrize("how", ["alone", "under shims run"])
def test_its_pytest_plugin_is_there_by_itself(
    install: Install, up: World, how: str
) -> None:
    """pytest rewrites the asserts of every package with a plugin: its own loader stands
    before ours, and it warns of what is imported already."""
    up.write("test_it.py", PROJECT.format(home=str(install.home)))
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    tests += ["-W", "error", "--shims-verify", "test_it.py"]
    shims = [sys.executable, "-m", "ascend_shims", "run", "--disable", "one", "--"]
    words = tests if how == "alone" else [*shims, *tests]
    if how == "alone":
        assert "2 passed" in install.run(up, *words)
    else:
        words += ["-k", "registry"]
        assert "1 passed" in install.run(up, *words)
