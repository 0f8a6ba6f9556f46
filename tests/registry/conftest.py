"""A patches package that exists only as files, and a way to load a snippet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ascend_shims.registry import Problem, Registry, RegistryError, load

MODULE = '''
"""One module a gap; importing it is a mistake that a test would notice."""
raise RuntimeError("a registry check imported a patch module")

from elsewhere import (
    borrowed,  # kept for (others)
    thing as renamed,
)

def one(call, *args): ...
async def two(call): ...
class Three: ...
four = one
five: "int" = 5
if True:
    def hidden(): ...
'''


@pytest.fixture(scope="session", autouse=True)
def patches_package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """`stand_in.patches` with the modules alpha, beta, gamma_ray, delta and e2_4,
    and torn, which is not Python. `stand_in.other` has none."""
    root = tmp_path_factory.mktemp("packages")
    package = root / "stand_in" / "patches"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text(
        "raise RuntimeError('a registry check imported the parent package')\n"
    )
    (package / "__init__.py").touch()
    for name in ("alpha", "beta", "gamma_ray", "delta", "e2_4"):
        (package / f"{name}.py").write_text(MODULE)
    (package / "torn.py").write_text("one = two = 1\ndef (\n")
    (package.parent / "other").mkdir()
    (package.parent / "other" / "__init__.py").touch()
    sys.path.insert(0, str(root))
    yield
    sys.path.remove(str(root))


Load = Callable[[str], Registry]


@pytest.fixture
def load_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads a text as `gap_registry.yaml` in the current directory."""
    monkeypatch.chdir(tmp_path)

    def load_it(text: str) -> Registry:
        path = Path("gap_registry.yaml")
        path.write_text(text, encoding="utf-8")
        return load(path)

    return load_it


Refuse = Callable[[str], tuple[Problem, ...]]


@pytest.fixture
def problems_of(load_text: Load) -> Refuse:
    """The problems of a text that must not load."""

    def refuse(text: str) -> tuple[Problem, ...]:
        with pytest.raises(RegistryError) as caught:
            load_text(text)
        return caught.value.problems

    return refuse
