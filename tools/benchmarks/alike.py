"""What a matrix of made-up releases takes, by how much of them changes."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

from . import rooms
from .children import run
from .figures import in_turns
from .making import Benchmark, Effort, row
from .model import Row

__all__ = ["ALIKE"]

_MODULES, _FUNCTIONS, _RELEASES = 200, 100, 10
_CHANGED = {"alike": 0, "tenth": _MODULES // 10, "all": _MODULES}

_REGISTRY = """\
schema: 1
upstreams: [madeup]
gaps:
  - id: nothing
    title: Nothing of its own
    status: open
    kind: adaptation
    why: What is relied on is named by --watch.
    remove_when: Never.
    unpatched: There is nothing to patch.
"""

_NO_OTHER_INDEX = {
    "PIP_CONFIG_FILE": "/dev/null",
    "PIP_EXTRA_INDEX_URL": "",
    "PIP_FIND_LINKS": "",
}


def measure(effort: Effort) -> list[Row]:
    took: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        home = Path(name)
        (home / "registry.yaml").write_text(_REGISTRY)
        watched = (
            {"symbol": f"madeup.m{number}:f3", "how": "calls"}
            for number in range(_MODULES)
        )
        (home / "watch.jsonl").write_text("\n".join(map(json.dumps, watched)))
        for kind, changed in _CHANGED.items():
            _write(home / kind, changed, _RELEASES)
        _write(home / "one", 0, 1)
        _shims(home, "one", "lock", "madeup==0.0")
        for order in in_turns(["one", *_CHANGED], effort.times(9, 1)):
            for kind in order:
                words = ("matrix", "--package", "madeup", "--from", "1.0")
                took[kind].append(_shims(home, kind, *words))
    ten = f"shims matrix of {_RELEASES} made-up releases"
    every = f"{_RELEASES} in which every module has changed"
    return [
        row("alike-one", f"{ten}, all alike", "of 1", "s", took, "alike", "one"),
        row("alike-all", f"{ten}, all alike", every, "s", took, "alike", "all"),
        row("alike-tenth", f"{ten}, a tenth changed", every, "s", took, "tenth", "all"),
    ]


def _shims(home: Path, kind: str, *words: str) -> float:
    """Seconds of processor time, with nothing cached."""
    with tempfile.TemporaryDirectory(prefix="bench-") as cache:
        env = {"ASCEND_SHIMS_CACHE": cache, **_NO_OTHER_INDEX}
        relied = ("--registry", "registry.yaml", "--watch", "watch.jsonl")
        index = ("--index-url", (home / kind).as_uri())
        command = (rooms.environment(), "-m", "ascend_shims", *words, *relied, *index)
        return run(*command, env=env, cwd=home).processor


def _write(index: Path, changed: int, releases: int) -> None:
    """An index of release 0.0, which is locked, and of those that come after it."""
    page = index / "madeup"
    page.mkdir(parents=True)
    links = []
    for release in range(releases + 1):
        name = f"madeup-{release}.0-py3-none-any.whl"
        with zipfile.ZipFile(page / name, "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr("madeup/__init__.py", "")
            for number in range(_MODULES):
                text = _module(release if number < changed else 0)
                wheel.writestr(f"madeup/m{number}.py", text)
        links.append(f'<a href="{name}">{name}</a>')
    (page / "index.html").write_text("\n".join(links))


def _module(release: int) -> str:
    functions = (
        f"def f{number}(a, b={release}, *, c=None):\n"
        f"    return [a + {release} for _ in range({number})]\n"
        for number in range(_FUNCTIONS)
    )
    return "\n\n".join(functions)


ALIKE = Benchmark("alike", "Releases that change little", measure)
