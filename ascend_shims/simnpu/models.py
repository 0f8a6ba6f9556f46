"""Tiny models with random weights that listen to their context.

Every function writes one model directory, `config.json` and
`model.safetensors`, and returns its path. The same bytes everywhere: no torch,
no network, no tokenizer. Prompts are token ids below `VOCABULARY`.

vLLM's own dummy weights would need no file, but are so small that attention
drowns in the residual stream: each token then depends on the one before it and
on nothing else, and a broken KV cache, rope or attention goes unnoticed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..files import make_folder, write_whole
from .weights import Weight, write

__all__ = ["VOCABULARY", "eagle", "gqa", "mla", "moe", "sliding"]

VOCABULARY = 512
_HIDDEN = 128
_INNER = 256
_LAYERS = 2
_HEADS = 4
_HEAD = 32
_KV_HEADS = 2
_EXPERTS = 4
_LATENT = 512
_ROPE = 64

_COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": _HIDDEN,
    "intermediate_size": _INNER,
    "num_hidden_layers": _LAYERS,
    "num_attention_heads": _HEADS,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
}

_GQA: dict[str, Any] = {
    **_COMMON,
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "float32",
    "num_key_value_heads": _KV_HEADS,
    "head_dim": _HEAD,
}

_SLIDING: dict[str, Any] = {
    **_GQA,
    "layer_types": ["sliding_attention", "full_attention"],
    "sliding_window": 32,
}

_EAGLE: dict[str, Any] = {
    **_GQA,
    "architectures": ["EagleLlamaForCausalLM"],
    "num_hidden_layers": 1,
}

_MOE: dict[str, Any] = {
    **_GQA,
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "num_local_experts": _EXPERTS,
    "num_experts_per_tok": 2,
}

_MLA: dict[str, Any] = {
    **_COMMON,
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "torch_dtype": "bfloat16",
    "moe_intermediate_size": 64,
    "num_key_value_heads": _HEADS,
    "q_lora_rank": None,
    "kv_lora_rank": _LATENT,
    "qk_rope_head_dim": _ROPE,
    "qk_nope_head_dim": _HEAD,
    "v_head_dim": _HEAD,
    # As the real model has it; and upstream's CPU operator for plain rope turns
    # only some of MLA's heads, which ones depends on the batch.
    "rope_scaling": {
        "type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 512,
        "beta_fast": 32,
        "beta_slow": 1,
        "mscale": 0.707,
        "mscale_all_dim": 0.707,
    },
    "n_routed_experts": _EXPERTS,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": _LAYERS,
    "moe_layer_freq": 1,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "greedy",
    "scoring_func": "softmax",
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.0,
}


def gqa(path: str | Path, *, rope_theta: float = 10000.0) -> Path:
    """Two-layer Llama, float32, four heads on two KV heads."""
    return _write(
        path, {**_GQA, "rope_theta": rope_theta}, _causal_lm(_gqa_attention, _mlp)
    )


def sliding(path: str | Path) -> Path:
    """`gqa` whose first layer sees the last 32 tokens only, the second all."""
    return _write(path, _SLIDING, _causal_lm(_gqa_attention, _mlp))


def moe(path: str | Path) -> Path:
    """Two-layer Mixtral, float32, two of four experts a token."""
    return _write(path, _MOE, _causal_lm(_gqa_attention, _experts))


def mla(path: str | Path) -> Path:
    """Two-layer DeepSeek V2, bfloat16, multi-head latent attention, dense layers."""
    return _write(path, _MLA, _causal_lm(_mla_attention, _mlp))


def eagle(path: str | Path) -> Path:
    """One-layer EAGLE draft for `gqa`, whose embedding and output head it shares."""
    return _write(path, _EAGLE, _draft())


def _causal_lm(attention: Any, feed_forward: Any) -> Iterator[Weight]:
    yield Weight("model.embed_tokens.weight", (VOCABULARY, _HIDDEN), spread=1.0)
    for index in range(_LAYERS):
        layer = f"model.layers.{index}"
        yield Weight.ones(f"{layer}.input_layernorm.weight", _HIDDEN)
        yield Weight.ones(f"{layer}.post_attention_layernorm.weight", _HIDDEN)
        yield from attention(f"{layer}.self_attn")
        yield from feed_forward(layer)
    yield Weight.ones("model.norm.weight", _HIDDEN)
    yield Weight.linear("lm_head.weight", VOCABULARY, _HIDDEN)


def _draft() -> Iterator[Weight]:
    yield Weight.linear("fc.weight", _HIDDEN, 2 * _HIDDEN)
    yield Weight.ones("layers.0.post_attention_layernorm.weight", _HIDDEN)
    yield from _gqa_attention("layers.0.self_attn")
    yield from _mlp("layers.0")


# Queries and keys three times their usual size make attention pick rather than
# average, so that one changed token far back changes what comes next.


def _gqa_attention(at: str) -> Iterator[Weight]:
    yield Weight.linear(f"{at}.q_proj.weight", _HEADS * _HEAD, _HIDDEN, gain=3)
    yield Weight.linear(f"{at}.k_proj.weight", _KV_HEADS * _HEAD, _HIDDEN)
    yield Weight.linear(f"{at}.v_proj.weight", _KV_HEADS * _HEAD, _HIDDEN)
    yield Weight.linear(f"{at}.o_proj.weight", _HIDDEN, _HEADS * _HEAD, gain=2)


def _mla_attention(at: str) -> Iterator[Weight]:
    query, latent = _HEADS * (_HEAD + _ROPE), _LATENT + _ROPE
    yield Weight.linear(f"{at}.q_proj.weight", query, _HIDDEN, gain=3)
    yield Weight.linear(f"{at}.kv_a_proj_with_mqa.weight", latent, _HIDDEN)
    yield Weight.ones(f"{at}.kv_a_layernorm.weight", _LATENT)
    yield Weight.linear(f"{at}.kv_b_proj.weight", _HEADS * 2 * _HEAD, _LATENT)
    yield Weight.linear(f"{at}.o_proj.weight", _HIDDEN, _HEADS * _HEAD, gain=2)


def _mlp(layer: str) -> Iterator[Weight]:
    yield Weight.linear(f"{layer}.mlp.gate_proj.weight", _INNER, _HIDDEN)
    yield Weight.linear(f"{layer}.mlp.up_proj.weight", _INNER, _HIDDEN)
    yield Weight.linear(f"{layer}.mlp.down_proj.weight", _HIDDEN, _INNER)


def _experts(layer: str) -> Iterator[Weight]:
    at = f"{layer}.block_sparse_moe"
    yield Weight.linear(f"{at}.gate.weight", _EXPERTS, _HIDDEN)
    for expert in range(_EXPERTS):
        yield Weight.linear(f"{at}.experts.{expert}.w1.weight", _INNER, _HIDDEN)
        yield Weight.linear(f"{at}.experts.{expert}.w2.weight", _HIDDEN, _INNER)
        yield Weight.linear(f"{at}.experts.{expert}.w3.weight", _INNER, _HIDDEN)


def _write(path: str | Path, config: dict[str, Any], weights: Iterator[Weight]) -> Path:
    directory = Path(path)
    make_folder(directory)
    text = json.dumps(config, indent=2) + "\n"
    write_whole(directory / "config.json", text)
    write(directory / "model.safetensors", weights)
    return directory
