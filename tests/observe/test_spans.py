"""An event in the current span, with OpenTelemetry's own SDK."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import pytest

import ascend_shims
from ascend_shims.observe import Summary, spans

from ..engine.world import World
from ..fresh import python

needs_sdk = pytest.mark.skipif(
    find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None,
    reason="opentelemetry-sdk is not installed",
)


@pytest.fixture
def tracer() -> Any:
    from opentelemetry.sdk.trace import TracerProvider

    return TracerProvider().get_tracer("tests")


@needs_sdk
def test_the_current_span_has_an_event(tracer: Any, summary: Summary) -> None:
    with tracer.start_as_current_span("engine start") as span:
        spans.add_event(summary, 7)
    (event,) = span.events
    assert event.name == "ascend_shims.apply"
    assert dict(event.attributes) == {
        "ascend_shims.version": "1.2.3",
        "ascend_shims.process": "engine-core",
        "ascend_shims.pid": 42,
        "ascend_shims.vllm": "0.32.0",
        "ascend_shims.device": "sim",
        "ascend_shims.plan": "abc",
        "ascend_shims.ms": 7,
        "ascend_shims.gaps.applied": 2,
        "ascend_shims.gaps.off": 1,
    }


@needs_sdk
def test_apply_tells_each_change_once(tracer: Any, up: World) -> None:
    with tracer.start_as_current_span("engine start") as span:
        ascend_shims.apply()
        ascend_shims.apply()
        ascend_shims.apply(disable=["two"])
    assert [dict(one.attributes)["ascend_shims.gaps.off"] for one in span.events] == [
        1,
        2,
    ]


@needs_sdk
def test_without_a_span_nothing_is_said(tracer: Any, summary: Summary) -> None:
    span = tracer.start_span("not current")
    spans.add_event(summary, 7)
    assert not span.events


def test_half_of_the_library_is_none(
    summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = type(sys)("opentelemetry.trace")
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", half)
    spans.add_event(summary, 7)
    assert not hasattr(half, "get_current_span")


def test_no_library_is_imported_for_it() -> None:
    code = (
        "import sys, ascend_shims; ascend_shims.apply();"
        "names = {m.partition('.')[0] for m in sys.modules};"
        "print('ascend_shims' in names,"
        " sorted(names & {'opentelemetry', 'prometheus_client', 'vllm', 'torch'}))"
    )
    assert python(code).strip() == "True []"
