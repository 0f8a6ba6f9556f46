"""`kill -9` of a part of a running deployment: nothing of it is shown afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

RunReal = Callable[..., Any]

PROMPTS = [[1, 2, 3, 4, 5], [7, 8, 9]]
TOKENS = 6
PATIENCE = 120


@pytest.mark.any_release
@pytest.mark.parametrize("role", ["worker", "engine-core"])
def test_what_was_killed_is_not_shown(
    role: str, run_real: RunReal, model_gqa: Any
) -> None:
    env = {"ASCEND_SHIMS_DEVICE": "sim"}
    told = run_real(killed, str(model_gqa), role, env=env, timeout=480)
    roles = sorted(name.split()[0] for name in told["before"].values())
    assert roles == ["engine-core", "worker", "worker"]
    victim = str(told["victim"])
    assert told["before"][victim].split()[0] == role
    assert victim in told["listed before"]
    assert set(told["before"]) <= set(told["listed before"])
    # At once, while vLLM takes the rest of itself down; and then there is no rest.
    assert victim not in told["listed at once"]
    assert not set(told["before"]) & set(told["listed in the end"])
    assert told["front end"] == told["states"]
    assert told["states"] != []
    assert told["listed as itself"]
    assert told["reverted"]


def killed(model: str, role: str) -> dict[str, Any]:
    from harness import answers

    import ascend_shims
    from ascend_shims.processes.address import listening
    from ascend_shims.simnpu.runtime import engine, generate

    ascend_shims.apply()
    llm = engine(model, tensor_parallel_size=2, distributed_executor_backend="mp")
    tokens = generate(llm, PROMPTS, TOKENS)
    assert [len(row) for row in tokens] == [TOKENS] * len(PROMPTS)
    before = {a.pid: a.report["process"]["role"] for a in answers()}
    victim = min(pid for pid, name in before.items() if name.startswith(role))
    told: dict[str, Any] = {
        "before": before,
        "victim": victim,
        "listed before": listed(),
        "states": sorted(states()),
    }
    os.kill(victim, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while victim in listening() and time.monotonic() < deadline:
        time.sleep(0.01)
    told["listed at once"] = listed()
    while set(before) & set(listening()) and time.monotonic() < deadline:
        time.sleep(0.1)
    told["listed in the end"] = listed()
    told["front end"] = sorted(states())
    told["listed as itself"] = str(os.getpid()) in told["listed in the end"]
    ascend_shims.revert()
    told["reverted"] = str(os.getpid()) not in listed()
    return told


def states() -> set[str]:
    import ascend_shims

    return {gap.state.value for gap in ascend_shims.status().gaps}


def listed() -> dict[str, str]:
    """What `shims status` says of each process, asked in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "ascend_shims", "status", "--json"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1)
    found = json.loads(done.stdout)["processes"]
    return {str(one["pid"]): one.get("role", "") for one in found}
