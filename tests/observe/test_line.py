"""One line a process, where its program's log lines go."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

import ascend_shims
from ascend_shims import plugin
from ascend_shims.observe import Observer, Summary, line

from ..engine.world import World

PREFIX = "ascend_shims.apply "


class Kept(logging.Handler):
    """Keeps messages."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [
            json.loads(one.removeprefix(PREFIX))
            for one in self.said
            if one.startswith(PREFIX)
        ]


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that has not set up logging: neither has pytest."""
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.delitem(logging.root.manager.loggerDict, "vllm", raising=False)


def listen(monkeypatch: pytest.MonkeyPatch, logger: logging.Logger, level: int) -> Kept:
    kept = Kept()
    monkeypatch.setattr(logger, "handlers", [kept])
    monkeypatch.setattr(logger, "level", level)
    logging.root.manager._clear_cache()  # type: ignore[attr-defined]
    return kept


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    """Our own logger, set up."""
    yield listen(monkeypatch, logging.getLogger("ascend_shims"), logging.INFO)
    logging.root.manager._clear_cache()  # type: ignore[attr-defined]


def vllms(monkeypatch: pytest.MonkeyPatch, level: int = logging.INFO) -> Kept:
    """A logger like vLLM's, which shows what is said to it and hands nothing on."""
    logger = logging.Logger("vllm")
    logger.propagate = False
    monkeypatch.setitem(logging.root.manager.loggerDict, "vllm", logger)
    return listen(monkeypatch, logger, level)


def test_it_is_one_line_of_words_and_json(ours: Kept, summary: Summary) -> None:
    assert line.write(summary, 7)
    assert ours.said == [
        'ascend_shims.apply {"schema": 1, "version": "1.2.3", "process": '
        '"engine-core", "pid": 42, "vllm": "0.32.0", "device": "sim", "plan": "abc", '
        '"gaps": {"applied": 2, "off": 1}, "ms": 7}'
    ]


def test_each_change_is_one_line(up: World, ours: Kept) -> None:
    report = ascend_shims.apply()
    ascend_shims.apply()
    (first,) = ours.lines
    assert first["gaps"] == {"pending": 2, "off": 1}
    assert first["plan"] == report.plan
    assert first["pid"] == report.process["pid"]
    assert first["process"] == report.process["role"]
    assert first["version"] == ascend_shims.__version__
    assert first["ms"] >= 0
    up.import_()
    ascend_shims.apply()
    ascend_shims.apply()
    ascend_shims.apply(disable=["two"])
    assert [one["gaps"] for one in ours.lines] == [
        {"pending": 2, "off": 1},
        {"applied": 2, "off": 1},
        {"applied": 1, "off": 2},
    ]


def test_where_nobody_listens_vllm_shows_it(
    unheard: None, monkeypatch: pytest.MonkeyPatch, summary: Summary
) -> None:
    assert not line.write(summary, 7)
    shown = vllms(monkeypatch)
    assert line.write(summary, 7)
    assert [one["plan"] for one in shown.lines] == ["abc"]


def test_who_listens_to_us_gets_it_alone(
    ours: Kept, monkeypatch: pytest.MonkeyPatch, summary: Summary
) -> None:
    shown = vllms(monkeypatch)
    assert line.write(summary, 7)
    assert (len(ours.lines), shown.said) == (1, [])


def test_vllms_level_holds(
    unheard: None, monkeypatch: pytest.MonkeyPatch, summary: Summary
) -> None:
    shown = vllms(monkeypatch, logging.WARNING)
    assert not line.write(summary, 7)
    assert shown.said == []


def test_what_was_applied_before_vllm_came_is_told_then(
    unheard: None, up: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ascend_shims.apply()
    shown = vllms(monkeypatch)
    plugin.register()
    plugin.register()
    ascend_shims.apply()
    assert [one["gaps"] for one in shown.lines] == [{"pending": 2, "off": 1}]


def test_a_process_that_a_plugin_brings_shims_to_says_so(
    unheard: None, up: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = vllms(monkeypatch)
    plugin.register()
    plugin.register()
    assert [one["gaps"] for one in shown.lines] == [{"pending": 2, "off": 1}]


def test_a_line_that_cannot_be_written_is_no_matter(
    summary: Summary, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: object) -> bool:
        raise RuntimeError("a handler's own")

    monkeypatch.setattr(line, "write", refused)
    Observer(lambda: summary).applied(summary, 7)
    assert "what was applied could not be told: a handler's own" in caplog.text
