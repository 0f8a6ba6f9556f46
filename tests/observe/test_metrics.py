"""Gaps by state beside vLLM's own metrics, with prometheus_client itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ascend_shims
from ascend_shims import plugin
from ascend_shims.observe import Summary, family
from ascend_shims.observe.metrics import Metrics
from ascend_shims.states import State

from ..engine.world import World

pytestmark = pytest.mark.skipif(
    find_spec("prometheus_client") is None, reason="prometheus_client is not installed"
)
Page = dict[tuple[str, str], float]


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM is there, and with it the library."""
    import prometheus_client.multiprocess  # noqa: F401

    monkeypatch.delenv(family.MULTIPROCESS, raising=False)
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))


def scraped(registry: Any = None) -> Page:
    """What a page says of us: (name, state or process) to value."""
    import prometheus_client

    page: Page = {}
    for one in (registry or prometheus_client.REGISTRY).collect():
        for sample in one.samples:
            if sample.name.startswith("ascend_shims"):
                labels = sample.labels
                key = labels.get("state") or labels.get("process", "")
                assert (sample.name, key) not in page
                page[sample.name, key] = sample.value
    return page


def gaps(page: Page) -> dict[str, float]:
    found = {s: n for (name, s), n in page.items() if name == "ascend_shims_gaps"}
    assert not found or set(found) == {state.value for state in State}
    return {state: count for state, count in found.items() if count}


@pytest.fixture
def shared(
    vllm: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Any]:
    """A page as vLLM makes it where several processes share one."""
    import prometheus_client
    from prometheus_client import multiprocess

    monkeypatch.setenv(family.MULTIPROCESS, str(tmp_path))
    registry = prometheus_client.CollectorRegistry()
    before = dict(vars(multiprocess.MultiProcessCollector))
    multiprocess.MultiProcessCollector(registry)
    yield registry
    assert dict(vars(multiprocess.MultiProcessCollector)) == before


def test_each_scrape_reads_the_live_bindings(vllm: None, up: World) -> None:
    assert scraped() == {}
    ascend_shims.apply()
    assert gaps(scraped()) == {"pending": 2, "off": 1}
    up.import_()
    assert gaps(scraped()) == {"applied": 2, "off": 1}
    with ascend_shims.disabled("one"):
        assert gaps(scraped()) == {"applied": 1, "off": 2}
    ascend_shims.revert()
    assert scraped() == {}


def test_who_it_is_about_is_said(vllm: None, up: World) -> None:
    import prometheus_client

    report = ascend_shims.apply()
    text = prometheus_client.generate_latest(prometheus_client.REGISTRY).decode()
    about = f'pid="{os.getpid()}",'
    (info,) = [one for one in text.splitlines() if one.startswith("ascend_shims_info{")]
    assert about in info
    assert f'plan="{report.plan}"' in info
    assert f'version="{ascend_shims.__version__}"' in info
    assert f'process="{report.process["role"]}"' in info
    assert info.endswith("} 1.0")
    assert "ascend_shims_silent 0.0" in text.splitlines()


def test_a_shared_page_has_them_too(shared: Any, up: World) -> None:
    ascend_shims.apply()
    assert gaps(scraped(shared)) == {"pending": 2, "off": 1}
    # A page of one process would say nothing now.
    assert scraped() == {}
    ascend_shims.revert()
    assert scraped(shared) == {}


def test_a_page_with_both_collectors_says_it_once(shared: Any, up: World) -> None:
    import prometheus_client
    from prometheus_client import multiprocess

    own = multiprocess.MultiProcessCollector(prometheus_client.REGISTRY)
    try:
        ascend_shims.apply()
        assert gaps(scraped()) == {"pending": 2, "off": 1}
    finally:
        prometheus_client.REGISTRY.unregister(own)
        ascend_shims.revert()


def test_who_stands_on_top_of_ours_is_left_alone(
    vllm: None, up: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import prometheus_client
    from prometheus_client.multiprocess import MultiProcessCollector

    stock = vars(MultiProcessCollector)["collect"]
    monkeypatch.setenv(family.MULTIPROCESS, str(tmp_path))
    registry = prometheus_client.CollectorRegistry()
    MultiProcessCollector(registry)
    ascend_shims.apply()
    try:
        beneath = vars(MultiProcessCollector)["collect"]
        assert beneath is not stock
        theirs = lambda self: beneath(self)  # noqa: E731
        MultiProcessCollector.collect = theirs  # type: ignore[method-assign]
        assert gaps(scraped(registry)) == {"pending": 2, "off": 1}
        ascend_shims.revert()
        assert vars(MultiProcessCollector)["collect"] is theirs
        assert scraped(registry) == {}
    finally:
        MultiProcessCollector.collect = stock  # type: ignore[method-assign]


def test_a_program_that_applied_before_vllm_came(
    up: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    import prometheus_client.multiprocess  # noqa: F401

    monkeypatch.delenv(family.MULTIPROCESS, raising=False)
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    ascend_shims.apply()
    assert scraped() == {}
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    plugin.register()
    assert gaps(scraped()) == {"pending": 2, "off": 1}
    ascend_shims.revert()
    plugin.register()
    assert scraped() == {}


def test_nothing_wanted_nothing_shown(vllm: None, up: World) -> None:
    ascend_shims.apply(only=[])
    assert scraped() == {}


def test_a_second_copy_says_nothing_on_top(vllm: None, up: World) -> None:
    ascend_shims.apply()
    other = Metrics(lambda: Summary.of(ascend_shims.status(), "0"))
    other.show()
    other.hide()
    assert gaps(scraped()) == {"pending": 2, "off": 1}


def test_vllms_page_is_whole_where_ours_cannot_be_had(
    vllm: None, summary: Summary, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> Summary:
        raise RuntimeError("torn")

    made = Metrics(broken)
    made.show()
    try:
        assert scraped() == {}
    finally:
        made.hide()
    assert "no metrics of this process: torn" in caplog.text


def test_who_threw_us_out_is_not_in_our_way(vllm: None, summary: Summary) -> None:
    import prometheus_client

    made = Metrics(lambda: summary)
    made.show()
    prometheus_client.REGISTRY.unregister(made)  # type: ignore[arg-type]
    made.hide()
    made.show()
    assert ("ascend_shims_gaps", "applied") in scraped()
    made.hide()
    assert scraped() == {}


CHILD = """
import ascend_shims
ascend_shims.apply()
print("ready", flush=True)
input()
"""


@pytest.fixture
def child(up: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A process beneath this one that carries the same shims."""
    monkeypatch.setattr(family, "_PATIENCE", 60)
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD],
        env={**os.environ, "PYTHONPATH": str(up.root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()


def test_children_are_told_as_long_as_they_live(child: Any) -> None:
    told, silent = family.summaries()
    assert [one.pid for one in told] == [child.pid]
    assert told[0].gaps == {State.PENDING: 2, State.OFF: 1}
    assert silent == 0
    child.kill()
    child.wait()
    assert family.summaries() == ([], 0)


def test_one_that_does_not_answer_is_counted(
    child: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "_PATIENCE", 0.2)
    os.kill(child.pid, signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)
    assert family.summaries() == ([], 1)


def test_others_of_this_machine_are_not(
    child: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert family._ancestors(child.pid)[0] == os.getpid()
    monkeypatch.setattr(family, "_ancestors", lambda pid: [1])
    assert family.summaries() == ([], 0)
