"""`shims verify` and `ascend_shims.verify()` on upstream itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def told() -> Any:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("ASCEND_SHIMS")}
    done = subprocess.run(
        [sys.executable, "-m", "ascend_shims", "verify", "--json"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=2400,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_upstream_is_byte_identical_off_and_reverted(told: Any) -> None:
    different = {
        (stage["name"], one["path"], one["what"])
        for stage in told["stages"]
        for one in stage["differences"]
    }
    assert different == set()
    assert [error for stage in told["stages"] for error in stage["errors"]] == []
    assert told["ok"]
    assert set(told["digests"].values()) == {told["digest"]}


def test_every_gap_was_in_force_alone_and_with_all_others(told: Any) -> None:
    stages = {stage["name"]: stage for stage in told["stages"]}
    gaps = [gap["id"] for gap in stages["all"]["gaps"]]
    left_out = {gap["id"]: gap["state"] for gap in told["left_out"]}
    assert len(gaps) >= 9
    assert set(left_out.values()) <= {"landed", "version-skipped"}
    for name in ("all", "before upstream", *gaps):
        for gap in stages[name]["gaps"]:
            assert gap["in_force"], gap
            assert gap["changed"] == gap["applied"] > 0
    assert list(stages) == [
        "off",
        *gaps,
        "all",
        "after all that",
        "before upstream",
    ]


def test_at_least_a_hundred_thousand_entries_are_compared(told: Any) -> None:
    compared = told["compared"]
    assert compared["by_root"]["vllm"] > 100_000
    assert compared["by_root"]["torch"] > 100_000
    assert compared["entries"] == sum(compared["by_root"].values())


def test_a_registered_operator_is_found(tmp_path: Path) -> None:
    """What torch keeps outside of Python."""
    # The harness imports this file by its name, where it has no parent.
    from ..verify.conftest import Town

    town = Town(tmp_path, "torch")
    town.write(
        "up_torch/b.py", "import torch\nfrom .a import plain, other as renamed\n"
    )
    town.gap(
        "operator",
        "import torch\n"
        "torch.library.define('leaked::f', '(Tensor x) -> Tensor')\n"
        "torch.library.impl('leaked::f', 'CPU', lambda x: x)",
    )
    town.gap("mode", "import torch; torch.set_default_dtype(torch.float64)")
    stages = {s["name"]: s for s in town.verify("--json").told["stages"]}
    found = [(d["path"], d["kind"]) for d in stages["operator"]["differences"]]
    assert ("torch operators:leaked::f", "new") in found
    mode = {one["path"]: one["what"] for one in stages["mode"]["differences"]}
    said = "was 'torch.float32' and is 'torch.float64'"
    assert mode["torch state:get_default_dtype"] == said
    # torch is none of this upstream's packages: it is looked at as all others are.
    assert mode.keys() - {"torch state:get_default_dtype"} == {"torch:Storage"}


def verified(model: str) -> Any:
    """In a process with an engine: before, while and after."""
    import ascend_shims
    from ascend_shims.simnpu.runtime import engine, generate

    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    # The platform is upstream's own by then, and stays it.
    import vllm.v1.worker.cpu_worker  # noqa: F401

    os.environ["ASCEND_SHIMS_DEVICE"] = "sim"
    ascend_shims.apply(only=["runtime-guard"])
    llm = engine(model)
    tokens = generate(llm, [[3, 4, 5]], 4)
    on = ascend_shims.verify().as_dict()
    ascend_shims.revert()
    off = ascend_shims.verify().as_dict()
    return {"tokens": tokens, "on": on, "off": off}


def test_a_running_engine_is_told_to_restart(run_real: Any, model_gqa: Path) -> None:
    # The rig's quick interpreter puts a function of its own beside the kernels.
    told = run_real(verified, model_gqa, env={"ASCEND_SHIMS_SIM_QUICK": "0"})
    on, off = told["on"], told["off"]
    assert [(one["path"], one["what"]) for one in on["differences"]] == []
    assert [(one["path"], one["what"]) for one in off["differences"]] == []
    assert on["compared"]["definitions"] > 20_000
    assert on["unread"] == {}
    runner = "vllm.v1.worker.gpu.model_runner:GPUModelRunner.execute_model"
    assert {"path": runner, "what": "runtime-guard"} in on["patched"]
    assert {one["what"] for one in on["patched"]} <= {
        "runtime-guard",
        "a reference that moved along",
    }
    assert off["patched"] == []
    assert off["is_stock"]
    assert off["restart_needed"]
    made = "vllm.v1.worker.cpu.model_runner:CPUModelRunner may have been made while"
    assert any(made in line for line in off["restart"])
    assert on["digest"] == off["digest"]
