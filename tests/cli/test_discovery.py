"""`--registry FOLDER`: a project's own registry, from any working directory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CORE = "def answer(word):\n    return word\n"


@pytest.fixture
def repository(project: Path) -> Path:
    """The project as a repository that names its registry, with two releases of
    upstream outside. Its patches leave a mark when they are imported."""
    root = project / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "conf").mkdir()
    (root / "src" / "deep").mkdir(parents=True)
    (project / "registry.yaml").rename(root / "conf" / "ours.yaml")
    (root / "pyproject.toml").write_text(
        '[tool.ascend-shims]\nregistry = "conf/ours.yaml"\n'
    )
    for release, text in (("old", CORE), ("new", "")):
        place = project / release / "madeup"
        place.mkdir(parents=True)
        (place / "__init__.py").write_text("")
        (place / "core.py").write_text(text)
    for patch in (project / "madeup_patches").glob("*.py"):
        mark = project / "imported"
        patch.write_text(f"open({str(mark)!r}, 'w')\n{patch.read_text()}")
    return root


@pytest.mark.parametrize("start", [".", "src", "src/deep", "conf"])
def test_the_same_from_any_working_directory(
    repository: Path, environ: dict[str, str], start: str
) -> None:
    upstream = repository.parent
    said = []
    for where in (repository, upstream, Path("/")):
        done = subprocess.run(
            [
                *(sys.executable, "-m", "ascend_shims", "drift", "--json"),
                *("--registry", str(repository / start), "--package", "madeup"),
                *("--baseline", str(upstream / "old")),
                *("--against", str(upstream / "new")),
            ],
            env={**environ, "ASCEND_SHIMS_REGISTRY": "/nowhere"},
            cwd=where,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        said.append([(one["gap"], one["file"]) for one in found["findings"]])
    expected = [("loud", "conf/ours.yaml"), ("polite", "conf/ours.yaml")]
    assert said == [expected] * 3
    assert not (upstream / "imported").exists()


def test_no_registry_there(repository: Path, shims: Any) -> None:
    (repository / "pyproject.toml").unlink()
    done = shims("drift", "--registry", str(repository / "src"))
    assert done.returncode == 2
    assert "put a gap_registry.yaml there, or write [tool.ascend-shims]" in done.stderr
