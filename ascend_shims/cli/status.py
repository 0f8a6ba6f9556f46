"""`shims status`: what is open, and what is applied in which process."""

from __future__ import annotations

from typing import Any

import click

from ..processes.client import Answer, ask_all
from ..states import State
from .here import assumed, own_plan, own_switches, print_json

__all__ = ["command"]


@click.command("status")
@click.option("--all", "everything", is_flag=True, help="Landed and retired gaps too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@click.option(
    "--assume",
    multiple=True,
    metavar="PACKAGE=VERSION",
    callback=assumed,
    help="Plan for that version; nothing needs to be installed.",
)
@click.option("--registry", type=click.Path(path_type=None), help="Another registry.")
def command(
    everything: bool, as_json: bool, assume: dict[str, str], registry: str | None
) -> int:
    """What is open, and what is applied in which process.

    The first table is the plan for a new process in this environment; the
    second asks each running process that carries shims for its live bindings.
    """
    from pathlib import Path

    from ..process import the_process

    switches = own_switches(assume, Path(registry) if registry else None)
    plan = own_plan(switches)
    report = the_process().report_on(plan).as_dict()
    answers = [] if assume else ask_all()
    report["processes"] = [_process(answer) for answer in answers]
    if not everything:
        report["gaps"] = [gap for gap in report["gaps"] if gap["status"] == "open"]
    if as_json:
        print_json(report)
    else:
        _print(report, answers, everything)
    return 1 if _has_fault(report) else 0


def _process(answer: Answer) -> dict[str, Any]:
    if answer.report is None:
        return {"pid": answer.pid, "problem": answer.problem}
    return {**answer.report["process"], **answer.report}


def _has_fault(report: dict[str, Any]) -> bool:
    own = [gap["state"] for gap in report["gaps"]]
    others = [gap["state"] for p in report["processes"] for gap in p.get("gaps", ())]
    return any(State(state).is_fault for state in [*own, *others])


def _print(report: dict[str, Any], answers: list[Answer], everything: bool) -> None:
    from .render import console, state_text, summary, table

    out = console()
    environment = report["environment"]
    out.print(summary(environment))
    if environment["distributions"].get("vllm", {}).get("file"):
        out.print(environment["distributions"]["vllm"]["file"], style="dim")
    out.print()
    gaps = table("GAP", "IN A NEW PROCESS", "WHY")
    for gap in report["gaps"]:
        gaps.add_row(gap["id"], state_text(gap["state"]), gap["reason"])
    out.print(gaps)
    out.print()
    _print_processes(out, answers)
    out.print(_next(report, everything), style="dim")


def _print_processes(out: Any, answers: list[Answer]) -> None:
    from .render import table, tally

    if not answers:
        out.print("No running process carries shims.\n")
        return
    running = table("PID", "ROLE", "PLAN", "STATES")
    for answer in answers:
        report = answer.report
        if report is None:
            running.add_row(str(answer.pid), "?", "?", answer.problem)
            continue
        states = [gap["state"] for gap in report["gaps"] if gap["status"] == "open"]
        role = report["process"]["role"]
        running.add_row(str(answer.pid), role, report["plan"], tally(states))
    out.print(running)
    for answer in answers:
        for gap in answer.report["gaps"] if answer.report else ():
            if State(gap["state"]).is_fault:
                out.print(
                    f"  {answer.pid}: {gap['id']} is {gap['state']}: {gap['reason']}",
                    style="red",
                )
    out.print()


def _next(report: dict[str, Any], everything: bool) -> str:
    """What one would want to do now."""
    faults = [gap["id"] for gap in report["gaps"] if State(gap["state"]).is_fault]
    if faults:
        return f"Next: shims show {faults[0]}"
    kept_out = any(gap["reason"].startswith("no NPU") for gap in report["gaps"])
    if kept_out:
        return "Next: ASCEND_SHIMS_DEVICE=sim shims status   (what an NPU would get)"
    if any(gap["state"] == State.PENDING for gap in report["gaps"]):
        return "Next: shims apply-check   (would it succeed here?)"
    return "Next: shims show GAP" if everything else "Next: shims status --all"
