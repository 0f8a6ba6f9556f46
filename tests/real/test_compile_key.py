"""What is compiled with a gap is not found without it, nor the other way round."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

RunReal = Callable[..., Any]

PROMPTS = [[1, 2, 3, 4, 5], [7, 8, 9]]
TOKENS = 6
TRACED = [
    "cos-sin",
    "kv-cache",
    "npu-graph",
    "extract-hidden-states",
    "profile-run-mc2",
]
ENV = {
    "ASCEND_SHIMS_DEVICE": "sim",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "TORCHDYNAMO_DISABLE": None,
}


def test_the_hash_follows_the_gaps_that_are_in_force(run_real: RunReal) -> None:
    told = run_real(hashes, env=ENV)
    stock = told["stock"]
    assert told["all off"] == told["untraced"] == told["reverted"] == stock
    assert told["the very function"] == [True] * 3
    applied = [gap for gap in TRACED if gap in told["in force"]]
    # Before 0.29 one of them has nothing to patch.
    assert len(applied) >= 4
    without = told["without"]
    assert [*without] == applied
    # Whichever is taken away, and all together: no two are alike, nor stock.
    known = [stock, told["on"], *without.values()]
    assert len({*known}) == len(known)
    assert {len(one) for one in known} == {len(stock)}
    # The other way to an artifact, ahead-of-time compilation, has the same in it.
    assert told["factors"]["stock"] != told["factors"]["on"]
    assert stock in told["factors"]["stock"]
    assert told["on"] in told["factors"]["on"]


def test_an_edited_patch_is_another_one(run_real: RunReal) -> None:
    told = run_real(edited, env=ENV)
    assert told["before"] == told["again"]
    assert told["after"] not in (told["before"], told["stock"])


def test_artifacts_are_kept_apart(
    run_real: RunReal, model_gqa: str, tmp_path: Any
) -> None:
    cache = tmp_path / "cache"
    env = {**ENV, "VLLM_CACHE_ROOT": str(cache)}
    told = run_real(compiled, model_gqa, env=env, timeout=580)
    on, off, on_again = told["rounds"]
    assert on["tokens"] == off["tokens"] == on_again["tokens"]
    assert len(on["tokens"][0]) == TOKENS
    # Front end and worker ask alike.
    for one in told["rounds"]:
        assert one["hash"] == one["front end"]
    assert on["hash"] == on_again["hash"] != off["hash"]
    # Each wrote where the other does not look, and the third found the first's.
    assert on["made"]
    assert off["made"]
    assert not {*on["made"]} & {*off["made"]}
    assert on_again["made"] == []
    assert [one["compiled"] for one in told["rounds"]] == [1, 1, 0]
    assert [one["loaded"] for one in told["rounds"]] == [0, 0, 1]


# The other side -----------------------------------------------------------------------


def hashes() -> dict[str, Any]:
    from vllm.compilation.caching import aot_compile_hash_factors
    from vllm.config import VllmConfig

    import ascend_shims

    def is_stock() -> bool:
        return VllmConfig.__dict__["compute_hash"] is function

    function = VllmConfig.__dict__["compute_hash"]
    config = VllmConfig()
    told: dict[str, Any] = {"stock": config.compute_hash()}
    factors = {"stock": [*map(str, aot_compile_hash_factors(config))]}
    report = ascend_shims.apply()
    told["on"] = config.compute_hash()
    factors["on"] = [*map(str, aot_compile_hash_factors(config))]
    planned = ("applied", "pending", "partial")
    told["in force"] = [gap.id for gap in report.gaps if gap.state in planned]
    told["without"] = {}
    for gap in TRACED:
        if gap in told["in force"]:
            with ascend_shims.disabled(gap):
                told["without"][gap] = config.compute_hash()
    very = []
    with ascend_shims.disabled():
        told["all off"] = config.compute_hash()
        very.append(is_stock())
    ascend_shims.apply(disable=TRACED)
    told["untraced"] = config.compute_hash()
    very.append(is_stock())
    ascend_shims.revert()
    told["reverted"] = config.compute_hash()
    return {**told, "the very function": [*very, is_stock()], "factors": factors}


def edited() -> dict[str, Any]:
    from pathlib import Path
    from shutil import copytree
    from tempfile import mkdtemp

    from vllm.config import VllmConfig

    import ascend_shims
    from ascend_shims.engine import versions
    from ascend_shims.registry import packaged

    config = VllmConfig()
    told = {"stock": config.compute_hash()}
    folder = Path(mkdtemp())
    patches = copytree(packaged().resolve().parent / "patches", folder / "edited")
    text = packaged().read_text(encoding="utf-8")
    registry = folder / "gap_registry.yaml"
    registry.write_text(text.replace("\ngaps:", "\npackage: edited\ngaps:"))
    sys.path.insert(0, str(folder))
    os.environ["ASCEND_SHIMS_ALLOW"] = "edited"

    def key() -> str:
        versions._code.cache_clear()
        ascend_shims.apply(only=["kv-cache"], registry=registry)
        found = config.compute_hash()
        ascend_shims.revert()
        return str(found)

    told["before"], told["again"] = key(), key()
    with (patches / "kv_cache.py").open("a") as module:
        module.write("# edited\n")
    told["after"] = key()
    return told


def compiled(model: str) -> dict[str, Any]:
    import gc
    from pathlib import Path

    from vllm.compilation.counter import compilation_counter as counter
    from vllm.compilation.passes.utility.fix_functionalization import (
        FixFunctionalizationPass,
    )

    import ascend_shims
    from ascend_shims.simnpu import platform
    from ascend_shims.simnpu.runtime import engine, generate

    # Upstream's attention for a CPU, as one operator, and vLLM's own backend: the
    # rig's attention is no matter of compilers, and a CPU goes without that backend.
    platform.SimNPUPlatform.opaque_attention_op = classmethod(lambda cls: True)
    kept = (("compilation_config", "mode"), ("compilation_config", "backend"))
    platform._KEPT += kept
    # They look for operators that a CPU lacks, as the two below do.
    FixFunctionalizationPass.__call__ = lambda self, graph: None
    root = Path(os.environ["VLLM_CACHE_ROOT"])
    known: set[str] = set()
    told: dict[str, Any] = {"rounds": []}
    for off in ([], ["cos-sin"], []):
        ascend_shims.apply(disable=off)
        llm = engine(
            model,
            enforce_eager=False,
            attention_backend="CPU_ATTN",
            compilation_config={
                "mode": 3,
                "cudagraph_mode": "NONE",
                "pass_config": {"fuse_norm_quant": False, "fuse_act_quant": False},
            },
        )
        core = llm.llm_engine.engine_core.engine_core
        config = core.model_executor.driver_worker.worker.vllm_config
        found = {str(one) for one in root.glob("torch_compile_cache/*/*")}
        told["rounds"].append(
            {
                "tokens": generate(llm, PROMPTS, TOKENS),
                "hash": config.compute_hash(),
                "front end": llm.llm_engine.vllm_config.compute_hash(),
                "made": sorted(found - known),
                "compiled": counter.num_aot_compiles,
                "loaded": counter.num_aot_artifacts_loaded,
            }
        )
        counter.num_aot_compiles = counter.num_aot_artifacts_loaded = 0
        known |= found
        core.shutdown()
        del llm, core, config
        gc.collect()
    return told
