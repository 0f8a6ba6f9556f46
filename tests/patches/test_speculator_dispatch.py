"""speculator-dispatch: which methods are served, and who gets the update stream."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from ascend_shims.device import replays
from ascend_shims.patches import speculator_dispatch

OLDEST = {"dspark", "dflash", "mtp", "eagle"}
"""Rooms of upstream's speculators in 0.27.1."""
RELEASES = {
    "0.27.1": (OLDEST, ("dspark", "dflash", "mtp", "eagle", "eagle3")),
    "0.29.0": (
        OLDEST | {"extract_hidden_states"},
        ("dspark", "dflash", "mtp", "eagle", "eagle3", "extract_hidden_states"),
    ),
    "0.31.0": (
        OLDEST | {"extract_hidden_states", "draft_model"},
        (
            "dspark",
            "dflash",
            "mtp",
            "eagle",
            "eagle3",
            "draft_model",
            "extract_hidden_states",
        ),
    ),
    "0.32.0": (
        OLDEST | {"extract_hidden_states", "standalone_ar", "ngram"},
        (
            "dspark",
            "dflash",
            "mtp",
            "eagle",
            "eagle3",
            "draft_model",
            "extract_hidden_states",
        ),
    ),
}
REFUSED = ("ngram", "ngram_gpu", "medusa", "mlp_speculator", "suffix", "custom_class")


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    rooms, _ = RELEASES[request.param]

    def exists(module: str) -> bool:
        return module.split(".")[5] in rooms

    monkeypatch.setattr(speculator_dispatch, "_exists", exists)
    return str(request.param)


def choose(method: str) -> Any:
    """What comes of it, from an upstream that would build anything."""
    config = SimpleNamespace(speculative_config=SimpleNamespace(method=method))
    return speculator_dispatch.choose(
        lambda config, *rest, **more: (config.speculative_config.method, rest, more),
        config,
        "device",
        req_states="states",
    )


def test_methods_are_served_in_order(release: str) -> None:
    _, methods = RELEASES[release]
    assert speculator_dispatch.supported_methods() == methods
    for method in methods:
        # Upstream builds it, from all that it was given.
        assert choose(method) == (method, ("device",), {"req_states": "states"})


def test_others_are_refused_by_name(release: str) -> None:
    _, methods = RELEASES[release]
    every = set(RELEASES["0.32.0"][1])
    refused = [*REFUSED, *sorted(every - set(methods))]
    for method in refused:
        with pytest.raises(NotImplementedError) as caught:
            choose(method)
        message = str(caught.value)
        assert repr(method) in message
        assert ", ".join(methods) in message


class Runner:
    speculator: Any = None


def test_the_speculator_has_the_runners_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        replays, "npu", lambda: SimpleNamespace(Stream=lambda: object())
    )

    def init(runner: Runner) -> None:
        runner.speculator = SimpleNamespace()

    one, other = Runner(), Runner()
    for runner in (one, other):
        speculator_dispatch.give_stream(init, runner)
    assert one.speculator.update_stream is one.update_stream  # type: ignore[attr-defined]
    assert one.speculator.update_stream is not other.speculator.update_stream


def test_a_runner_without_one_gets_no_stream_yet() -> None:
    runner = Runner()
    speculator_dispatch.give_stream(lambda _: None, runner)
    assert not hasattr(runner, "update_stream")
