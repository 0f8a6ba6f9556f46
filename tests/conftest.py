"""What concerns the tests as a whole: which run, in which process, in which order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

# What commands say is compared in English, wherever the tests run.
os.environ["LANGUAGE"] = "en"
os.environ.pop("ASCEND_SHIMS_LANG", None)

HERE = Path(__file__).parent

_NEED_TORCH = (
    "device",
    "guard",
    "patches",
    "real",
    "simnpu",
    "test_device_reports.py",
)
"""Where modules import torch."""

_ASK_THE_MACHINE = (
    "cli",
    "page/test_command.py",
    "doctor",
    "engine/test_companions.py",
    "engine/test_every_step.py",
    "engine/test_stateful.py",
    "outcomes",
    "test_coexistence.py",
    "test_packaging.py",
    "test_process.py",
    "test_public_reports.py",
    "test_security.py",
    "upstream/test_reports.py",
    "verify/test_endings.py",
    "verify/test_proof.py",
    "words/test_screens.py",
)
"""Look at all processes of the machine, or answer those that do with states that are
faults, so they run one after the other."""

_SHARE_WITHIN_A_FILE = (
    "real",
    "device",
    "guard",
    "packaging",
    "verify",
)
"""Have fixtures that take a while, for all tests of a file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--torch",
        choices=["with", "without"],
        help="only tests of modules that import torch, or of those that do not: what "
        "looks at all loaded modules takes several times as long when torch is there",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "any_release: says the same whichever upstream is installed"
    )


def _is_left_out(path: Path, config: pytest.Config) -> bool:
    wanted = config.getoption("--torch")
    if wanted is None or path == HERE or HERE not in path.parents:
        return False
    needs = path.relative_to(HERE).parts[0] in _NEED_TORCH
    return needs != (wanted == "with")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return _is_left_out(collection_path, config) or None


def pytest_collection_modifyitems(
    items: list[pytest.Item], config: pytest.Config
) -> None:
    # A file that was named on the command line is collected all the same.
    left_out = [item for item in items if _is_left_out(item.path, config)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=_place_in_line)


def _place_in_line(item: pytest.Item) -> int:
    """What takes longest begins first: no process waits for another's last test."""
    if item.path.parent != HERE / "real":
        return 2
    return 0 if item.path.name.startswith("test_rig") else 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadgroup` by the tables above.

    pytest-xdist's own goes by marks, which it writes where pytest 9.2 no longer reads.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class Scheduling(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _together(nodeid)

    config.option.loadscopereorder = False
    return Scheduling(config, log)


def _together(nodeid: str) -> str:
    """What tests that run in one process have in common."""
    file = nodeid.partition("::")[0]
    place = (HERE.parent / file).relative_to(HERE)
    first = place.parts[0]
    if first in _ASK_THE_MACHINE or place.as_posix() in _ASK_THE_MACHINE:
        return "machine"
    return file if first in _SHARE_WITHIN_A_FILE else nodeid
