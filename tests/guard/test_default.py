"""The default guard at work on runners of upstream's shape."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

from ascend_shims.guard import watch as watching
from ascend_shims.guard.default import DefaultGuard
from ascend_shims.guard.protocol import GuardStopped
from ascend_shims.guard.source import SettingsSource


def nan_in_step(number: int, request: int) -> Any:
    """Hidden states whose logits are NaN for one request of one step."""
    count = 0

    def hidden(rows: int) -> torch.Tensor:
        nonlocal count
        count += 1
        states = torch.zeros(rows, 4)
        if count == number:
            states[request] = torch.nan
        return states

    return hidden


def named(lines: list[dict[str, Any]]) -> list[tuple[str, Any, int]]:
    return [(line["detector"], line["request_id"], line["step"]) for line in lines]


def test_a_nan_is_reported_with_request_and_step(rig: Any) -> None:
    runner = rig.runner(rig.guard(["nonfinite-logits"]), hidden=nan_in_step(3, 1))
    for _ in range(5):
        rig.step(runner, "a", "b", "c")
    (line,) = rig.lines()
    assert (line["request_id"], line["step"], line["rank"]) == ("b", 3, 0)
    assert line["detector"] == "nonfinite-logits"
    assert line["evidence"] == {
        "nan": rig.vocabulary,
        "inf": 0,
        "-inf": 0,
        "rows": [0],
    }


def test_dummy_steps_and_prompt_logprobs_are_not_examined(rig: Any) -> None:
    runner = rig.runner(rig.guard(["nonfinite-logits"]), prompt_logprobs=True)
    runner._dummy_run()
    rig.step(runner, "a")
    rig.idle(runner)
    assert rig.lines() == []


def test_repeated_tokens_are_reported_once(rig: Any) -> None:
    guard = rig.guard({"repeated-tokens": {"repeats": 4}})
    others = iter(range(100))
    runner = rig.runner(guard, tokens=lambda ids: [[7], [next(others)]])
    for _ in range(10):
        rig.step(runner, "a", "b")
    assert named(rig.lines()) == [("repeated-tokens", "a", 4)]
    assert rig.lines()[0]["evidence"]["tokens"] == [7]


def test_padding_is_no_repetition(rig: Any) -> None:
    guard = rig.guard({"repeated-tokens": {"repeats": 2, "longest_period": 1}})
    values = iter(range(1, 100))
    runner = rig.runner(
        guard, tokens=lambda ids: [[next(values)], [next(values) for _ in range(4)]]
    )
    for _ in range(5):
        rig.step(runner, "a", "b")
    assert rig.lines() == []


def test_low_acceptance_counts_drafts_by_request(rig: Any) -> None:
    guard = rig.guard({"low-acceptance": {"window": 6, "minimum": 0.5}})
    runner = rig.runner(
        guard, drafts=[2, 2, 0], tokens=lambda ids: [[1], [1, 2, 3], [1]]
    )
    for _ in range(3):
        rig.step(runner, "a", "b", "c")
    (line,) = rig.lines()
    assert (line["request_id"], line["step"]) == ("a", 3)
    assert line["evidence"] == {"proposed": 6, "accepted": 0, "minimum": 0.5}


def test_forbidden_text_with_a_tokenizer(rig: Any) -> None:
    guard = rig.guard({"forbidden-text": {"patterns": ["fg"]}})
    guard._decoder = lambda config: lambda ids: "".join(config[i] for i in ids)
    letters = iter(range(26))
    runner = rig.GuardedRunner(
        model_config="abcdefghijklmnopqrstuvwxyz", tokens=lambda ids: [[next(letters)]]
    )
    watching.bind(runner, lambda: guard)
    for _ in range(10):
        rig.step(runner, "a")
    assert named(rig.lines()) == [("forbidden-text", "a", 7)]


@pytest.mark.parametrize("broken", [False, True])
def test_without_a_tokenizer_forbidden_text_is_skipped(rig: Any, broken: bool) -> None:
    guard = rig.guard({"forbidden-text": {"patterns": ["x"]}, "repeated-tokens": {}})
    if broken:
        guard._decoder = lambda config: 1 / 0
    runner = rig.runner(guard)
    for _ in range(32):
        rig.step(runner, "a")
    *notices, failed, found = rig.lines()
    assert len(notices) == int(broken)
    assert named([failed, found]) == [
        ("forbidden-text", None, 1),
        ("repeated-tokens", "a", 32),
    ]
    assert "tokenizer" in failed["evidence"]["failed"]


@pytest.mark.parametrize("method", ["measure", "judge", "observe"])
def test_a_detector_that_fails_is_said_once_and_skipped(rig: Any, method: str) -> None:
    guard = rig.guard({"nonfinite-logits": {}, "repeated-tokens": {"repeats": 3}})
    runner = rig.runner(guard, hidden=nan_in_step(2, 0))
    name = "repeated-tokens" if method == "observe" else "nonfinite-logits"
    other = {"repeated-tokens": "nonfinite-logits"}.get(name, "repeated-tokens")

    def fail(*args: Any) -> Any:
        raise ArithmeticError("broken detector")

    setattr(guard._detectors[name], method, fail)
    for _ in range(5):
        assert rig.step(runner, "a").sampled_token_ids == [[0]]
    failed, found = rig.lines()
    assert (failed["detector"], failed["step"]) == (name, 1)
    assert "broken detector" in failed["evidence"]["failed"]
    assert (found["detector"], found["request_id"]) == (other, "a")
    assert set(guard._detectors) == {other}


def test_prompts_are_told_only_if_asked(rig: Any) -> None:
    new = [type("New", (), {"req_id": "a", "prompt_token_ids": [4, 2]})()]
    for prompt in (False, True):
        rig.report.unlink(missing_ok=True)
        guard = rig.guard(["nonfinite-logits"], prompt=prompt)
        guard._decoder = lambda config: lambda ids: " ".join(map(str, ids))
        runner = rig.runner(guard, hidden=nan_in_step(1, 0))
        runner.execute_model(rig.Scheduled({"a": 1}, scheduled_new_reqs=new))
        rig.collect(runner.sample_tokens(None))
        (line,) = rig.lines()
        told = {
            key: line["evidence"].get(key) for key in ("prompt_token_ids", "prompt")
        }
        expected = {"prompt_token_ids": [4, 2], "prompt": "4 2"}
        assert told == (expected if prompt else dict.fromkeys(expected))


def test_a_prompt_that_cannot_be_told_is_no_reason_not_to_report(rig: Any) -> None:
    guard = rig.guard(["nonfinite-logits"], prompt=True)
    guard._decoder = lambda config: lambda ids: 1 / 0
    runner = rig.runner(guard, hidden=lambda rows: torch.full((rows, 4), torch.nan))
    new = [type("New", (), {"req_id": "a", "prompt_token_ids": [4, 2]})()]
    for step in range(3):
        arrivals = new if step == 0 else []
        runner.execute_model(rig.Scheduled({"a": 1}, scheduled_new_reqs=arrivals))
        rig.collect(runner.sample_tokens(None))
    assert [line["evidence"]["prompt_token_ids"] for line in rig.lines()] == [
        [4, 2]
    ] * 3
    assert "ZeroDivisionError" in rig.lines()[0]["evidence"]["prompt"]


def test_what_is_known_of_a_request_goes_with_it(rig: Any) -> None:
    guard = rig.guard(["repeated-tokens"], prompt=True)
    runner = rig.runner(guard)
    runs = guard._detectors["repeated-tokens"]._runs
    # The engine has ended `a` when the output of its last step is collected.
    runner.execute_model(rig.Scheduled({"a": 1}))
    late = runner.sample_tokens(None)
    runner.execute_model(rig.Scheduled({"b": 1}, {"a"}))
    ongoing = runner.sample_tokens(None)
    rig.collect(late)
    assert set(runs) == {"a"}
    rig.collect(ongoing)
    assert set(runs) == {"b"}


def test_ranks_that_collect_nothing_forget_too(rig: Any) -> None:
    guard = rig.guard(["repeated-tokens"], prompt=True)
    runner = rig.runner(guard)
    for number in range(200):
        new = [type("New", (), {"req_id": f"r{number}", "prompt_token_ids": [1]})()]
        scheduled = rig.Scheduled({f"r{number}": 1}, {f"r{number - 1}"}, new)
        runner.execute_model(scheduled)
        runner.sample_tokens(None)
    assert len(guard._leaving) <= 65
    assert len(guard._prompts) <= 66


def test_a_request_that_comes_back_starts_anew(rig: Any) -> None:
    guard = rig.guard({"repeated-tokens": {"repeats": 4}})
    runner = rig.runner(guard)
    for _ in range(3):
        rig.step(runner, "a")
    rig.step(runner, "a", finished=["a"])
    assert rig.lines() == []
    for _ in range(3):
        rig.step(runner, "a")
    assert named(rig.lines()) == [("repeated-tokens", "a", 7)]


def test_off_the_guard_asks_for_nothing(rig: Any) -> None:
    runner = rig.runner(DefaultGuard(SettingsSource()))
    watch = watching.watch_of(runner)
    rig.step(runner, "a")
    assert not watch.active
    assert (watch.counts.engine, watch.counts.sampled) == (1, 1)


class TestStop:
    def test_alone_it_stops_before_the_next_step(self, rig: Any) -> None:
        guard = rig.guard({"nonfinite-logits": {"action": "stop"}})
        runner = rig.runner(guard, hidden=nan_in_step(2, 0))
        rig.step(runner, "a")
        # The step that went wrong still ends, with its output.
        assert rig.step(runner, "a").sampled_token_ids == [[0]]
        with pytest.raises(GuardStopped, match=r"nonfinite-logits at step 2 .*a;"):
            rig.step(runner, "a")
        assert named(rig.lines()) == [("nonfinite-logits", "a", 2)]
        # Whoever goes on nevertheless is stopped once for each finding.
        rig.step(runner, "a")

    def test_a_report_does_not_stop(self, rig: Any) -> None:
        guard = rig.guard(["nonfinite-logits"])
        runner = rig.runner(guard, hidden=lambda rows: torch.full((rows, 4), torch.nan))
        for _ in range(3):
            rig.step(runner, "a")
        assert len(rig.lines()) == 3


class TestReload:
    @pytest.fixture
    def source(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setattr(SettingsSource, "interval", 0.0)
        path = tmp_path / "guard.yaml"
        stamps = iter(range(1, 100))

        class Written:
            def write(self, text: str) -> None:
                path.write_text(text)
                stamp = next(stamps)
                os.utime(path, (stamp, stamp))

        written = Written()
        written.write("")
        written.path = path  # type: ignore[attr-defined]
        return written

    def runner(self, rig: Any, source: Any, **traits: Any) -> Any:
        settings = SettingsSource(source.path, report=str(rig.report))
        return rig.runner(DefaultGuard(settings), **traits)

    def test_detectors_come_and_go_while_it_runs(self, rig: Any, source: Any) -> None:
        runner = self.runner(rig, source)
        for _ in range(2):
            rig.step(runner, "a")
        source.write("detectors: {repeated-tokens: {repeats: 3}}")
        for _ in range(3):
            rig.step(runner, "a")
        assert named(rig.lines()) == [("repeated-tokens", "a", 5)]
        source.write("")
        for _ in range(3):
            rig.step(runner, "b")
        assert len(rig.lines()) == 1
        assert not watching.watch_of(runner).active

    def test_what_is_unchanged_keeps_what_it_knows(self, rig: Any, source: Any) -> None:
        source.write("detectors: {repeated-tokens: {repeats: 4}}")
        runner = self.runner(rig, source)
        for _ in range(3):
            rig.step(runner, "a")
        source.write("detectors: {repeated-tokens: {repeats: 4}, nonfinite-logits: {}}")
        rig.step(runner, "a")
        assert named(rig.lines()) == [("repeated-tokens", "a", 4)]

    def test_a_broken_file_is_said_once_and_changes_nothing(
        self, rig: Any, source: Any
    ) -> None:
        source.write("detectors: {repeated-tokens: {repeats: 4}}")
        runner = self.runner(rig, source)
        rig.step(runner, "a")
        source.write("detectors: {repeated-token: {}}")
        for _ in range(3):
            rig.step(runner, "a")
        said, found = rig.lines()
        assert (said["detector"], said["request_id"], said["step"]) == (
            "guard",
            None,
            2,
        )
        assert "did you mean `repeated-tokens`" in said["evidence"]["notice"]
        assert named([found]) == [("repeated-tokens", "a", 4)]

    def test_a_failed_detector_returns_with_new_settings(
        self, rig: Any, source: Any
    ) -> None:
        source.write("detectors: {forbidden-text: {patterns: [x]}}")
        runner = self.runner(rig, source)
        for _ in range(2):
            rig.step(runner, "a")
        assert named(rig.lines()) == [("forbidden-text", None, 1)]
        source.write("detectors: {forbidden-text: {patterns: [x]}, low-acceptance: {}}")
        rig.step(runner, "a")
        assert len(rig.lines()) == 1
        source.write("detectors: {forbidden-text: {patterns: [y]}}")
        rig.step(runner, "a")
        assert len(rig.lines()) == 2

    def test_the_report_moves(self, rig: Any, source: Any, tmp_path: Path) -> None:
        first, second = tmp_path / "first", tmp_path / "second"
        source.write(f"detectors: [nonfinite-logits]\nreport: {{path: {first}}}\n")
        runner = rig.runner(
            DefaultGuard(SettingsSource(source.path)),
            hidden=lambda rows: torch.full((rows, 4), torch.nan),
        )
        rig.step(runner, "a")
        source.write(f"detectors: [nonfinite-logits]\nreport: {{path: {second}}}\n")
        rig.step(runner, "a")
        assert [len(p.read_text().splitlines()) for p in (first, second)] == [1, 1]

    def test_a_bad_file_at_the_start_is_said_and_followed(
        self, rig: Any, source: Any
    ) -> None:
        source.write("detectors: 7")
        runner = self.runner(rig, source)
        rig.step(runner, "a")
        (said,) = rig.lines()
        assert said["detector"] == "guard"
        source.write("detectors: {repeated-tokens: {repeats: 2}}")
        for _ in range(2):
            rig.step(runner, "a")
        assert named(rig.lines()[1:]) == [("repeated-tokens", "a", 3)]
