"""Installed and not used, the plugin changes nothing."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from ..fresh import run
from .project import Project

pytest_plugins = ["pytester"]


def test_it_loads_next_to_nothing(project: Project) -> None:
    project.write(
        "test_it.py",
        """
        import sys
        def test_it():
            ours = [n for n in sys.modules if n.partition(".")[0] == "ascend_shims"]
            print(sorted(ours))
            heavy = {"vllm", "torch", "yaml", "msgspec", "wrapt", "rich", "click"}
            print(sorted(heavy & set(sys.modules)))
        """,
    )
    result = project.run("-s", "-q")
    names = ["", ".testing", ".testing.plugin", ".testing.scope"]
    result.stdout.fnmatch_lines(
        [str([f"ascend_shims{name}" for name in names]), "[[]]"]
    )


def test_a_run_says_what_it_says_without_it(project: Project) -> None:
    """Every line of a run with all kinds of outcomes, and the finders and fixtures."""
    project.write(
        "test_it.py",
        """
        import os, sys, threading, pytest
        @pytest.fixture(autouse=True)
        def one(): yield
        def test_good(): pass
        def test_bad(): assert sys.version == 1
        def test_skipped(): pytest.skip("why")
        def test_seen(request):
            print(request.fixturenames, sys.meta_path)
            print(sorted(os.environ), sys.path_hooks, threading.active_count())
            assert 0
        """,
    )
    arguments = ("-p", "no:cacheprovider", "-rA", "--setup-show")

    def lines(*plugin: str) -> list[str]:
        done = project.pytester.runpytest_subprocess(*plugin, *arguments)
        assert done.parseoutcomes() == {"passed": 1, "failed": 2, "skipped": 1}
        return [
            re.sub("0x[0-9a-f]+", "", line)
            for line in done.outlines
            if "s setup" not in line and "s call" not in line and " in 0." not in line
        ]

    assert lines("-p", "ascend_shims.testing.plugin") == lines()


def test_a_fixture_or_option_of_the_project_wins(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import pytest
        @pytest.fixture(scope="session", autouse=True)
        def shims():
            return "mine"
        """,
    )
    project.write("test_it.py", "def test_it(shims): assert shims == 'mine'\n")
    assert project.outcomes() == {"passed": 1}


@pytest.mark.parametrize("disabled", [False, True])
def test_it_can_be_switched_off_like_any_plugin(
    project: Project, disabled: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As an entry point, which this interpreter finds beside its own."""
    info = project.root / "site" / "installed-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: installed\nVersion: 1\n"
    )
    point = "[pytest11]\nascend_shims = ascend_shims.testing.plugin\n"
    (info / "entry_points.txt").write_text(point)
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.setenv("PYTHONPATH", str(info.parent))
    project.write("test_it.py", "def test_it(shims): pass\n")
    off = ("-p", "no:ascend_shims") if disabled else ()
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *off]
    if disabled:
        with pytest.raises(AssertionError):
            run(*words, cwd=project.root, env=dict(os.environ))
    else:
        assert "1 passed" in run(*words, cwd=project.root, env=dict(os.environ))
