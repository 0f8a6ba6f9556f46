"""A made-up upstream whose texts try to break out of the page, gathered in here."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ascend_shims.page.gather import Asked, gather
from ascend_shims.page.model import Page
from ascend_shims.processes.client import Answer
from ascend_shims.registry import load
from ascend_shims.upstream.fetching import Releases
from ascend_shims.upstream.lock import Lock
from ascend_shims.upstream.run import Run
from ascend_shims.upstream.sources import Sources
from ascend_shims.upstream.watched import from_registry

from ..cli.conftest import environ, project, serving, shims
from ..cli.test_drift import drift, index

__all__ = ["drift", "environ", "index", "project", "serving", "shims"]

BREAKOUT = "</script><script>document.title='broken out'</script><!-- {{data}}"
"""What must stay text wherever it stands."""

_REGISTRY = f"""
schema: 1
upstreams: [madeup]
package: madeup_patches
companions:
  - id: along
    goes_with: every-gap
    why: It goes along.
    patches:
      - {{target: "madeup.core:ask", kind: wrap, replacement: f}}
gaps:
  - id: loud
    title: Answers <b>loudly</b>
    status: open
    kind: workaround
    why: >-
      Callers are hard of hearing. {BREAKOUT}
    remove_when: They hear.
    versions: {{madeup: ">=1"}}
    needs: {{device: false}}
    references: ["first", "second"]
    removal_probe:
      - says: upstream shouts
        all: [{{symbol: "madeup.core:answer", takes: [volume, "loud*"]}}]
    patches:
      - {{target: "madeup.core:answer", kind: wrap, replacement: f, lazy: true}}
  - id: copied
    title: Carries a copy
    status: open
    kind: adaptation
    why: W
    remove_when: R
    needs: {{device: false, gaps: [loud]}}
    default: "off"
    patches:
      - target: ["madeup.voice:greet", "madeup.core:greet"]
        kind: replace
        replacement: our_greet
        versions: {{madeup: ">=1,<3"}}
  - id: gone
    title: Upstream does it
    status: landed
    kind: workaround
    why: It did not.
    remove_when: It does.
    unpatched: upstream answers by itself
watch:
  - {{symbol: "madeup.core:limit", how: imports_name}}
"""

_FIRST = """
limit = 1


def answer(word):
    return word


def greet(name):
    said = "hello"
    return said + name


def ask():
    return answer(greet("you"))
"""
_ANSWER = f'    """{BREAKOUT}"""\n    return word\n'
RELEASES = {
    "1.0": {"core": _FIRST},
    "1.1": {"core": _FIRST.replace("    return word\n", _ANSWER)},
    "1.2": {
        "core": _FIRST.replace("answer(word)", "answer(word, tone=None)").replace(
            "    return word\n", _ANSWER
        ),
    },
    "1.3": {
        "core": "from madeup.voice import greet\n\n\ndef ask():\n    return greet(1)\n",
        "voice": 'def greet(name):\n    said = "hallo"\n    return said + name\n',
    },
}
_PATCHES = {
    "loud": "def f(call, word):\n    return call(word)\n",
    "copied": 'def our_greet(name):\n    said = "hello"\n    return said + name\n',
    "along": "def f(call, gap, version, *a):\n    return call(*a)\n",
}


@pytest.fixture
def upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The releases as folders, the registry and its patches."""
    files = {"registry.yaml": _REGISTRY, "madeup_patches/__init__.py": ""}
    for version, modules in RELEASES.items():
        files[f"{version}/madeup/__init__.py"] = ""
        files |= {f"{version}/madeup/{m}.py": text for m, text in modules.items()}
    files |= {f"madeup_patches/{name}.py": text for name, text in _PATCHES.items()}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ASCEND_SHIMS_CACHE", "off")
    return tmp_path


ANSWERS = (
    Answer(
        41,
        {
            "schema": 1,
            "plan": "abc",
            "process": {"pid": 41, "role": "worker TP1"},
            "gaps": [
                {"id": "loud", "state": "applied", "status": "open", "reason": "yes"},
                {
                    "id": "copied",
                    "state": "failed",
                    "status": "open",
                    "reason": f"it raised {BREAKOUT}",
                },
            ],
        },
    ),
    Answer(42, None, "no answer within 2 s: busy or stopped"),
)

REPORT: dict[str, Any] = {
    "gaps": [
        {
            "id": "loud",
            "state": "pending",
            "reason": "waits",
            "patches": [
                {"target": "madeup.core:answer", "state": "pending", "reason": "waits"},
                {"target": "madeup.core:ask", "state": "pending", "reason": "waits"},
            ],
        },
        {
            "id": "copied",
            "state": "off",
            "reason": "off by default",
            "patches": [
                {"target": "madeup.core:greet", "state": "off", "reason": "by default"},
            ],
        },
    ]
}


@pytest.fixture
def page_of(upstream: Path) -> Callable[..., Page]:
    """Gather the page, of all releases and processes unless told otherwise."""

    def make(*versions: str, **given: Any) -> Page:
        path = upstream / "registry.yaml"
        registry = load(path)
        sources = Sources(offline=True)
        watched = from_registry(registry, path)
        run = Run(Releases(sources), Lock(), watched, str(upstream / "1.0"))
        asked = {
            "registry": registry,
            "package": "madeup",
            "releases": [(v, str(upstream / v)) for v in versions or RELEASES],
            "report": REPORT,
            "answers": ANSWERS,
            "where": "madeup 1.2 · device none",
            "made": "2000-01-01 00:00:00 UTC",
            "toolkit": "0.0",
        }
        return gather(run, Asked(**(asked | given)))

    return make


@pytest.fixture
def page(page_of: Callable[..., Page]) -> Page:
    return page_of()
