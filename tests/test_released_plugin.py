"""vllm-ascend as it was released: what it closes by itself, read from its source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ascend_shims.upstream.sources import SourceUnavailable, open_source

V2 = "vllm_ascend.worker.v2"
RUNNER = f"{V2}.model_runner:NPUModelRunner"
ALWAYS = {
    "cos-sin": f"{RUNNER}.prepare_inputs",
    "kv-cache": f"{V2}.attn_utils:_allocate_kv_cache",
    "npu-graph": f"{RUNNER}.__init__",
    "graph-manager": f"{RUNNER}.initialize_kv_cache",
    "speculator-graph-manager": f"{V2}.spec_decode.autoregressive.speculator:"
    "AscendAutoRegressiveSpeculator.init_cudagraph_manager",
    "speculator-dispatch": f"{RUNNER}.__init__",
    "input-buffers": f"{RUNNER}.__init__",
    "profile-run-mc2": f"{RUNNER}.profile_run",
}
EAGLE = f"{V2}.spec_decode.eagle.speculator:AscendEagleSpeculator"
SHARED = {
    "kv-cache": f"{V2}.attn_utils:allocate_kv_cache_main",
    "extract-hidden-states": f"{V2}.attn_utils:_allocate_kv_cache",
    "shared-kv-backing": f"{RUNNER}.supports_standardized_shared_kv_backing",
}
RELEASES: dict[str, tuple[str, dict[str, str]]] = {
    # The plugin's release, vLLM's, and what closes which gap.
    "0.23.0.post1": (
        "0.27.1",
        {**ALWAYS, "speculator-graph-manager": f"{EAGLE}.init_cudagraph_manager"},
    ),
    "0.27.1rc1": ("0.27.1", ALWAYS),
    "0.28.0rc1": ("0.29.0", {**ALWAYS, **SHARED}),
    "0.29.0rc1": ("0.29.0", {**ALWAYS, **SHARED}),
    "0.30.0rc2": ("0.30.0", {**ALWAYS, **SHARED}),
}

PLANNED = """
import json, sys
from ascend_shims.process import Process
from ascend_shims.switches import Switches
prefer, vllm = sys.argv[1:]
switches = Switches(device="npu", prefer=prefer, assume={"vllm": vllm})
plan = Process().plan(switches)
states = {p.gap.id: [str(p.state), p.reason] for p in plan.gaps}
loaded = [name for name in sys.modules if name.partition(".")[0] == "vllm_ascend"]
print(json.dumps([states, loaded]))
"""


def planned(root: Path, vllm: str, prefer: str = "plugin") -> dict[str, list[str]]:
    """By gap: the state and the reason, planned beside the plugin in `root`."""
    done = subprocess.run(
        [sys.executable, "-c", PLANNED, prefer, vllm],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    states, loaded = json.loads(done.stdout)
    assert loaded == []
    return states


@pytest.fixture(scope="module")
def released(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], Path]:
    def unpacked(version: str) -> Path:
        root = tmp_path_factory.mktemp(version)
        try:
            source = open_source(f"vllm-ascend=={version}", packages=["vllm_ascend"])
        except SourceUnavailable as error:
            pytest.skip(f"the index cannot be reached: {error}")
        for path in source.paths():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(source.read(path))
        return root

    return unpacked


@pytest.mark.parametrize("version", RELEASES)
def test_what_a_release_closes(version: str, released: Callable[[str], Path]) -> None:
    vllm, closed = RELEASES[version]
    states = planned(released(version), vllm)
    assert len(states) == 12
    found = {
        gap: reason.rpartition("by its source: ")[2]
        for gap, (state, reason) in states.items()
        if state == "provided"
    }
    assert found == closed
    # What it overrides of these passes on, so that ours still run.
    open_ = {gap for gap, (state, _) in states.items() if state == "None"}
    assert {"runtime-guard", "fine-grained-tp"} <= open_


def test_what_can_be_preferred_beside_a_release(
    released: Callable[[str], Path],
) -> None:
    """Its `prepare_inputs` never calls upstream's, and its marker hides ours."""
    states = planned(released("0.30.0rc2"), "0.30.0", "shims")
    kept = {gap for gap, (state, _) in states.items() if state == "provided"}
    assert {"cos-sin", "input-buffers", "shared-kv-backing"} <= kept
    assert (
        "overrides vllm.v1.worker.gpu.model_runner:GPUModelRunner.prepare_inputs"
        in (states["input-buffers"][1])
    )
    assert {"kv-cache", "npu-graph", "speculator-dispatch"}.isdisjoint(kept)
