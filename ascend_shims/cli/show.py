"""`shims show GAP`: everything that registry and processes know of one gap."""

from __future__ import annotations

import difflib
import textwrap
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..processes.client import ask_all
from ..states import State
from .here import assumed, own_plan, own_switches, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from ..registry.model import Gap

__all__ = ["command"]


@click.command("show")
@click.argument("gap_id", metavar="GAP")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@click.option(
    "--assume",
    multiple=True,
    metavar="PACKAGE=VERSION",
    callback=assumed,
    help="Plan for that version; nothing needs to be installed.",
)
def command(gap_id: str, as_json: bool, assume: dict[str, str]) -> int:
    """Everything about one gap: why, where, when it goes, and where it stands."""
    from ..process import the_process

    plan = own_plan(own_switches(assume))
    ids = [gap.id for gap in plan.registry.gaps]
    if gap_id not in ids:
        near = difflib.get_close_matches(gap_id, ids, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(ids)}"
        raise click.BadParameter(f"no gap is called {gap_id!r}{hint}")
    report = the_process().report_on(plan)
    mine = next(g for g in report.as_dict()["gaps"] if g["id"] == gap_id)
    page = {
        "schema": 1,
        "registry": msgspec.to_builtins(plan.registry[gap_id]),
        "here": mine,
        "processes": _elsewhere(gap_id),
    }
    if as_json:
        print_json(page)
    else:
        _print(plan.registry[gap_id], mine, page["processes"])
    return 1 if State(mine["state"]).is_fault else 0


def _elsewhere(gap_id: str) -> list[dict[str, Any]]:
    return [
        {**answer.report["process"], **gap}
        for answer in ask_all()
        if answer.report is not None
        for gap in answer.report["gaps"]
        if gap["id"] == gap_id
    ]


def _print(gap: Gap, mine: dict[str, Any], processes: list[dict[str, Any]]) -> None:
    from .render import console, state_text

    out = console()
    out.print(f"[bold]{gap.id}[/bold]  {gap.title}")
    out.print(f"{gap.status} · {gap.kind}\n", style="dim")
    _section(out, "Why", gap.why)
    _section(out, "Goes when", gap.remove_when)
    out.print("[bold]In a new process here[/bold]")
    out.print("  ", state_text(mine["state"]), f"  {mine['reason']}\n", sep="")
    if mine["patches"]:
        out.print("[bold]Patches[/bold]")
        for patch, spelled in zip(mine["patches"], gap.patches, strict=True):
            _patch(out, patch, spelled)
        out.print()
    if processes:
        out.print("[bold]Running processes[/bold]")
        for one in processes:
            where = f"  {one['pid']}  {one['role']}  "
            out.print(where, state_text(one["state"]), f"  {one['reason']}", sep="")
        out.print()
    needs = [*(["a device"] if gap.needs.device else []), *gap.needs.gaps]
    _list(out, "Needs", needs)
    _list(out, "Downstream closes it in", list(gap.downstream))
    _list(out, "References", list(gap.references))
    out.print(f"Switch it off: ASCEND_SHIMS_DISABLE={gap.id}", style="dim")


def _section(out: Console, title: str, text: str) -> None:
    out.print(f"[bold]{title}[/bold]")
    width = min(out.width, 100)
    indent = "  "
    lines = textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)
    out.print("\n".join(lines) + "\n", markup=False)


def _list(out: Console, title: str, lines: list[str]) -> None:
    if not lines:
        return
    out.print(f"[bold]{title}[/bold]")
    for line in lines:
        out.print(f"  {line}")
    out.print()


def _patch(out: Console, patch: dict[str, Any], spelled: Any) -> None:
    from .render import state_text

    out.print(f"  {patch['target']}")
    scope = ", this binding only" if spelled.scope == "binding" else ""
    ranges = ", ".join(f"{p} {r}" for p, r in spelled.versions.items())
    gate = f" on {ranges}" if ranges else ""
    out.print(f"    {patch['kind']} with {patch['replacement']}{scope}{gate}  ", end="")
    out.print(state_text(patch["state"]))
    if len(spelled.candidates) > 1:
        out.print(f"    candidates: {', '.join(spelled.candidates)}", style="dim")
    for reliance in spelled.relies_on:
        out.print(f"    relies on {reliance.symbol} ({reliance.how})", style="dim")
