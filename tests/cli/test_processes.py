"""`shims status` asks each process for its own live bindings."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

_SERVE = """
    import ascend_shims
    ascend_shims.apply()
    import madeup.user
"""


def _of(report: dict[str, Any], pid: int) -> dict[str, str] | None:
    for process in report["processes"]:
        if process["pid"] == pid:
            return {gap["id"]: gap["state"] for gap in process.get("gaps", ())}
    return None


def _answered(shims_json, pid: int) -> dict[str, Any]:
    """Asked again where a busy machine has kept the process from answering."""
    for _ in range(30):
        report: dict[str, Any] = shims_json("status")
        if _of(report, pid):
            return report
    raise AssertionError(f"{pid} never answered: {report['processes']}")


def _parent(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[1])


def test_a_running_process_is_listed_with_its_states(shims_json, serving) -> None:
    process = serving(_SERVE)
    report = _answered(shims_json, process.pid)
    states = _of(report, process.pid)
    assert states == {"loud": "applied", "polite": "applied", "gone": "landed"}
    (listed,) = [p for p in report["processes"] if p["pid"] == process.pid]
    assert listed["role"] == "front-end"
    assert listed["plan"] == report["plan"]


def test_the_answer_is_read_from_the_live_bindings(shims_json, serving) -> None:
    process = serving(
        _SERVE + "    stock = madeup.core.answer\n    madeup.core.answer = print\n"
    )
    states = _of(_answered(shims_json, process.pid), process.pid)
    assert states == {"loud": "buried", "polite": "buried", "gone": "landed"}


def test_a_killed_process_leaves_nothing_behind(shims_json, serving) -> None:
    process = serving(_SERVE)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert _of(shims_json("status"), process.pid) is None


def test_a_reverted_process_is_not_listed(shims_json, serving) -> None:
    process = serving(_SERVE + "    ascend_shims.revert()\n")
    assert _of(shims_json("status"), process.pid) is None


def test_a_forked_child_answers_for_itself(shims_json, serving) -> None:
    process = serving(
        _SERVE
        + """
    import os, sys, time
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        ascend_shims.revert('polite')
        os.write(write, b'.')
        time.sleep(600)
    os.read(read, 1)
    """
    )
    deadline = time.monotonic() + 60
    others: list[dict[str, Any]] = []
    while not others and time.monotonic() < deadline:
        report = _answered(shims_json, process.pid)
        others = [
            p
            for p in report["processes"]
            if _parent(p["pid"]) == process.pid and "plan" in p
        ]
    assert _of(report, process.pid) == {
        "loud": "applied",
        "polite": "applied",
        "gone": "landed",
    }
    (child,) = others
    os.kill(child["pid"], signal.SIGKILL)
    assert _of(report, child["pid"]) == {
        "loud": "applied",
        "polite": "reverted",
        "gone": "landed",
    }


def test_a_process_that_does_not_answer_is_shown_as_such(shims, serving) -> None:
    process = serving(_SERVE)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        done = shims("status")
    finally:
        os.kill(process.pid, signal.SIGCONT)
    row = next(line for line in done.stdout.splitlines() if str(process.pid) in line)
    assert "no answer" in row


_OTHERS = (
    "other registry: these gaps are not those of the registry that this command reads; "
    "--registry FILE reads another"
)


def test_a_process_with_another_registry_is_marked(
    shims, serving, project: Path
) -> None:
    process = serving(_SERVE + "    madeup.core.answer = print\n")
    mine = project / "mine.yaml"
    text = (project / "registry.yaml").read_text()
    mine.write_text(text.replace("id: loud", "id: noisy").replace("[loud]", "[noisy]"))
    (project / "madeup_patches" / "noisy.py").write_text(
        (project / "madeup_patches" / "loud.py").read_text()
    )
    wide = {"COLUMNS": None}
    done = shims("status", "--registry", str(mine), extra=wide)
    lines = done.stdout.splitlines()
    (row,) = [line for line in lines if line.startswith(f"{process.pid} ")]
    assert row.endswith(" · other registry")
    assert f"  {_OTHERS}" in lines
    assert lines[-1].startswith("Next: shims apply-check --registry ")
    marked = shims("status", "--registry", str(mine), "--markdown").stdout
    assert " · other registry |\n" in marked
    assert _OTHERS in marked.splitlines()


def test_a_process_with_the_same_registry_is_not_marked(shims, serving) -> None:
    process = serving(_SERVE)
    for words in (("status",), ("status", "--all"), ("status", "--gap", "loud")):
        done = shims(*words, extra={"COLUMNS": None})
        rows = [x for x in done.stdout.splitlines() if x.startswith(f"{process.pid} ")]
        assert rows and "other registry" not in rows[0]


def test_the_table_names_a_fault_elsewhere(shims, serving) -> None:
    process = serving(_SERVE + "    madeup.core.answer = print\n")
    done = shims("status")
    assert done.returncode == 1
    assert f"{process.pid}: loud is buried" in done.stdout
