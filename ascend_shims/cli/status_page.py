"""How `shims status` looks: in a terminal, in a pipe, and in a ticket."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from rich.text import Text

from ..states import State
from ..words.counting import counted
from .render import console, state_text, summary, table, tally

__all__ = ["as_markdown", "show"]

_NOBODY = "No running process carries shims."
_OTHER = "other registry"
_OTHERS = (
    "other registry: these gaps are not those of the registry that this command reads; "
    "--registry FILE reads another"
)


def show(
    report: dict[str, Any],
    next_step: str,
    others: Container[int] = (),
    closed: int = 0,
) -> None:
    """Print a report.

    Args:
        next_step: what one would want to do now.
        others: processes that carry the gaps of another registry.
        closed: gaps that are patched here and not in the report.
    """
    out = console()
    environment = report["environment"]
    out.print(summary(environment))
    if environment["distributions"].get("vllm", {}).get("file"):
        out.print(environment["distributions"]["vllm"]["file"], style="dim")
    out.print()
    if report["gaps"]:
        gaps = table("GAP", "IN A NEW PROCESS", "WHY")
        for gap in report["gaps"]:
            gaps.add_row(gap["id"], state_text(gap["state"]), Text(gap["reason"]))
        out.print(gaps)
    else:
        out.print("No such gap in a new process.")
    if closed:
        said = counted(
            closed,
            "1 gap that upstream has closed is patched here, too: --all shows it.",
            "{number} gaps that upstream has closed are patched here, too: --all shows "
            "them.",
        )
        out.print(f"  {said}", style="dim")
    out.print()
    _show_registries(out, report.get("registries", []))
    _show_processes(out, report["processes"], others)
    out.print(next_step, style="dim")


def _show_registries(out: Any, registries: list[dict[str, Any]]) -> None:
    if not registries:
        return
    rows = table("REGISTRY OF", "GAPS", "BROUGHT BY")
    for one in registries:
        rows.add_row(*map(Text, _registry(one)))
    out.print(rows)
    for one in registries:
        if one["problem"]:
            said = f"  {one['namespace']} is left out: {one['problem']}"
            out.print(Text(said, "red"))
    out.print()


def _registry(one: dict[str, Any]) -> tuple[str, str, str]:
    by = ", ".join(filter(None, (one["distribution"], one["path"])))
    return one["namespace"], str(one["gaps"]), by or "nobody"


def _show_processes(
    out: Any, processes: list[dict[str, Any]], others: Container[int]
) -> None:
    if not processes:
        out.print(f"{_NOBODY}\n")
        return
    running = table("PID", "ROLE", "PLAN", "STATES")
    for one in processes:
        running.add_row(*map(Text, _row(one, others)))
    out.print(running)
    if any(one["pid"] in others for one in processes):
        out.print(f"  {_OTHERS}", style="dim")
    for line in _faults(processes):
        out.print(Text(f"  {line}", "red"))
    out.print()


def _row(
    process: dict[str, Any], others: Container[int] = ()
) -> tuple[str, str, str, str]:
    pid = str(process["pid"])
    if "gaps" not in process:
        return pid, "?", "?", process["problem"]
    states = [gap["state"] for gap in process["gaps"] if gap["status"] == "open"]
    # Closed ones where nothing else is asked for; none where it is in other states
    # than those, as a process is that has just begun.
    states = states or [gap["state"] for gap in process["gaps"]]
    told = tally(states) or "none of these"
    if process["pid"] in others:
        told += f" · {_OTHER}"
    return pid, process["role"], process["plan"], told


def _faults(processes: list[dict[str, Any]]) -> Iterator[str]:
    for one in processes:
        for gap in one.get("gaps", ()):
            if State(gap["state"]).is_fault:
                yield f"{one['pid']}: {gap['id']} is {gap['state']}: {gap['reason']}"


def as_markdown(report: dict[str, Any], others: Container[int] = ()) -> str:
    """The same for a ticket, with what tells one environment from another."""
    lines = [
        f"### shims status: {summary(report['environment'])}",
        "",
        *_rows(
            ("gap", "in a new process", "why"),
            [(f"`{g['id']}`", g["state"], g["reason"]) for g in report["gaps"]],
        ),
        "",
    ]
    registries = report.get("registries", [])
    if registries:
        brought = [_registry(one) for one in registries]
        left_out = [
            f"- {one['namespace']} is left out: {one['problem']}"
            for one in registries
            if one["problem"]
        ]
        lines += [*_rows(("registry of", "gaps", "brought by"), brought), ""]
        lines += [*left_out, ""] if left_out else []
    if report["processes"]:
        rows = [_row(one, others) for one in report["processes"]]
        lines += _rows(("pid", "role", "plan", "states"), rows)
        if any(one["pid"] in others for one in report["processes"]):
            lines += ["", _OTHERS]
        faults = [f"- {line}" for line in _faults(report["processes"])]
        lines += ["", *faults] if faults else []
    else:
        lines.append(_NOBODY)
    return "\n".join(lines) + "\n"


def _rows(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    cells = [head, ("---",) * len(head), *rows]
    return [f"| {' | '.join(_cell(c) for c in row)} |" for row in cells]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
