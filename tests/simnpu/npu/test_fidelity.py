"""`tools/check-rig-fidelity`, with kept facts and with the package index."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools" / "check-rig-fidelity"
FACTS = Path(__file__).with_name("torch_npu_2_13_0.json")


def check(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, *arguments], capture_output=True, text=True, check=False
    )


def test_the_rig_is_as_torch_npu() -> None:
    done = check("--facts", FACTS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].startswith("66 names compared with ")
    assert done.stdout.splitlines()[-1] == "0 differ"


CHANGES = {
    "a parameter more": ("synchronize", lambda told: [*told, "keyword_only wait=True"]),
    "another default": (
        "graph",
        lambda told: [told[0], *(p.replace("global", "relaxed") for p in told[1:])],
    ),
    "another name": (
        "graph_task_update_begin",
        lambda told: [told[0], told[1], "positional_or_keyword task"],
    ),
    "another kind": ("Event.from_ipc_handle", lambda told: ["function", *told[1:]]),
    "a new name": ("Event.cancel", lambda told: ["function"]),
    "a name less": ("NPUGraph.replay", lambda told: None),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_differs_is_listed(tmp_path: Path, case: str) -> None:
    name, change = CHANGES[case]
    facts = json.loads(FACTS.read_text())
    changed = change(facts.pop(name, []))  # type: ignore[no-untyped-call]
    if changed is not None:
        facts[name] = changed
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(facts))
    done = check("--facts", path)
    assert done.returncode == 1
    assert "1 differ:" in done.stdout
    assert f"  {name}: " in done.stdout


def test_the_kept_facts_are_those_of_the_release(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    done = check("--write", path)
    if done.returncode == 2:
        pytest.skip(f"torch_npu's source cannot be had: {done.stderr.strip()}")
    assert done.returncode == 0
    assert json.loads(path.read_text()) == json.loads(FACTS.read_text())
