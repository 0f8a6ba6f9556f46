"""The guard on upstream's own runner: every step seen, nothing changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GAP = "runtime-guard"
PROMPTS = [[1, 2, 3], [7, 8, 9, 10], [5]]
TOKENS = 10

Run = Callable[..., Any]


@pytest.fixture
def guarded(tmp_path: Path, run_real: Callable[..., Any]) -> Run:
    """Run a job on a folder, with the report in it; keywords are variables."""

    def run(job: Callable[..., Any], *arguments: str, **environ: str) -> Any:
        env = {
            "ASCEND_SHIMS_DEVICE": "sim",
            "ASCEND_SHIMS_GUARD_REPORT": str(tmp_path / "guard.jsonl"),
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            **environ,
        }
        return run_real(job, tmp_path, *arguments, env=env)

    return run


def report(folder: Path) -> list[dict[str, Any]]:
    path = folder / "guard.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def request(line: dict[str, Any]) -> str:
    """The user's request id; upstream's workers see it with a suffix."""
    return str(line["request_id"]).partition("-")[0]


@pytest.mark.parametrize("scheduling", ["async", "sync"])
class TestOneRank:
    def test_sees_every_step_and_changes_no_token(
        self, tmp_path: Path, guarded: Run, scheduling: str
    ) -> None:
        seen = guarded(
            observe,
            scheduling,
            # Or the plugin applies the gap before there are stock tokens.
            ASCEND_SHIMS_DEVICE="none",
            ASCEND_SHIMS_GUARD_DETECTORS="nonfinite-logits,low-acceptance",
        )
        assert seen["state"] == "applied"
        assert [len(row) for row in seen["stock"]] == [TOKENS] * len(PROMPTS)
        for how in ("bound late", "bound early", "off", "reverted"):
            assert seen[how] == seen["stock"], how
        for how in ("late", "early", "off"):
            counts, calls = seen[f"{how} counts"], seen[f"{how} calls"]
            assert counts["engine"] == calls >= TOKENS
            assert counts["sampled"] == TOKENS
            assert counts["idle"] == 1
        # Inside inference mode, as many rows as logits, the same requests.
        assert seen["early sets"] == [[True], [0], [True]]
        assert seen["early steps"] == [list(range(1, TOKENS + 1))] * 2
        assert seen["early tokens"] == sorted(map(sorted, seen["stock"]))
        assert seen["restored"] == dict.fromkeys(seen["restored"], True)
        assert len(seen["restored"]) == 6
        assert report(tmp_path) == []

    def test_a_nan_is_reported_with_request_and_step(
        self, tmp_path: Path, guarded: Run, scheduling: str
    ) -> None:
        detectors = {"ASCEND_SHIMS_GUARD_DETECTORS": "nonfinite-logits"}
        seen = guarded(poison, scheduling, **detectors)
        (line,) = report(tmp_path)
        assert line["detector"] == "nonfinite-logits"
        assert request(line) == seen["request"] == "1"
        assert line["step"] == seen["step"] == 4
        assert line["evidence"] == {
            "nan": seen["vocabulary"],
            "inf": 0,
            "-inf": 0,
            "rows": [0],
        }
        assert seen["kept"] is True

    @pytest.mark.any_release
    def test_repeated_tokens_are_reported(
        self, tmp_path: Path, guarded: Run, scheduling: str
    ) -> None:
        settings = tmp_path / "guard.yaml"
        settings.write_text("detectors: {repeated-tokens: {repeats: 6}}")
        seen = guarded(repeat, scheduling, ASCEND_SHIMS_GUARD=str(settings))
        assert seen["tokens"] == [[7] * TOKENS] * len(PROMPTS)
        lines = report(tmp_path)
        assert [line["detector"] for line in lines] == ["repeated-tokens"] * 3
        assert sorted(map(request, lines)) == ["0", "1", "2"]
        assert {line["step"] for line in lines} == {6}
        assert lines[0]["evidence"] == {
            "tokens": [7],
            "repeats": 6,
            "output_tokens": 6,
        }


def test_drafts_that_are_never_accepted_are_reported(
    tmp_path: Path, guarded: Run
) -> None:
    settings = tmp_path / "guard.yaml"
    settings.write_text("detectors: {low-acceptance: {minimum: 0.9, window: 8}}")
    seen = guarded(draft, ASCEND_SHIMS_GUARD=str(settings))
    assert [len(row) for row in seen["tokens"]] == [TOKENS] * len(PROMPTS)
    lines = report(tmp_path)
    assert {line["detector"] for line in lines} == {"low-acceptance"}
    assert {request(line) for line in lines} == {"0", "1", "2"}
    for line in lines:
        assert 8 <= line["evidence"]["proposed"] < 10
        assert line["evidence"]["accepted"] < 0.9 * line["evidence"]["proposed"]


def test_forbidden_text_is_found_by_the_models_tokenizer(
    tmp_path: Path, guarded: Run
) -> None:
    settings = tmp_path / "guard.yaml"
    settings.write_text(
        "detectors: {forbidden-text: {patterns: ['w310 w310 w487', never]}}\n"
        "report: {prompt: true}"
    )
    seen = guarded(words, ASCEND_SHIMS_GUARD=str(settings))
    # The first row of the tokens that every release and runner gives.
    assert seen["tokens"][0][:4] == [159, 310, 310, 487]
    (line,) = report(tmp_path)
    assert (line["detector"], request(line), line["step"]) == ("forbidden-text", "0", 4)
    assert line["evidence"] == {
        "patterns": ["w310 w310 w487"],
        "prompt_token_ids": PROMPTS[0],
        "prompt": "w1 w2 w3",
    }


def test_two_ranks_leave_together_when_one_sees_a_nan(
    tmp_path: Path, guarded: Run
) -> None:
    settings = tmp_path / "guard.yaml"
    settings.write_text("detectors: {nonfinite-logits: {action: stop}}")
    seen = guarded(
        two_ranks,
        ASCEND_SHIMS_GUARD=str(settings),
        ASCEND_SHIMS_ONLY=GAP,
        VLLM_ENABLE_V1_MULTIPROCESSING="1",
        VLLM_ALLOW_INSECURE_SERIALIZATION="1",
    )
    assert seen["states"] == ["applied", "applied"]
    assert seen["stopped"] is True
    # What hangs is ended by upstream, after 300 seconds.
    assert seen["seconds"] < 150
    lines = report(tmp_path)
    assert [(line["rank"], request(line)) for line in lines] == [(1, "0")]
    assert lines[0]["step"] == 3
    # Voted before step 4, acted on before step 5, by both.
    assert seen["left"] == {"0": 5, "1": 5}


# What runs in the interpreter of a test.


def _engine(folder: str, **overrides: Any) -> Any:
    from ascend_shims.simnpu import models, runtime

    # The guard alone: upstream's own operators, which need no other gap.
    overrides = {"attention_backend": "CPU_ATTN", **overrides}
    return runtime.engine(models.gqa(Path(folder) / "model"), **overrides)


def _generate(llm: Any) -> list[list[int]]:
    from ascend_shims.simnpu import runtime

    return runtime.generate(llm, PROMPTS, TOKENS)


def _worker(llm: Any) -> Any:
    return llm.llm_engine.model_executor.driver_worker.worker


def _counting(llm: Any) -> list[int]:
    """Counts what the engine asks its worker for, apart from any patch."""
    worker, calls = _worker(llm), [0]
    execute = worker.execute_model

    def execute_model(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return execute(*args, **kwargs)

    worker.execute_model = execute_model
    return calls


def _counts(llm: Any) -> dict[str, int]:
    import msgspec

    from ascend_shims.guard.watch import watch_of

    return dict(msgspec.structs.asdict(watch_of(_worker(llm).model_runner).counts))


def _targets() -> dict[str, tuple[type, str]]:
    from vllm.v1.worker.gpu.async_utils import AsyncOutput
    from vllm.v1.worker.gpu.model_runner import GPUModelRunner
    from vllm.v1.worker.gpu_worker import Worker

    methods = ("__init__", "execute_model", "sample_tokens", "postprocess_sampled")
    return {
        **{name: (GPUModelRunner, name) for name in methods},
        "get_output": (AsyncOutput, "get_output"),
        "execute_dummy_batch": (Worker, "execute_dummy_batch"),
    }


def observe(folder: str, scheduling: str) -> dict[str, Any]:
    import torch

    import ascend_shims
    from ascend_shims.guard import watch as watching
    from ascend_shims.guard.default import DefaultGuard
    from ascend_shims.guard.protocol import Observer

    seen: dict[str, Any] = {}
    llm = _engine(folder, async_scheduling=scheduling == "async")
    seen["stock"] = _generate(llm)
    stock = {name: vars(owner)[at] for name, (owner, at) in _targets().items()}

    os.environ["ASCEND_SHIMS_DEVICE"] = "sim"
    status = ascend_shims.apply(only=[GAP])
    seen["state"] = next(gap.state.value for gap in status.gaps if gap.id == GAP)
    calls = _counting(llm)
    seen["bound late"] = _generate(llm)
    llm.collective_rpc("execute_dummy_batch")
    seen["late counts"], seen["late calls"] = _counts(llm), calls[0]

    modes: set[bool] = set()
    rows: set[int] = set()
    same: set[bool] = set()
    begun: list[int] = []
    outputs: dict[str, list[int]] = {}
    steps: list[int] = []

    class Spying(Observer):
        def before_sample(self, step: Any, batch: Any, logits: Any) -> None:
            begun.append(step.number)
            modes.add(torch.is_inference_mode_enabled())
            rows.add(batch.row_starts[-1] - len(logits))

        def after_sample(self, step: Any, batch: Any, output: Any) -> None:
            steps.append(step.number)
            same.add(list(batch.requests) == output.req_ids)
            new = zip(output.req_ids, output.sampled_token_ids, strict=True)
            for request_id, tokens in new:
                outputs.setdefault(request_id, []).extend(tokens)

    del llm
    globals()["Spying"] = Spying
    os.environ["ASCEND_SHIMS_GUARD"] = f"{__name__}:Spying"
    llm = _engine(folder, async_scheduling=scheduling == "async")
    assert type(watching._watches[id(_worker(llm).model_runner)].guard) is Spying
    calls = _counting(llm)
    seen["bound early"] = _generate(llm)
    llm.collective_rpc("execute_dummy_batch")
    seen["early counts"], seen["early calls"] = _counts(llm), calls[0]
    seen["early sets"] = [sorted(modes), sorted(rows), sorted(same)]
    seen["early steps"] = [begun, steps]
    seen["early tokens"] = sorted(map(sorted, outputs.values()))

    del os.environ["ASCEND_SHIMS_GUARD"]
    del os.environ["ASCEND_SHIMS_GUARD_DETECTORS"]
    watch = watching.bind(_worker(llm).model_runner)
    assert type(watch.guard) is DefaultGuard
    assert not watch.active
    calls[0] = 0
    seen["off"] = _generate(llm)
    llm.collective_rpc("execute_dummy_batch")
    seen["off counts"], seen["off calls"] = _counts(llm), calls[0]

    ascend_shims.revert(GAP)
    seen["reverted"] = _generate(llm)
    seen["restored"] = {
        name: vars(owner)[at] is stock[name] for name, (owner, at) in _targets().items()
    }
    return seen


def _bend(llm: Any, bend: Callable[[Any, Any], None]) -> Any:
    """Have `bend(input_batch, logits)` change the logits of each sampling."""
    runner = _worker(llm).model_runner
    model, sample = runner.model, runner.sample
    compute = model.compute_logits
    batches: list[Any] = []

    def sampled(hidden_states: Any, input_batch: Any, grammar_output: Any) -> Any:
        batches.append(input_batch)
        return sample(hidden_states, input_batch, grammar_output)

    def compute_logits(*args: Any, **kwargs: Any) -> Any:
        logits = compute(*args, **kwargs)
        bend(batches[-1], logits)
        return logits

    runner.sample = sampled
    model.compute_logits = compute_logits
    return compute_logits


def poison(folder: str, scheduling: str) -> dict[str, Any]:
    import ascend_shims

    ascend_shims.apply(only=[GAP])
    llm = _engine(folder, async_scheduling=scheduling == "async")
    seen: dict[str, Any] = {}
    steps = 0

    def bend(batch: Any, logits: Any) -> None:
        nonlocal steps
        steps += 1
        if steps == 4:
            name = next(name for name in batch.req_ids if name.startswith("1"))
            logits[batch.req_ids.index(name)] = float("nan")
            seen.update(request=name.partition("-")[0], step=steps)
            seen["vocabulary"] = logits.shape[-1]

    bent = _bend(llm, bend)
    _generate(llm)
    model = _worker(llm).model_runner.model
    return {**seen, "kept": vars(model)["compute_logits"] is bent}


def repeat(folder: str, scheduling: str) -> dict[str, Any]:
    import ascend_shims

    ascend_shims.apply(only=[GAP])
    llm = _engine(folder, async_scheduling=scheduling == "async")

    def bend(batch: Any, logits: Any) -> None:
        del batch
        logits[:, 7] = 1e6

    _bend(llm, bend)
    return {"tokens": _generate(llm)}


def draft(folder: str) -> dict[str, Any]:
    import ascend_shims
    from ascend_shims.simnpu import models

    ascend_shims.apply(only=[GAP])
    speculative = {
        "method": "eagle",
        "model": str(models.eagle(Path(folder) / "draft")),
        "num_speculative_tokens": 2,
    }
    return {"tokens": _generate(_engine(folder, speculative_config=speculative))}


def words(folder: str) -> dict[str, Any]:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    import ascend_shims

    vocabulary = {f"w{number}": number for number in range(512)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="w2")
    fast.save_pretrained(Path(folder) / "model")
    ascend_shims.apply(only=[GAP])
    return {"tokens": _generate(_engine(folder, skip_tokenizer_init=False))}


def _spoil_rank_1(worker: Any) -> Any:
    """Runs in each worker: rank 1 computes NaN in its third step; both
    note before which step they leave."""
    import time

    import torch

    import ascend_shims
    from ascend_shims.guard.protocol import GuardStopped
    from ascend_shims.guard.watch import watch_of

    runner = worker.model_runner
    watch = watch_of(runner)
    if worker.rank == 1:
        compute = runner.model.compute_logits

        def compute_logits(*args: Any, **kwargs: Any) -> Any:
            logits = compute(*args, **kwargs)
            if watch.counts.engine == 3 and logits is not None:
                logits = torch.full_like(logits, torch.nan)
            return logits

        runner.model.compute_logits = compute_logits
    execute = runner.execute_model
    folder = Path(os.environ["ASCEND_SHIMS_GUARD_REPORT"]).parent

    def execute_model(*args: Any, **kwargs: Any) -> Any:
        try:
            return execute(*args, **kwargs)
        except GuardStopped:
            (folder / f"left{worker.rank}").write_text(str(watch.counts.engine))
            # The first to fail has the engine end the other: it waits for it here.
            deadline = time.monotonic() + 60
            while len(list(folder.glob("left?"))) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            raise

    runner.execute_model = execute_model
    return next(
        gap.state.value
        for gap in ascend_shims.status().gaps
        if gap.id == "runtime-guard"
    )


def two_ranks(folder: str) -> dict[str, Any]:
    import time

    llm = _engine(folder, tensor_parallel_size=2, distributed_executor_backend="mp")
    states = llm.collective_rpc(_spoil_rank_1)
    before, stopped = time.monotonic(), False
    try:
        from ascend_shims.simnpu import runtime

        runtime.generate(llm, PROMPTS[:1], TOKENS)
    except Exception as error:  # noqa: BLE001 - upstream's own, of an engine that ends
        stopped = "EngineDead" in type(error).__name__ or "guard stops" in str(error)
    seconds = time.monotonic() - before
    left = {path.name[-1]: int(path.read_text()) for path in Path(folder).glob("left?")}
    return {"states": states, "stopped": stopped, "seconds": seconds, "left": left}
