"""For tickets and job summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .shared import heading, serious, tally

if TYPE_CHECKING:
    from ...upstream.check import Checked
    from ...upstream.verdict import Verdict

__all__ = ["text", "write"]

_LOST = ("removed", "attribute-removed")


def text(checked: Checked, *, everything: bool) -> str:
    lines = [
        f"### {heading(checked)}",
        "",
        tally(f.verdict.kind for f in checked.findings),
    ]
    shown = list(checked.findings) if everything else serious(checked)
    if shown:
        lines += ["", "| verdict | gap | what | now |", "|---|---|---|---|"]
    for one in shown:
        verdict = one.verdict
        cells = (verdict.kind, one.watched.gap, verdict.sentence, _now(verdict))
        row = " | ".join(cell.replace("|", "\\|") for cell in cells)
        lines.append(f"| {row} |")
    lines += [f"- not read: {problem}" for problem in checked.problems]
    lines += [f"- note: {note}" for note in checked.notes]
    return "\n".join(lines) + "\n"


def _now(verdict: Verdict) -> str:
    """Where it is in the release; nothing where a verdict is about no place."""
    if verdict.moved_to or verdict.new is not None:
        return f"`{verdict.moved_to or verdict.new}`"
    if verdict.old is not None:
        return "gone"
    is_lost = verdict.breakage in _LOST and verdict.how != "removal_probe"
    return "nowhere" if is_lost else ""


def write(checked: Checked, *, everything: bool) -> None:
    click.echo(text(checked, everything=everything), nl=False)
