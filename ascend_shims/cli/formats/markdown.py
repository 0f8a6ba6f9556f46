"""For tickets and job summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .shared import serious, tally

if TYPE_CHECKING:
    from ...upstream.check import Checked

__all__ = ["text", "write"]


def text(checked: Checked, *, everything: bool) -> str:
    lines = [
        f"### {checked.release} against {checked.baseline}",
        "",
        tally(f.verdict.kind for f in checked.findings),
    ]
    shown = list(checked.findings) if everything else serious(checked)
    if shown:
        lines += ["", "| verdict | gap | what | now |", "|---|---|---|---|"]
    for one in shown:
        verdict = one.verdict
        place = verdict.moved_to or (str(verdict.new) if verdict.new else "gone")
        cells = (verdict.kind, one.watched.gap, verdict.sentence, f"`{place}`")
        row = " | ".join(cell.replace("|", "\\|") for cell in cells)
        lines.append(f"| {row} |")
    lines += [f"- not read: {problem}" for problem in checked.problems]
    lines += [f"- note: {note}" for note in checked.notes]
    return "\n".join(lines) + "\n"


def write(checked: Checked, *, everything: bool) -> None:
    click.echo(text(checked, everything=everything), nl=False)
