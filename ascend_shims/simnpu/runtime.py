"""Upstream MRV2 on a CPU: the environment, an engine, greedy tokens.

`environment` goes into the environment of a process before it starts; `engine`
and `generate` are for use inside that process, and import vLLM when called.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vllm import LLM

__all__ = ["engine", "environment", "generate"]


def environment() -> dict[str, str]:
    """The variables that make real MRV2 run on this machine's CPU.

    They choose Triton's interpreter, quickened, MRV2, and no network.
    `ASCEND_SHIMS_DEVICE` is not among them: this is upstream's CPU backend, not the
    software NPU.
    """
    return {
        "TRITON_INTERPRET": "1",
        "ASCEND_SHIMS_SIM_QUICK": "1",
        # Seconds of C++ compilation otherwise, for two small helpers of the sampler.
        "TORCHDYNAMO_DISABLE": "1",
        "VLLM_USE_V2_MODEL_RUNNER": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        # One thread each: the models are tiny, and sums do not depend on the split.
        "OMP_NUM_THREADS": "1",
        # Workers share what cores there are: binding gives each its own NUMA node.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }


def engine(model_path: str | Path, **overrides: Any) -> LLM:
    """A `vllm.LLM` whose tokens depend on nothing but the model and the prompts.

    In float32: requests meet in batches that differ from run to run, and sums
    differ with them; in bfloat16 that flips a greedy token now and then. No
    graphs, no tokenizer, no prefix cache, and vLLM's dummy weights only where
    the model brings none. `overrides` are arguments of `vllm.LLM` and win.

    Whatever lives when vLLM has been imported is exempt from garbage collection.
    """
    with _imports():
        from vllm import LLM

    weights = any(Path(model_path).glob("*.safetensors"))
    settings: dict[str, Any] = {
        "load_format": "safetensors" if weights else "dummy",
        "dtype": "float32",
        "seed": 0,
        "enforce_eager": True,
        "skip_tokenizer_init": True,
        "enable_prefix_caching": False,
        "max_model_len": 256,
        "max_num_seqs": 8,
        "max_num_batched_tokens": 256,
        # Twice what eight full requests need, at 16 tokens a block.
        "num_gpu_blocks_override": 256,
        "disable_log_stats": True,
        **_attention(),
    }
    return LLM(model=str(model_path), **{**settings, **overrides})


def _attention() -> dict[str, str]:
    """What has upstream's CPU attend to latents (MLA) in float32.

    Where the processor has AMX it takes a backend for bfloat16 alone, unless this one
    is named; with other attention the name is passed over. The device has its own.
    """
    from vllm.platforms import current_platform

    is_upstreams = type(current_platform).__module__.startswith("vllm.")
    return {"attention_backend": "CPU_MLA"} if is_upstreams else {}


@contextmanager
def _imports() -> Iterator[None]:
    """What is imported inside is never looked through for garbage.

    Start-up collects it a dozen times, and each time looks at half a million objects
    that stay for good: a quarter of its time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def generate(
    llm: LLM, prompts: Sequence[Sequence[int]], max_tokens: int
) -> list[list[int]]:
    """Exactly `max_tokens` greedy token ids for each prompt, in prompt order."""
    from vllm import SamplingParams

    sampling = SamplingParams(
        temperature=0.0, max_tokens=max_tokens, ignore_eos=True, detokenize=False
    )
    outputs = llm.generate(
        [{"prompt_token_ids": list(prompt)} for prompt in prompts],
        sampling,
        use_tqdm=False,
    )
    return [list(output.outputs[0].token_ids) for output in outputs]
