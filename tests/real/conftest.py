"""Fixtures for tests that run upstream vLLM itself.

They are skipped where no vLLM is installed, and only there: one that is broken
fails them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import pytest

HERE = Path(__file__).parent
# For `from harness`: pytest leaves sys.path alone in importlib mode.
sys.path.append(str(HERE))

from harness import Harness  # noqa: E402

from ascend_shims.simnpu import models  # noqa: E402


class RunReal(Protocol):
    """`Harness.run`, with the log kept where the test's other files are."""

    def __call__(self, job: Any, *arguments: Any, **options: Any) -> Any: ...


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    installed = find_spec("vllm") is not None
    reason = f"vLLM is not installed for {sys.executable}: see tools/env"
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.vllm)
        if not installed:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def run_real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunReal]:
    logs = tmp_path_factory.mktemp("logs")
    count = iter(range(1_000_000))
    with Harness() as harness:

        def run(job: Any, *arguments: Any, **options: Any) -> Any:
            name = getattr(job, "__name__", None) or Path(job).stem
            log = logs / f"{next(count):03}-{name}.log"
            return harness.run(job, *map(_plain, arguments), log=log, **options)

        yield run


@pytest.fixture(scope="session")
def model_gqa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.gqa(tmp_path_factory.mktemp("gqa"))


@pytest.fixture(scope="session")
def model_moe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.moe(tmp_path_factory.mktemp("moe"))


@pytest.fixture(scope="session")
def model_mla(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.mla(tmp_path_factory.mktemp("mla"))


def _plain(argument: Any) -> Any:
    return str(argument) if isinstance(argument, Path) else argument
