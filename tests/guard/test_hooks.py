"""When the hooks are called, in which order, and what they leave as it was."""

from __future__ import annotations

import functools
import gc
import inspect
import threading
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ascend_shims.guard import watch as watching
from ascend_shims.guard.protocol import GuardStopped, Observer
from ascend_shims.patches import runtime_guard

from ..fresh import python


def calls(runner: Any) -> list[tuple[Any, ...]]:
    return watching.watch_of(runner).guard.calls


def test_a_process_without_a_runner_does_not_import_the_guard_that_watches() -> None:
    told = python(
        "import sys; import ascend_shims.patches.runtime_guard;"
        "print(*(m for m in sys.modules if m.startswith('ascend_shims.guard.')))"
    )
    loaded = {name.rpartition(".")[2] for name in told.split()}
    assert loaded == {"protocol", "ranks", "tap", "upstream", "watch"}


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_step_that_samples(rig: Any, asynchronous: bool) -> None:
    runner = rig.runner(asynchronous=asynchronous)
    rig.step(runner, "a", "b")
    after, end = ("after", 1, (0,), (1,)), ("end", 1, "engine")
    assert calls(runner) == [
        ("bind",),
        ("sync", 1, "engine"),
        ("before", 1, "a", "b"),
        ("sampled", 1, (2, 1)),
        # Asynchronous output is only seen when somebody collects it.
        *([end, after] if asynchronous else [after, end]),
    ]
    assert watching.watch_of(runner).guard.modes == {True}
    assert runner.log == [("execute", True), "postprocess", "eplb"]


def test_asynchronous_output_is_not_forced_and_comes_trimmed(rig: Any) -> None:
    runner = rig.runner(tokens=lambda ids: [[5, 6], [7]])
    runner.execute_model(rig.Scheduled({"a": 1, "b": 1}))
    output = runner.sample_tokens(None)
    assert output.collected == 0
    assert not [call for call in calls(runner) if call[0] == "after"]
    collected = rig.collect(output)
    assert collected is output.output
    assert calls(runner)[-1] == ("after", 1, (5, 6), (7,))
    rig.collect(output)
    assert [call[0] for call in calls(runner)].count("after") == 1


def test_output_may_be_collected_late_and_on_another_thread(rig: Any) -> None:
    runner = rig.runner()
    outputs = []
    for _ in range(3):
        runner.execute_model(rig.Scheduled({"a": 1}))
        outputs.append(runner.sample_tokens(None))
    thread = threading.Thread(target=lambda: [rig.collect(o) for o in outputs])
    thread.start()
    thread.join()
    assert [c[:2] for c in calls(runner) if c[0] == "after"] == [
        ("after", 1),
        ("after", 2),
        ("after", 3),
    ]


def test_output_that_nobody_collects_is_freed(rig: Any) -> None:
    runner = rig.runner()
    runner.execute_model(rig.Scheduled({"a": 1}))
    output = weakref.ref(runner.sample_tokens(None))
    gc.collect()
    assert output() is None
    assert not watching._outputs


def test_a_step_without_tokens_ends_at_once(rig: Any) -> None:
    runner = rig.runner()
    assert rig.step(runner, finished=["a"]) == rig.Output([], [])
    assert calls(runner)[1:] == [("sync", 1, "engine"), ("end", 1, "engine")]


def test_an_earlier_pipeline_stage(rig: Any) -> None:
    runner = rig.runner(last_stage=False)
    relayed = runner.execute_model(rig.Scheduled({"a": 1}))
    assert relayed.tensors == {}
    assert calls(runner)[1:] == [("sync", 1, "engine")]
    assert runner.sample_tokens(None) == rig.Output([], [])
    assert runner.model.rows == []
    assert calls(runner)[2:] == [("end", 1, "engine")]


def test_an_exception_before_sampling_ends_the_wave(rig: Any) -> None:
    def fail() -> None:
        raise ValueError("in the body")

    runner = rig.runner(body=fail)
    with pytest.raises(ValueError, match="in the body"):
        runner.execute_model(rig.Scheduled({"a": 1}))
    assert calls(runner)[1:] == [("sync", 1, "engine"), ("end", 1, "engine")]
    # Upstream then asks for samples all the same, and gets None.
    assert runner.sample_tokens(None) is None
    assert calls(runner)[3:] == []


def test_an_exception_while_sampling_ends_the_wave_and_restores(rig: Any) -> None:
    runner = rig.runner()
    runner.execute_model(rig.Scheduled({"a": 1}))

    def fail() -> None:
        assert "compute_logits" in vars(runner.model)
        raise ValueError("in the phase")

    runner.body = fail
    with pytest.raises(ValueError, match="in the phase"):
        runner.sample_tokens(None)
    assert calls(runner)[2:] == [("before", 1, "a"), ("end", 1, "engine")]
    assert "compute_logits" not in vars(runner.model)
    runner.body = lambda: None
    rig.step(runner, "a")
    assert ("after", 2, (0,)) in calls(runner)


def test_dummy_and_idle_steps_keep_up_but_are_not_examined(rig: Any) -> None:
    runner = rig.runner()
    runner._dummy_run()
    rig.step(runner, "a")
    rig.idle(runner)
    runner._dummy_run()
    assert calls(runner)[1:] == [
        ("sync", 0, "dummy"),
        ("end", 0, "dummy"),
        ("sync", 1, "engine"),
        ("before", 1, "a"),
        ("sampled", 1, (1, 1)),
        ("end", 1, "engine"),
        ("after", 1, (0,)),
        ("sync", 1, "idle"),
        ("end", 1, "idle"),
        ("sync", 1, "dummy"),
        ("end", 1, "dummy"),
    ]
    counts = watching.watch_of(runner).counts
    assert (counts.engine, counts.idle, counts.dummy, counts.sampled) == (1, 1, 2, 1)


def test_an_idle_step_that_fails_leaves_no_mark(rig: Any) -> None:
    runner = rig.runner()
    runner._dummy_run = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError):
        rig.idle(runner)
    del runner._dummy_run
    runner._dummy_run()
    assert calls(runner)[-1] == ("end", 0, "dummy")


@pytest.mark.parametrize("name", ["_warmup_0_", "_v2_mixed_warmup_decode_"])
def test_upstreams_warmup_requests_are_no_engine_steps(rig: Any, name: str) -> None:
    runner = rig.runner()
    rig.step(runner, name)
    rig.step(runner, finished=[name])
    kinds = [call[2] for call in calls(runner) if call[0] == "sync"]
    assert kinds == ["warmup", "warmup"]
    assert not [call for call in calls(runner) if call[0] in ("before", "after")]
    rig.step(runner, "_warmup_user-0f3a")
    assert ("before", 1, "_warmup_user-0f3a") in calls(runner)


def test_a_pooling_model_never_samples(rig: Any) -> None:
    runner = rig.runner(is_pooling_model=True)
    runner.execute_model(rig.Scheduled({"a": 1}))
    assert calls(runner)[1:] == [("sync", 1, "engine"), ("end", 1, "engine")]


def test_every_sync_has_one_end_even_if_sampling_never_comes(rig: Any) -> None:
    runner = rig.runner()
    runner.execute_model(rig.Scheduled({"a": 1}))
    runner.execute_model(rig.Scheduled({"a": 1}))
    assert calls(runner)[1:] == [
        ("sync", 1, "engine"),
        ("end", 1, "engine"),
        ("sync", 2, "engine"),
    ]


def test_steps_within_a_step_are_part_of_it(rig: Any) -> None:
    class Nested(rig.GuardedRunner):
        def execute_model(self, *args: Any, **kwargs: Any) -> Any:
            return super().execute_model(*args, **kwargs)

    runner = Nested()
    guard = rig.Recorder()
    watching.bind(runner, lambda: guard)

    def nested() -> None:
        runner.body = lambda: None
        runner.execute_model(rig.Scheduled({"inner": 1}), dummy_run=True)

    runner.body = nested
    rig.step(runner, "a")
    assert [c for c in guard.calls if c[0] in ("sync", "end")] == [
        ("sync", 1, "engine"),
        ("end", 1, "engine"),
    ]


def test_dummy_run_is_found_by_name_and_by_position(rig: Any) -> None:
    runner = rig.runner()
    scheduled = rig.Scheduled({"_dummy_req_0": 1})
    runner.execute_model(scheduled, None, True)
    runner.execute_model(scheduler_output=scheduled, dummy_run=True)
    runner.execute_model(scheduled, None, False, True)
    kinds = [call[2] for call in calls(runner) if call[0] == "sync"]
    assert kinds == ["dummy", "dummy", "engine"]


def test_only_the_samplers_logits_are_seen(rig: Any) -> None:
    runner = rig.runner(prompt_logprobs=True, drafts=[2, 0])
    rig.step(runner, "a", "b")
    assert runner.model.rows == [4, 5]
    (logits,) = watching.watch_of(runner).guard.logits
    assert logits.shape == (4, rig.vocabulary)


def test_sharded_sampling_has_no_logits_to_see(rig: Any) -> None:
    runner = rig.runner(batch_sharder=object(), prompt_logprobs=True)
    rig.step(runner, "a")
    assert watching.watch_of(runner).guard.logits == []
    assert calls(runner)[-1] == ("after", 1, (0,))


def test_no_logits_on_this_rank(rig: Any) -> None:
    runner = rig.runner()
    runner.model.compute_logits = lambda hidden: None
    rig.step(runner, "a")
    assert watching.watch_of(runner).guard.logits == []
    assert calls(runner)[-1] == ("after", 1, (0,))


def test_a_model_without_a_namespace_is_left_alone(rig: Any) -> None:
    class Slotted:
        __slots__ = ()

        def compute_logits(self, hidden: torch.Tensor) -> torch.Tensor:
            return hidden

    runner = rig.runner(model=Slotted())
    rig.step(runner, "a")
    assert calls(runner)[-1] == ("after", 1, (0,))
    assert not [call for call in calls(runner) if call[0] == "before"]


def test_output_that_cannot_be_kept_apart_is_said_and_passed_on(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Equal:
        __slots__ = ()

        def get_output(self) -> None:
            pass

    runner = rig.runner()
    runner._output = lambda *args: Equal()
    for _ in range(2):
        runner.execute_model(rig.Scheduled({"a": 1}))
        assert isinstance(runner.sample_tokens(None), Equal)
    (record,) = caplog.records
    assert "after_sample failed" in record.getMessage()


def test_other_arguments_of_postprocess_are_said_and_passed_on(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    runner = rig.runner()
    runner.execute_model(rig.Scheduled({"a": 1}))
    seen: list[Any] = []
    for _ in range(2):
        runtime_guard.observe_sampled(
            lambda *args, **kwargs: seen.append((args, kwargs)), runner, other=1
        )
    assert seen == [((runner,), {"other": 1})] * 2
    (record,) = caplog.records
    assert "on_sampled failed" in record.getMessage()


def test_compute_logits_is_put_back_where_there_was_none(rig: Any) -> None:
    runner = rig.runner()
    before = dict(vars(runner.model))
    runner.body = lambda: seen.append("compute_logits" in vars(runner.model))
    seen: list[bool] = []
    rig.step(runner, "a")
    assert seen == [False, True]
    assert list(vars(runner.model)) == list(before)
    assert all(vars(runner.model)[name] is value for name, value in before.items())


def test_compute_logits_of_the_instance_is_put_back(rig: Any) -> None:
    runner = rig.runner()
    own = functools.partial(type(runner.model).compute_logits, runner.model)
    runner.model.compute_logits = own
    runner.model.later = 1
    order = list(vars(runner.model))
    rig.step(runner, "a")
    assert vars(runner.model)["compute_logits"] is own
    assert list(vars(runner.model)) == order
    assert runner.model.rows == [1]


def test_a_foreign_compute_logits_is_not_written_over(rig: Any) -> None:
    runner = rig.runner()
    foreign = SimpleNamespace(seen=0)

    def patch() -> None:
        beneath = runner.model.compute_logits
        foreign.patched = lambda hidden: beneath(hidden)
        runner.model.compute_logits = foreign.patched

    runner.execute_model(rig.Scheduled({"a": 1}))
    runner.body = patch
    runner.sample_tokens(None)
    assert vars(runner.model)["compute_logits"] is foreign.patched
    # Ours beneath it is spent: it calls through and shows nothing any more.
    runner.model.compute_logits(torch.zeros(3, 4))
    assert [len(logits) for logits in watching.watch_of(runner).guard.logits] == [1]


@pytest.mark.parametrize(
    "hook",
    [
        "bind",
        "active",
        "sync_for_step",
        "before_sample",
        "on_sampled",
        "after_sample",
        "end_of_wave_sync",
    ],
)
def test_a_hook_that_fails_is_said_once_and_never_reaches_the_step(
    rig: Any, caplog: pytest.LogCaptureFixture, hook: str
) -> None:
    failed = []

    def fail(self: Any, *args: Any) -> None:
        failed.append(hook)
        raise RuntimeError("in the guard")

    broken = property(fail) if hook == "active" else fail
    guard = type("Broken", (rig.Recorder,), {hook: broken})()
    runner = rig.runner(guard)
    plain = rig.Runner()
    for _ in range(3):
        assert rig.step(runner, "a", "b") == rig.step(plain, "a", "b")
    said = [r for r in caplog.records if f"Broken.{hook} failed" in r.getMessage()]
    if hook != "active":
        assert len(said) == 1
        assert failed == [hook]
    assert len(caplog.records) <= 2


def test_a_guard_can_stop_a_step_before_its_body(rig: Any) -> None:
    class Stopping(rig.Recorder):
        def sync_for_step(self, step: Any) -> None:
            super().sync_for_step(step)
            if step.number == 2:
                raise GuardStopped("enough")

    runner = rig.runner(Stopping())
    rig.step(runner, "a")
    with pytest.raises(GuardStopped, match="enough"):
        rig.step(runner, "a")
    assert calls(runner)[-2:] == [("sync", 2, "engine"), ("end", 2, "engine")]
    assert [entry for entry in runner.log if entry == ("execute", True)] == [
        ("execute", True)
    ]
    rig.step(runner, "a")
    assert watching.watch_of(runner).counts.engine == 3


def test_no_hook_but_the_first_can_stop_a_step(rig: Any) -> None:
    class Late(rig.Recorder):
        def before_sample(self, *args: Any) -> None:
            raise GuardStopped("too late: others are in the step")

    runner = rig.runner(Late())
    assert rig.step(runner, "a").sampled_token_ids == [[0]]


def test_an_inactive_guard_leaves_the_sample_phase_alone(rig: Any) -> None:
    class Asleep(rig.Recorder):
        active = False

    runner = rig.runner(Asleep())
    runner.body = lambda: seen.append("compute_logits" in vars(runner.model))
    seen: list[bool] = []
    rig.step(runner, "a")
    assert seen == [False, False]
    assert calls(runner)[1:] == [("sync", 1, "engine"), ("end", 1, "engine")]
    assert watching.watch_of(runner).counts.sampled == 1


def test_a_guard_may_wake_up_in_its_sync(rig: Any) -> None:
    class Waking(rig.Recorder):
        active = False

        def sync_for_step(self, step: Any) -> None:
            super().sync_for_step(step)
            self.active = step.number >= 2

    runner = rig.runner(Waking())
    rig.step(runner, "a")
    rig.step(runner, "a")
    assert [c[1] for c in calls(runner) if c[0] == "before"] == [2]


def test_a_runner_built_before_the_patch_is_bound_by_its_first_step(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ascend_shims.guard.select.make_guard", rig.Recorder)
    runner = rig.Runner()
    runner.__class__ = rig.GuardedRunner
    assert id(runner) not in watching._watches
    rig.step(runner, "a")
    assert ("before", 1, "a") in calls(runner)


def test_patched_between_the_two_halves_of_a_step(rig: Any) -> None:
    runner = rig.Runner()
    runner.execute_model(rig.Scheduled({"a": 1}))
    runner.__class__ = rig.GuardedRunner
    guard = rig.Recorder()
    watching.bind(runner, lambda: guard)
    rig.collect(runner.sample_tokens(None))
    assert guard.calls[1:] == [
        ("before", 1, "a"),
        ("sampled", 1, (1, 1)),
        ("end", 1, "engine"),
        ("after", 1, (0,)),
    ]


def test_two_runners_have_guards_of_their_own_freed_with_them(rig: Any) -> None:
    one, two = rig.runner(), rig.runner()
    rig.step(one, "a")
    assert watching.watch_of(one).counts.engine == 1
    assert watching.watch_of(two).counts.engine == 0
    guard = weakref.ref(watching.watch_of(one).guard)
    runner, key = weakref.ref(one), id(one)
    watching.bind(one)  # a second guard leaves nothing of the first behind
    gc.collect()
    assert guard() is None
    guard = weakref.ref(watching.watch_of(one).guard)
    del one
    gc.collect()
    assert key not in watching._watches
    assert runner() is None
    assert guard() is None


def test_construction_binds(rig: Any) -> None:
    runner = rig.GuardedRunner(drafts=[1])
    assert id(runner) in watching._watches
    assert runner.drafts == [1]


def test_results_are_those_of_an_unguarded_runner(rig: Any) -> None:
    traits: dict[str, Any] = {
        "drafts": [1, 0],
        "tokens": lambda ids: [[3, 4], [5]][: len(ids)],
    }
    guarded, plain = rig.runner(**traits), rig.Runner(**traits)
    for ids in (["a", "b"], ["a", "b"]):
        assert rig.step(guarded, *ids) == rig.step(plain, *ids)
    assert guarded.log == plain.log


class TestShape:
    """What a caller can see of the decorated methods."""

    @pytest.mark.parametrize("name", ["execute_model", "sample_tokens"])
    def test_names_signature_and_chain(self, rig: Any, name: str) -> None:
        stock, ours = getattr(rig.Runner, name), getattr(rig.GuardedRunner, name)
        assert inspect.signature(ours) == inspect.signature(stock)
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            assert getattr(ours, attribute) == getattr(stock, attribute)
        guarded = ours.__wrapped__
        assert guarded.__wrapped__ is stock.__wrapped__
        assert inspect.unwrap(ours) is inspect.unwrap(stock)

    def test_what_upstream_did_not_decorate_is_wrapped_as_it_is(self) -> None:
        def execute_model(self: Any, scheduler_output: Any) -> bool:
            return torch.is_inference_mode_enabled()

        ours = runtime_guard.guard_step(execute_model)
        assert ours.__wrapped__ is execute_model
        runner = _Bare()
        assert ours(runner, _nothing_scheduled()) is False

    def test_another_layer_in_front_of_upstreams(self) -> None:
        modes: list[bool] = []

        class Seeing(Observer):
            def sync_for_step(self, step: Any) -> None:
                modes.append(torch.is_inference_mode_enabled())

        @torch.inference_mode()
        def execute_model(self: Any, scheduler_output: Any) -> bool:
            return torch.is_inference_mode_enabled()

        @functools.wraps(execute_model)
        def foreign(*args: Any, **kwargs: Any) -> Any:
            return execute_model(*args, **kwargs)

        runner = _Bare()
        watching.bind(runner, Seeing)
        ours = runtime_guard.guard_step(foreign)
        assert ours(runner, _nothing_scheduled()) is True
        assert modes == [True]
        assert ours.__wrapped__.__wrapped__ is foreign

    def test_no_marks_of_compilers_are_copied(self) -> None:
        def execute_model(self: Any, scheduler_output: Any) -> None:
            pass

        execute_model._torchdynamo_disable = True  # type: ignore[attr-defined]
        ours = runtime_guard.guard_step(execute_model)
        assert set(vars(ours)) == {"__wrapped__"}


class _Bare:
    execute_model_state = None


def _nothing_scheduled() -> Any:
    return SimpleNamespace(
        num_scheduled_tokens={}, finished_req_ids=(), total_num_scheduled_tokens=0
    )
