"""Lines, permissions, quota."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_shims.guard.config import ReportSettings
from ascend_shims.guard.report import Report


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "guard.jsonl"


def test_a_line_has_everything(path: Path) -> None:
    before = datetime.now(timezone.utc)
    report = Report(ReportSettings(path=str(path)), rank=3)
    report.write("repeated-tokens", {"tokens": [1]}, step=7, request_id="a")
    (line,) = lines(path)
    written = datetime.fromisoformat(line.pop("time"))
    assert before <= written <= datetime.now(timezone.utc)
    assert line == {
        "rank": 3,
        "step": 7,
        "request_id": "a",
        "detector": "repeated-tokens",
        "evidence": {"tokens": [1]},
    }


def test_the_file_is_the_owners_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        Report(ReportSettings(path=str(path))).write("d", {}, step=1)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_line_is_one_appending_write(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, written = [], []
    real_open, real_write = os.open, os.write

    def spy_open(name: Any, flags: int, mode: int = 0o777) -> int:
        opened.append(flags)
        return real_open(name, flags, mode)

    def spy_write(file: int, data: bytes) -> int:
        written.append(data)
        return real_write(file, data)

    monkeypatch.setattr(os, "open", spy_open)
    monkeypatch.setattr(os, "write", spy_write)
    report = Report(ReportSettings(path=str(path)))
    report.write("d", {"text": "zwei\nZeilen"}, step=1)
    monkeypatch.undo()
    assert all(flags & os.O_APPEND for flags in opened)
    assert len(written) == 1
    assert written[0].count(b"\n") == 1
    assert written[0].endswith(b"\n")


def test_processes_share_a_file(path: Path) -> None:
    program = (
        "import sys\n"
        "from ascend_shims.guard.config import ReportSettings\n"
        "from ascend_shims.guard.report import Report\n"
        "report = Report(ReportSettings(path=sys.argv[1]), rank=int(sys.argv[2]))\n"
        "for step in range(50):\n"
        "    report.write('d', {'pad': 'x' * 200}, step=step)\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(path), str(rank)])
        for rank in range(2)
    ]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    seen = {(line["rank"], line["step"]) for line in lines(path)}
    assert seen == {(rank, step) for rank in range(2) for step in range(50)}


def test_a_quota_in_lines(path: Path) -> None:
    report = Report(ReportSettings(path=str(path), max_lines=3))
    for step in range(10):
        report.write("d", {}, step=step)
    written = lines(path)
    assert [line["step"] for line in written[:-1]] == [0, 1, 2]
    assert written[-1]["detector"] == "guard"
    assert written[-1]["evidence"] == {
        "quota": {"max_bytes": 16 * 1024 * 1024, "max_lines": 3}
    }


@settings(deadline=None)
@given(
    quota=st.integers(1, 3000),
    sizes=st.lists(st.integers(0, 400), min_size=1, max_size=30),
    restart=st.integers(1, 5),
)
def test_a_quota_in_bytes_holds_over_restarts(
    tmp_path_factory: pytest.TempPathFactory,
    quota: int,
    sizes: list[int],
    restart: int,
) -> None:
    path = tmp_path_factory.mktemp("quota") / "guard.jsonl"
    limits = ReportSettings(path=str(path), max_bytes=quota)
    report = Report(limits)
    for step, size in enumerate(sizes):
        if step % restart == 0:
            report = Report(limits)
        report.write("d", {"pad": "x" * size}, step=step)
    written = path.read_bytes()
    closing = [line for line in lines(path) if line["detector"] == "guard"]
    body = b"".join(
        line for line in written.splitlines(keepends=True) if b'"quota"' not in line
    )
    assert len(body) <= quota
    assert len(written) - len(body) <= 256
    lost = len(sizes) > len(lines(path)) - len(closing)
    assert len(closing) == (1 if lost else 0)
    assert not closing or lines(path)[-1] == closing[0]


def test_the_quota_counts_what_others_wrote(path: Path) -> None:
    first = Report(ReportSettings(path=str(path), max_lines=4))
    second = Report(ReportSettings(path=str(path), max_lines=4))
    for step in range(4):
        first.write("d", {}, step=step)
        second.write("d", {}, step=step)
    written = lines(path)
    assert len(written) == 5
    assert [line["detector"] for line in written] == ["d"] * 4 + ["guard"]


@pytest.mark.parametrize("how", ["removed", "rotated", "truncated"])
def test_a_fresh_file_has_a_fresh_quota(path: Path, how: str) -> None:
    report = Report(ReportSettings(path=str(path), max_lines=1))
    report.write("d", {}, step=1)
    report.write("d", {}, step=2)
    if how == "removed":
        path.unlink()
    elif how == "rotated":
        path.rename(path.with_suffix(".1"))
    else:
        path.write_bytes(b"")
    report.write("d", {}, step=3)
    assert [line["step"] for line in lines(path)] == [3]


def test_what_is_no_report_is_appended_to_all_the_same(path: Path) -> None:
    path.write_bytes(b"not json\n\xff\xfe\n")
    Report(ReportSettings(path=str(path))).write("d", {}, step=1)
    assert json.loads(path.read_bytes().splitlines()[-1])["step"] == 1


def test_a_path_that_cannot_be_written_ends_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    where = tmp_path / "missing" / "guard.jsonl"
    report = Report(ReportSettings(path=str(where), max_lines=2))
    for step in range(5):
        report.write("d", {}, step=step)
    told = [record.getMessage() for record in caplog.records]
    assert "No such file" in told[0]
    assert json.loads(told[1])["step"] == 0
    assert json.loads(told[2])["step"] == 1
    assert told[3] == "guard: 2 findings logged, no more are"
    assert len(told) == 4


def test_a_full_disk_does_not_raise(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    report = Report(ReportSettings(path=str(path)))
    monkeypatch.setattr(os, "write", lambda file, data: 3)
    report.write("d", {}, step=1)
    assert "3 of" in caplog.records[0].getMessage()


def test_without_a_path_the_log_has_it(caplog: pytest.LogCaptureFixture) -> None:
    Report(ReportSettings()).write("d", {"a": 1}, step=4, request_id="r")
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert json.loads(record.getMessage())["request_id"] == "r"


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        ({"a": "\ud800"}, {"ascii": "{'a': '\\ud800'}"}),
        ({"a": {1, 2}}, {"a": [1, 2]}),
        ({"a": Path("x")}, {"a": "x"}),
        ({"a": float("nan")}, {"a": None}),
        ({(1, 2): 3}, {"(1, 2)": 3}),
    ],
)
def test_odd_evidence_is_still_a_line(
    path: Path, evidence: dict[Any, Any], told: dict[str, Any]
) -> None:
    Report(ReportSettings(path=str(path))).write("d", evidence, step=1)
    assert lines(path)[0]["evidence"] == told
