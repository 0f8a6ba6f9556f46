"""The cos/sin tables on upstream's own runner: right at every step, and gone."""

from __future__ import annotations

import gc
import inspect
import json
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

GAP = "cos-sin"
# The longest prompt and its tokens fill `max_model_len`.
PROMPTS = [[1, 2, 3, 4, 5], [7, 8, 9], [11 + i % 50 for i in range(244)]]
TOKENS = 12
MAX_MODEL_LEN = 256
# Stock tokens come first: nothing may be applied when the engine starts.
ENV = {"ASCEND_SHIMS_DEVICE": "none", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}

RunReal = Callable[..., Any]


@pytest.mark.parametrize(
    ("kind", "shape", "style"),
    [
        ("gqa", [1, None, 1, 32], "neox"),
        ("yarn", [1, None, 1, 16], "neox"),
        ("mla", [None, 1, 1, 64], "interleaved"),
    ],
)
def test_the_rows_of_every_step_are_upstreams(
    tmp_path: Path, kind: str, shape: list[int | None], style: str, run_real: RunReal
) -> None:
    seen = run_real(generate, tmp_path, kind, env=ENV)
    if "no stock" in seen:
        pytest.skip(f"this upstream does not run {kind} here: {seen['no stock']}")
    assert seen["state"] == "applied"
    assert [len(row["tokens"]) for row in seen["stock"]] == [TOKENS] * len(PROMPTS)
    assert seen["shims"] == seen["stock"]
    assert seen["reverted"] == seen["stock"]

    steps = seen["steps"]
    assert len(steps) >= TOKENS
    assert {step["equal"] for step in steps} == {True}
    # The last token of all is generated, never run.
    assert max(step["last"] for step in steps) == MAX_MODEL_LEN - 2
    assert len({tuple(step["addresses"]) for step in steps}) == 1

    # Here the token budget exceeds what all requests decode in one step.
    shape = [n or seen["max_num_tokens"] for n in shape]
    assert seen["shapes"] == [shape, shape]
    content = f"{shape} {seen['dtype']}, {style}"
    assert seen["description"] == f"target: cos and sin {content}"
    assert seen["left alone after revert"] is True
    assert seen["freed"] == [True] * 3


@pytest.mark.parametrize("method", ["eagle", "draft_model"])
def test_a_draft_has_tables_of_its_own(
    tmp_path: Path, method: str, run_real: RunReal
) -> None:
    seen = run_real(generate, tmp_path, method, env=ENV)
    if "no stock" in seen:
        pytest.skip(f"this upstream has no {method} here: {seen['no stock']}")
    assert seen["shims"] == seen["stock"] == seen["reverted"]
    assert {step["equal"] for step in seen["steps"] + seen["passes"]} == {True}
    # Two thirds of the passes draft on from where the step's own positions end.
    assert len(seen["passes"]) >= 3 * len(seen["steps"]) >= 9
    target = {tuple(step["addresses"]) for step in seen["steps"]}
    draft = {tuple(one["addresses"]) for one in seen["passes"]}
    assert len(target) == len(draft) == 1
    assert not set(*target) & set(*draft)
    assert seen["description"].count("cos and sin") == 2
    assert seen["left alone after revert"] is True
    assert seen["freed"] == [True] * 5


def test_multi_axis_positions(run_real: RunReal) -> None:
    seen = run_real(mrope, env=ENV)
    assert seen["state"] == "applied"
    assert seen["positions"] == [
        [0, 1, 1, 1, 1, 4, 17],
        [0, 1, 1, 2, 2, 4, 17],
        [0, 1, 2, 1, 2, 4, 17],
    ]
    assert seen["rotated alike"] is True
    assert seen["left alone after revert"] is True


# What runs in the interpreter of a test.


def _settings(where: str, kind: str) -> tuple[Path, dict[str, Any]]:
    from ascend_shims.simnpu import models

    folder = Path(where)
    if kind == "mla":
        return models.mla(folder / kind), {}
    target = models.gqa(folder / "gqa")
    if kind == "yarn":
        config = json.loads((target / "config.json").read_text())
        config["rope_scaling"] = {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": MAX_MODEL_LEN // 4,
        }
        config["partial_rotary_factor"] = 0.5
        config["max_position_embeddings"] = MAX_MODEL_LEN
        (target / "config.json").write_text(json.dumps(config))
    if kind in ("gqa", "yarn"):
        return target, {}
    draft = models.eagle(folder / "eagle") if kind == "eagle" else target
    speculative = {"method": kind, "model": str(draft), "num_speculative_tokens": 3}
    return target, {"speculative_config": speculative}


def _engine(folder: str, kind: str) -> Any:
    from ascend_shims.simnpu import runtime

    model, settings = _settings(folder, kind)
    return runtime.engine(model, max_model_len=MAX_MODEL_LEN, **settings)


def _generate(llm: Any) -> list[dict[str, Any]]:
    """Tokens and, because random weights hardly move them, their logprobs."""
    from vllm import SamplingParams

    sampling = SamplingParams(
        temperature=0.0,
        max_tokens=TOKENS,
        ignore_eos=True,
        detokenize=False,
        logprobs=1,
    )
    outputs = llm.generate(
        [{"prompt_token_ids": prompt} for prompt in PROMPTS], sampling, use_tqdm=False
    )
    return [
        {
            "tokens": list(output.outputs[0].token_ids),
            "logprobs": output.outputs[0].cumulative_logprob,
        }
        for output in outputs
    ]


def _runner(llm: Any) -> Any:
    return llm.llm_engine.model_executor.driver_worker.worker.model_runner


def _look(table: Any, positions: Any) -> dict[str, Any]:
    """Compares the first rows of a table with upstream's at these positions."""
    import torch

    cos, sin = (t.flatten(0, 2) for t in table.for_tokens(len(positions)))
    rope = table.source.module
    halves = rope.cos_sin_cache[positions].chunk(2, dim=-1)
    if rope.is_neox_style:
        own = [torch.cat((half, half), dim=-1) for half in halves]
    else:
        own = [half.repeat_interleave(2, dim=-1) for half in halves]
    same = zip((cos, sin), own, strict=True)
    return {
        "equal": all(a.dtype == b.dtype and torch.equal(a, b) for a, b in same),
        "last": int(positions.max()),
        "addresses": [table.cos.data_ptr(), table.sin.data_ptr()],
    }


def _watch_steps(runner: Any, steps: list[dict[str, Any]]) -> None:
    from ascend_shims.patches import cos_sin

    prepare_inputs = runner.prepare_inputs

    def watched(*args: Any, **kwargs: Any) -> Any:
        batch = prepare_inputs(*args, **kwargs)
        steps.append(_look(cos_sin.tables_of(runner), batch.positions))
        return batch

    runner.prepare_inputs = watched


def _watch_draft(runner: Any, passes: list[dict[str, Any]]) -> None:
    from ascend_shims.patches import cos_sin

    speculator = runner.speculator
    run_model = speculator._run_model

    def watched(first: Any, *args: Any, **kwargs: Any) -> Any:
        result = run_model(first, *args, **kwargs)
        if isinstance(first, int):
            positions = speculator.input_buffers.positions[:first]
        else:
            positions = args[0]
        passes.append(_look(cos_sin.draft_tables_of(runner), positions))
        return result

    speculator._run_model = watched


def generate(folder: str, kind: str) -> dict[str, Any]:
    import ascend_shims

    try:
        llm = _engine(folder, kind)
    except (ImportError, NotImplementedError, ValueError) as error:
        return {"no stock": str(error)[:200]}
    seen: dict[str, Any] = {"stock": _generate(llm)}
    llm.llm_engine.engine_core.shutdown()
    del llm

    os.environ["ASCEND_SHIMS_DEVICE"] = "sim"
    report = ascend_shims.apply(only=[GAP])
    seen["state"] = next(gap.state.value for gap in report.gaps if gap.id == GAP)
    references = _with_tables(folder, kind, seen)
    gc.collect()
    seen["freed"] = [reference() is None for reference in references]
    return seen


def _with_tables(
    folder: str, kind: str, seen: dict[str, Any]
) -> list[weakref.ref[Any]]:
    import ascend_shims
    from ascend_shims.patches import cos_sin

    llm = _engine(folder, kind)
    runner = _runner(llm)
    seen["steps"], seen["passes"] = [], []
    _watch_steps(runner, seen["steps"])
    if runner.speculator is not None:
        _watch_draft(runner, seen["passes"])
    seen["shims"] = _generate(llm)
    seen["description"] = cos_sin.describe(runner)
    seen["max_num_tokens"] = runner.max_num_tokens
    seen["dtype"] = str(runner.dtype).removeprefix("torch.")
    found = cos_sin.tables_of(runner), cos_sin.draft_tables_of(runner)
    buffers = [t for table in found if table for t in (table.cos, table.sin)]
    seen["shapes"] = [list(buffer.shape) for buffer in buffers]

    ascend_shims.revert()
    del runner.prepare_inputs
    if runner.speculator is not None:
        del runner.speculator._run_model
    before = [buffer.clone() for buffer in buffers]
    seen["reverted"] = _generate(llm)
    pairs = zip(buffers, before, strict=True)
    seen["left alone after revert"] = all(a.equal(b) for a, b in pairs)

    llm.llm_engine.engine_core.shutdown()
    return [weakref.ref(one) for one in (runner, *buffers)]


def mrope() -> dict[str, Any]:
    import torch

    # Upstream's CPU backend, for pinned memory that is none.
    import vllm.v1.worker.cpu.shm  # noqa: F401
    from vllm.config import VllmConfig, set_current_vllm_config
    from vllm.model_executor.layers.rotary_embedding import get_rope
    from vllm.v1.worker.gpu.mm.rope import RopeState

    import ascend_shims
    from ascend_shims.patches import cos_sin

    os.environ["ASCEND_SHIMS_DEVICE"] = "sim"
    (gap,) = (gap for gap in ascend_shims.apply(only=[GAP]).gaps if gap.id == GAP)
    states = {patch.replacement: patch.state.value for patch in gap.patches}

    with set_current_vllm_config(VllmConfig()):
        rope = get_rope(32, 64, True, {"rope_theta": 1e4, "mrope_section": [8, 4, 4]})
    attention = torch.nn.Identity()
    vars(attention)["get_kv_cache_spec"] = None
    model = torch.nn.ModuleDict({"rotary_emb": rope, "attn": attention})

    sizes = {"num_dims": 3, "max_num_reqs": 2, "max_num_tokens": 8, "max_model_len": 32}
    if "has_delta" in inspect.signature(RopeState).parameters:
        sizes["has_delta"] = True
    positions = RopeState(**sizes, device=torch.device("cpu"))
    runner = _RunnerOf(model, positions)
    image = torch.tensor([[0, 1, 1, 1, 1, 4], [0, 1, 1, 2, 2, 4], [0, 1, 2, 1, 2, 4]])
    asked = SimpleNamespace(get_mrope_input_positions=lambda *_: (image, -1))
    positions.init_prefill_positions(0, asked, [0] * 6, [])
    positions.init_prefill_positions(1, asked, [0] * 6, [])
    positions.apply_staged_writes()

    # Six tokens of a prompt with a picture, and one token of a request that is
    # generating its nineteenth.
    batch = SimpleNamespace(
        positions=torch.tensor([0, 1, 2, 3, 4, 5, 18]), num_tokens_after_padding=7
    )
    cos_sin.update_for_step(lambda _runner: batch, runner)
    arguments = (
        torch.tensor([0, 1]),
        torch.tensor([0, 6, 7], dtype=torch.int32),
        torch.tensor([6, 6], dtype=torch.int32),
        torch.tensor([0, 18], dtype=torch.int32),
    )
    positions.prepare_positions(*arguments)

    table = cos_sin.tables_of(runner)
    assert table is not None
    query = torch.randn(7, 2 * 32)
    cos, sin = (t.view(7, 1, 32) for t in table.for_tokens(7))
    left, right = query.view(7, 2, 32).chunk(2, dim=-1)
    turned = query.view(7, 2, 32) * cos + torch.cat((-right, left), dim=-1) * sin
    own, _ = rope.forward_native(positions.get_positions(7), query, query.clone())

    seen = {
        "state": states["update_for_mrope"],
        "positions": positions.get_positions(7).tolist(),
        "rotated alike": torch.equal(turned.flatten(1), own),
    }

    ascend_shims.revert()
    before = table.cos.clone()
    positions.prepare_positions(*arguments[:3], arguments[3] + 1)
    assert positions.get_positions(7).tolist() != seen["positions"]
    seen["left alone after revert"] = torch.equal(table.cos, before)
    return seen


class _RunnerOf:
    """The part of a runner that the gap looks at, with upstream's own objects."""

    def __init__(self, model: Any, rope_state: Any) -> None:
        import torch

        self.model, self.device, self.dtype = model, torch.device("cpu"), torch.float32
        self.model_config = SimpleNamespace(use_mla=False)
        self.model_state = SimpleNamespace(rope_state=rope_state)
        self.max_num_tokens, self.max_num_reqs, self.num_speculative_steps = 8, 2, 0
        self.input_buffers = SimpleNamespace(positions=torch.zeros(8))
