"""The wheel alone, on each Python, with the oldest and the newest of what it needs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..test_packaging import wheel  # noqa: F401 - a fixture
from .environments import asked, environment, interpreter, lowest, resolve

pytestmark = pytest.mark.any_release

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")

REGISTRY = """\
schema: 1
upstreams: [madeup]
package: gaps
gaps:
  - id: loud
    title: A gap of a test
    status: open
    kind: workaround
    why: a test
    remove_when: it has passed
    needs: {device: false}
    versions: {madeup: ">=1"}
    patches:
      - {target: "madeup.core:answer", kind: wrap, replacement: shout}
"""
METADATA = "Metadata-Version: 2.1\nName: madeup\nVersion: 1.2.0\n"
PROJECT = {
    "gap_registry.yaml": REGISTRY,
    "gaps/__init__.py": "",
    "gaps/loud.py": "def shout(call, word):\n    return call(word).upper()\n",
    "madeup-1.2.0.dist-info/METADATA": METADATA,
    "madeup/__init__.py": "__version__ = '1.2.0'\n",
    "madeup/core.py": "def answer(word):\n    return word\n",
    "newer/madeup/__init__.py": "__version__ = '1.3.0'\n",
    "newer/madeup/core.py": "def reply(word):\n    return word\n",
}

BY_HAND = """
import ascend_shims, madeup.core
report = ascend_shims.apply(registry="gap_registry.yaml", allow=["gaps"])
print(report.state("loud"), madeup.core.answer("a"))
with ascend_shims.disabled("loud"):
    print(ascend_shims.status().state("loud"), madeup.core.answer("a"))
ascend_shims.revert()
print(ascend_shims.status().state("loud"), madeup.core.answer("a"))
"""
INSTALLED = """
import importlib.metadata, json
found = importlib.metadata.distributions()
print(json.dumps({one.metadata["Name"]: one.version for one in found}))
"""


UNREACHED = """
import contextlib, io, os
from ascend_shims.cli import main
os.environ |= {"ASCEND_SHIMS_CACHE": os.path.abspath("cache"), "NO_PROXY": "*"}
told = io.StringIO()
with contextlib.redirect_stderr(told):
    code = main(["drift", "--against", "vllm==9.9", "--index-url", "http://127.0.0.1:9"])
print(code, told.getvalue().splitlines()[-1])
"""


@dataclass(frozen=True)
class Installed:
    """An environment with nothing but the wheel and what it needs."""

    bin: Path
    room: Path
    pins: dict[str, str]

    def shims(
        self,
        *words: str | Path,
        path: Path | None = None,
        ends: tuple[int, ...] = (0,),
    ) -> str:
        return asked(self.bin / "shims", *words, cwd=self.room, path=path, ends=ends)

    def python(self, *words: str, path: Path | None = None) -> str:
        # What Python deprecates now is gone in its next release.
        python = (self.bin / "python", "-W", "error")
        return asked(*python, *words, cwd=path or self.room, path=path)


@pytest.fixture(scope="module", params=["lowest", "newest"])
def bounds(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=VERSIONS)
def installed(
    request: pytest.FixtureRequest,
    bounds: str,
    wheel: Path,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Installed:
    version = request.param
    room = tmp_path_factory.mktemp("fresh")
    pins = lowest(version) if bounds == "lowest" else {}
    python = interpreter(version)
    if python is None:
        resolve(version, room / "python", wheel, pins=pins)
        pytest.skip(
            f"no python{version} is here: all that was tried is that wheels of what "
            "this needs are to be had for it"
        )
    return Installed(environment(python, room / "own", wheel, pins=pins), room, pins)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A registry of one gap, its patch, and two releases of an upstream."""
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_is_installed_is_what_was_meant(installed: Installed) -> None:
    found = json.loads(installed.python("-c", INSTALLED))
    needed = lowest("3.10")
    assert len(needed) >= 7
    assert needed.keys() | {"ascend-shims"} <= found.keys()
    assert not found.keys() & {"pip", "torch", "vllm"}
    for name, bound in installed.pins.items():
        assert re.fullmatch(rf"{re.escape(bound)}(\.0)*", found[name]), name


def test_the_commands(installed: Installed) -> None:
    # Not all is well where some other process of this machine is not.
    status = json.loads(installed.shims("status", "--json", ends=(0, 1)))
    states = {gap["id"]: gap["state"] for gap in status["gaps"]}
    assert "kv-cache" in states
    assert set(states.values()) == {"not-applicable"}
    assert installed.shims("--help").startswith("Usage: shims ")
    assert installed.shims("show", "kv-cache").startswith("kv-cache  ")


def test_the_public_functions(installed: Installed) -> None:
    code = (
        "import ascend_shims; ascend_shims.apply(); report = ascend_shims.status();"
        "print(len(report.gaps), {str(gap.state) for gap in report.gaps})"
    )
    counted, states = installed.python("-c", code).split(maxsplit=1)
    assert int(counted) >= 10
    assert states.strip() == "{'not-applicable'}"


def test_a_registry_with_a_made_up_upstream(
    installed: Installed, project: Path
) -> None:
    assert installed.python("-c", BY_HAND, path=project).splitlines() == [
        "applied A",
        "off a",
        "reverted a",
    ]
    check = ("-m", "ascend_shims.testing.check", "gap_registry.yaml", "loud")
    said = json.loads(installed.python(*check, path=project))
    assert said == {"outcome": "passed", "reasons": []}


def test_drift_of_a_made_up_upstream(installed: Installed, project: Path) -> None:
    registry = ("--registry", project / "gap_registry.yaml", "--package", "madeup")
    drift = ("drift", *registry, "--baseline", project, "--against")
    assert "1 identical" in installed.shims(*drift, project, path=project)
    said = installed.shims(*drift, project / "newer", path=project, ends=(1,))
    assert "madeup.core:reply" in said
    assert "1 broken" in said


def test_an_index_that_does_not_answer(installed: Installed, tmp_path: Path) -> None:
    said = installed.python("-c", UNREACHED, path=tmp_path)
    assert said.startswith("2 shims: cannot reach 127.0.0.1:9")
    assert said.endswith("with --against [index-unreachable]\n")
