"""The pytest plugin, entry point `pytest11`: what it adds, and nothing else.

Where none of it is used, no module but this one and `scope` is loaded: what the
options need comes with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .scope import Shims

__all__ = ["shims"]


@pytest.fixture
def shims() -> Iterator[Shims]:
    """Shims in this test: `shims.apply()`, `.revert()`, `.status()`, `.disabled()`.

    Reverted at its end, whatever happens. For a fixture of a wider scope:
    `with ascend_shims.testing.Shims.context() as shims`.
    """
    with Shims.context() as scope:
        yield scope


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ascend-shims")
    group.addoption(
        "--shims-verify",
        action="store_true",
        help="fail the test that leaves a patch of upstream, a reference to one, an "
        "import hook, a variable or a thread of shims behind",
    )
    parser.addini(
        "shims_registry",
        "gap registries of this project: one test for each of their gaps",
        type="paths",
        default=[],
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    # Before any conftest, so that the fixtures that come with one lie inside ours.
    _register_verifying(early_config, early_config.known_args_namespace.shims_verify)


def pytest_configure(config: pytest.Config) -> None:
    # Again, for whoever loads this plugin late: pytest-xdist, when named by `-p`.
    _register_verifying(config, config.getoption("shims_verify"))
    registries: list[Path] = config.getini("shims_registry")
    missing = [str(path) for path in registries if not path.is_file()]
    if missing:
        raise pytest.UsageError(f"shims_registry: there is no {', '.join(missing)}")
    if registries:
        from . import collecting

        config.pluginmanager.register(collecting, "ascend-shims-collecting")


def _register_verifying(config: pytest.Config, wanted: bool) -> None:
    name = "ascend-shims-verifying"
    if wanted and not config.pluginmanager.has_plugin(name):
        from . import verifying

        config.pluginmanager.register(verifying, name)
