"""Which tests run together, and which before torch is there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import HERE, _is_left_out, _together
from .fresh import run


@pytest.mark.parametrize(
    ("nodeid", "together"),
    [
        ("tests/test_process.py::test_a", "machine"),
        ("tests/cli/test_run.py::TestB::test_b[c]", "machine"),
        ("tests/upstream/test_reports.py::test_e19", "machine"),
        ("tests/upstream/test_lock.py::test_f", "tests/upstream/test_lock.py::test_f"),
        ("tests/real/test_rig.py::test_c[d-e::f]", "tests/real/test_rig.py"),
        (
            "tests/engine/test_slots.py::test_d[a]",
            "tests/engine/test_slots.py::test_d[a]",
        ),
    ],
)
def test_what_runs_in_one_process(nodeid: str, together: str) -> None:
    assert _together(nodeid) == together


def test_pytest_xdist_listens(tmp_path: Path) -> None:
    """It has stopped to listen to marks before, and said nothing."""
    files = [HERE / name for name in ("test_packaging.py", "test_versions.py")]
    some = ["-k", "brings_in or next_to_nothing or test_packages", "-v"]
    words = ["-n", "2", "--dist", "loadgroup", *some, "--basetemp", tmp_path / "base"]
    said = run(sys.executable, "-m", "pytest", *words, *files).splitlines()
    passed = [line for line in said if "PASSED" in line and "test_packaging" in line]
    assert len(passed) == 2
    assert len({line.split()[0] for line in passed}) == 1


def test_each_place_is_in_one_half(pytestconfig: pytest.Config) -> None:
    chosen = pytestconfig.getoption("--torch")
    assert _is_left_out(HERE / "real" / "x.py", pytestconfig) == (chosen == "without")
    assert _is_left_out(HERE / "cli" / "x.py", pytestconfig) == (chosen == "with")
    assert not _is_left_out(HERE, pytestconfig)
    if chosen == "without":
        # A module of this half imports it: name that one in `_NEED_TORCH`.
        assert "torch" not in sys.modules


@pytest.mark.skipif(
    not (HERE.parent / ".venv").exists(), reason="no environment of the default release"
)
@pytest.mark.parametrize(
    "tool", ["score-drift", "check-rig-fidelity", "mutation", "bench"]
)
def test_tools_find_their_environment(tool: str) -> None:
    """Whoever calls them: here the interpreter under this one, without our packages."""
    beneath = Path(sys.base_prefix) / "bin" / "python3"
    said = run(beneath, HERE.parent / "tools" / tool, "--help")
    assert said.startswith(f"usage: {tool} [-h]")
