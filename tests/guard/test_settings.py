"""Settings from files and the environment, while they change."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ascend_shims.guard.config import (
    DETECTORS,
    Detectors,
    ForbiddenText,
    GuardConfigurationError,
    LowAcceptance,
    NonfiniteLogits,
    RepeatedTokens,
    ReportSettings,
    Settings,
    named_settings,
    parse_settings,
    read_settings,
)
from ascend_shims.guard.default import DefaultGuard
from ascend_shims.guard.protocol import Observer
from ascend_shims.guard.select import GuardNotFoundError, load_guard, make_guard
from ascend_shims.guard.source import SettingsSource


class Own(Observer):
    """A guard by dotted name."""


class Picky(Observer):
    def __init__(self, argument: int) -> None:
        self.argument = argument


class Lacking:
    active = True

    def bind(self, runner: Any) -> None:
        pass


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "own_guards", sys.modules[__name__])


def test_nothing_is_on_by_default() -> None:
    assert Settings().detectors.chosen() == {}
    assert not Settings().acts
    assert DETECTORS == (
        "nonfinite-logits",
        "repeated-tokens",
        "low-acceptance",
        "forbidden-text",
    )


@pytest.mark.parametrize(
    "detectors",
    [
        ["nonfinite-logits", "repeated-tokens"],
        {"nonfinite-logits": None, "repeated-tokens": {}},
        {"nonfinite-logits": True, "repeated-tokens": True, "low-acceptance": False},
    ],
)
def test_ways_to_switch_on(detectors: Any) -> None:
    expected = Detectors(
        nonfinite_logits=NonfiniteLogits(), repeated_tokens=RepeatedTokens()
    )
    assert parse_settings({"detectors": detectors}).detectors == expected


def test_everything_can_be_said(tmp_path: Path) -> None:
    data = {
        "detectors": {
            "nonfinite-logits": {"action": "stop", "allow_negative_infinity": True},
            "repeated-tokens": {"repeats": 5, "longest_period": 2},
            "low-acceptance": {"minimum": 0.5, "window": 10},
            "forbidden-text": {"patterns": ["a+"], "window": 3},
        },
        "report": {"path": "x", "max_bytes": 9, "max_lines": 8, "prompt": True},
    }
    expected = Settings(
        Detectors(
            NonfiniteLogits("stop", True),
            RepeatedTokens(repeats=5, longest_period=2),
            LowAcceptance(minimum=0.5, window=10),
            ForbiddenText(patterns=("a+",), window=3),
        ),
        ReportSettings("x", 9, 8, True),
    )
    assert expected.acts
    path = tmp_path / "guard.json"
    path.write_text(json.dumps(data))
    assert read_settings(path) == expected
    path.write_text("detectors:\n  nonfinite-logits:\n")
    assert read_settings(path) == named_settings("nonfinite-logits")
    path.write_text("")
    assert read_settings(path) == Settings()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"detectors": ["nonfinit-logits"]}, "did you mean `nonfinite-logits`"),
        ({"detectors": {"repeated-tokens": {"repeats": 1}}}, "repeats"),
        ({"detectors": {"repeated-tokens": {"repeat": 5}}}, "repeat"),
        ({"detectors": {"repeated-tokens": {"action": "halt"}}}, "action"),
        ({"detectors": {"low-acceptance": {"minimum": 2}}}, "minimum"),
        ({"detectors": {"forbidden-text": {"patterns": ["("]}}}, "'\\('"),
        ({"detectors": ["forbidden-text"]}, "patterns"),
        ({"detectors": "nonfinite-logits"}, "detectors"),
        ({"report": {"max_bytes": 0}}, "max_bytes"),
        ({"reports": {}}, "reports"),
        (["detectors"], "object"),
        ({"detectors": [{"nonfinite-logits": {}}]}, "detectors"),
    ],
)
def test_what_cannot_be_used_is_refused(data: Any, said: str) -> None:
    with pytest.raises(GuardConfigurationError, match=said):
        parse_settings(data)


@pytest.mark.parametrize(
    "content", [b"{", b"a: b: c", b"\xff\xfe", b"detectors: 3", b"a: 2026-13-45"]
)
def test_a_broken_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "guard.yaml"
    path.write_bytes(content)
    with pytest.raises(GuardConfigurationError, match=r"guard\.yaml"):
        read_settings(path)


def test_the_environment_adds_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "guard.yaml"
    path.write_text(
        "detectors: {repeated-tokens: {repeats: 7}}\nreport: {path: a, max_lines: 2}"
    )
    source = SettingsSource.from_environment(
        {
            "ASCEND_SHIMS_GUARD": str(path),
            "ASCEND_SHIMS_GUARD_DETECTORS": " nonfinite-logits , repeated-tokens,",
            "ASCEND_SHIMS_GUARD_REPORT": "b",
        }
    )
    assert source.complaints() == []
    assert source.settings == Settings(
        Detectors(NonfiniteLogits(), RepeatedTokens(repeats=7)),
        ReportSettings(path="b", max_lines=2),
    )


def test_a_bad_environment_is_a_complaint() -> None:
    source = SettingsSource.from_environment(
        {"ASCEND_SHIMS_GUARD_DETECTORS": "nonfinite-logits,typo"}
    )
    assert source.settings == Settings()
    (complaint,) = source.complaints()
    assert complaint.startswith("ASCEND_SHIMS_GUARD_DETECTORS: unknown detector `typo`")
    assert source.complaints() == []


class TestReload:
    @pytest.fixture
    def clock(self) -> list[float]:
        return [0.0]

    def write(self, path: Path, text: str, stamp: int) -> None:
        path.write_text(text)
        os.utime(path, (stamp, stamp))

    def test_follows_the_file(self, tmp_path: Path, clock: list[float]) -> None:
        path = tmp_path / "guard.yaml"
        self.write(path, "", 1)
        source = SettingsSource(path, clock=lambda: clock[0])
        assert not source.due()
        clock[0] = 1.0
        assert source.due()
        assert not source.refresh()
        assert not source.due()
        self.write(path, "detectors: [nonfinite-logits]", 2)
        clock[0] = 2.0
        assert source.refresh()
        assert source.settings == named_settings("nonfinite-logits")

    def test_a_broken_file_keeps_what_held_and_is_said_once(
        self, tmp_path: Path, clock: list[float]
    ) -> None:
        path = tmp_path / "guard.yaml"
        self.write(path, "detectors: [nonfinite-logits]", 1)
        source = SettingsSource(path, clock=lambda: clock[0])
        self.write(path, "detectors: [", 2)
        assert not source.refresh()
        assert len(source.complaints()) == 1
        assert not source.refresh()
        assert source.complaints() == []
        path.unlink()
        assert not source.refresh()
        assert "No such file" in source.complaints()[0]
        assert source.settings == named_settings("nonfinite-logits")
        self.write(path, "detectors: [repeated-tokens]", 2)
        assert source.refresh()
        assert source.settings == named_settings("repeated-tokens")

    def test_a_file_may_come_later(self, tmp_path: Path) -> None:
        path = tmp_path / "guard.yaml"
        source = SettingsSource(path)
        assert "No such file" in source.complaints()[0]
        assert not source.refresh()
        assert source.complaints() == []
        path.write_text("detectors: [repeated-tokens]")
        assert source.refresh()


class TestOtherGuards:
    def test_by_dotted_name(self) -> None:
        made = make_guard({"ASCEND_SHIMS_GUARD": "own_guards:Own"})
        assert type(made) is Own

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("no_such_module:Own", "no_such_module"),
            ("own_guards:Other", "Other"),
            ("own_guards:Picky", "argument"),
            ("own_guards:Lacking", "lacks sync_for_step, before_sample"),
            ("own_guards:DETECTORS", "not callable"),
        ],
    )
    def test_one_that_cannot_be_had(
        self, name: str, said: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        with pytest.raises(GuardNotFoundError, match=said):
            load_guard(name)
        made = make_guard(
            {
                "ASCEND_SHIMS_GUARD": name,
                "ASCEND_SHIMS_GUARD_DETECTORS": "nonfinite-logits",
            }
        )
        assert isinstance(made, DefaultGuard)
        assert [record.levelname for record in caplog.records] == ["ERROR"]
        assert name in caplog.records[0].getMessage()

    def test_anything_else_is_a_path(self, tmp_path: Path) -> None:
        path = tmp_path / "a:b.yaml"
        path.write_text("detectors: [repeated-tokens]")
        made = make_guard({"ASCEND_SHIMS_GUARD": str(path)})
        assert isinstance(made, DefaultGuard)
        assert made._source.settings == named_settings("repeated-tokens")
        assert isinstance(make_guard({}), DefaultGuard)
