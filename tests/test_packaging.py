"""The wheel, in an empty environment; the editable install; what an import costs."""

from __future__ import annotations

import json
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from .fresh import python, run
from .packaging.environments import environment

pytestmark = pytest.mark.any_release

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    # In a copy: a build leaves its traces beside the sources.
    source = tmp_path_factory.mktemp("source") / "ascend-shims"
    files = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT)
    for name in files.splitlines():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            path.symlink_to((ROOT / name).readlink())
        elif (ROOT / name).is_file():
            path.write_bytes((ROOT / name).read_bytes())
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps")
    run(*pip, "--no-build-isolation", "-w", target, source)
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def empty(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with nothing but the wheel and what it needs."""
    home = tmp_path_factory.mktemp("empty") / "venv"
    return environment(Path(sys.executable), home, wheel, pins={})


def test_the_wheel_has_registry_and_patches_inside(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for name in (
        "ascend_shims/gap_registry.yaml",
        "ascend_shims/gap_registry.lock",
        "ascend_shims/registry/gap_registry.schema.json",
        "ascend_shims/patches/kv_cache.py",
        "ascend_shims/bootstrap/sitecustomize.py",
        "ascend_shims/page/page.css",
        "ascend_shims/page/page.html",
        "ascend_shims/page/page.js",
        "ascend_shims/py.typed",
    ):
        assert name in names
    top = {name.partition("/")[0] for name in names}
    assert top == {"ascend_shims", next(t for t in top if t.endswith(".dist-info"))}


def test_every_package_of_the_tree_is_in_the_wheel(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    files = run("git", "ls-files", "-co", "--exclude-standard", cwd=ROOT).splitlines()
    modules = {f for f in files if f.startswith("ascend_shims/") and f.endswith(".py")}
    modules |= {
        f"ascend_shims/{f}"
        for f in files
        if f.startswith("patches/") and f.endswith(".py")
    }
    assert modules
    assert modules - names == set()


def test_it_works_from_any_directory(empty: Path) -> None:
    report = json.loads(run(empty / "shims", "status", "--json", cwd=Path("/")))
    assert report["environment"]["distributions"]["vllm"]["origin"] == "nowhere"
    assert len(report["gaps"]) == 10
    assert {gap["state"] for gap in report["gaps"]} == {"not-applicable"}


def test_applying_where_there_is_no_vllm_says_so(empty: Path) -> None:
    script = (
        "import os; os.environ['ASCEND_SHIMS_DEVICE'] = 'sim'; import ascend_shims;"
        "print(ascend_shims.apply()['kv-cache'].reason)"
    )
    assert run(empty / "python", "-c", script).strip() == "vllm is not installed"


def test_nothing_is_installed_beside_the_package(empty: Path) -> None:
    script = (
        "import importlib.util as u, ascend_shims.patches as p;"
        "print(u.find_spec('patches'), p.__file__)"
    )
    spec, file = run(empty / "python", "-c", script, cwd=Path("/")).split()
    assert spec == "None"
    assert file.endswith("site-packages/ascend_shims/patches/__init__.py")


def test_the_editable_install_has_the_entry_points_and_patches() -> None:
    script = (
        "import importlib.metadata as m, ascend_shims.patches.kv_cache as k;"
        "print([e.value for e in m.entry_points(group='vllm.general_plugins')"
        " if e.name == 'ascend_shims'], k.__file__)"
    )
    # Not imported here: see `--torch`.
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    out = python(script, cwd=Path("/"))
    assert out.startswith("['ascend_shims.plugin:register']")


def test_an_import_brings_in_nothing_heavy() -> None:
    script = (
        "import sys; before = set(sys.modules); import ascend_shims;"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before};"
        "print(sorted(new & {'vllm', 'torch', 'pydantic', 'yaml', 'rich', 'click',"
        " 'msgspec', 'wrapt', 'packaging'}))"
    )
    assert python(script).strip() == "[]"


def test_an_import_costs_next_to_nothing() -> None:
    """One file of ours, and what else it brings in is read in no time."""
    script = (
        "import sys; before = set(sys.modules); import ascend_shims;"
        "print(*sorted(set(sys.modules) - before))"
    )
    new = set(python(script).split())
    light = {"_typing", "collections.abc", "typing", "typing.io", "typing.re"}
    assert new - light == {"ascend_shims"}
