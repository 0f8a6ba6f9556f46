"""For a terminal: one block a finding, worst first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .shared import LEVELS, heading, tally

if TYPE_CHECKING:
    from ...upstream.check import Checked, Finding

__all__ = ["write"]

_STYLES = {
    "broken": "bold red",
    "review": "yellow",
    "fixed-upstream": "cyan",
    "compatible": "green",
}


def write(checked: Checked, *, everything: bool) -> None:
    from rich.markup import escape
    from rich.padding import Padding

    from ...upstream.check import ORDER
    from ...words.counting import counted
    from ..render import console
    from ..speech import ended

    out = console()
    out.print(f"{heading(checked)}\n")
    shown = [f for f in checked.findings if everything or f.verdict.kind in LEVELS]
    for one in sorted(shown, key=lambda f: ORDER.index(f.verdict.kind)):
        verdict = one.verdict
        style = _STYLES.get(verdict.kind, "dim")
        out.print(f"[{style}]{verdict.kind:<16}[/]{one.watched.gap}  ({verdict.how})")
        text = escape(ended(verdict.sentence))
        out.print(Padding(text, (0, 0, 0, 2), expand=False))
        for line in _places(one):
            out.print(Padding(escape(line), (0, 0, 0, 2), expand=False), style="dim")
        out.print()
    for problem in checked.problems:
        out.print(f"not read: {problem}", style="red", markup=False)
    for note in checked.notes:
        out.print(f"note: {note}", style="yellow", markup=False)
    out.print(tally(f.verdict.kind for f in checked.findings))
    costs = checked.costs
    requests = costs.get("requests")
    if requests:
        size, took = costs["bytes"] / 1e6, costs["seconds"]
        said = counted(
            requests,
            f"{size:.1f} MB in 1 request, {took:.1f} s",
            f"{size:.1f} MB in {requests} requests, {took:.1f} s",
        )
        out.print(said, style="dim")
    out.print(_next(checked), style="dim")


def _places(one: Finding) -> list[str]:
    verdict = one.verdict
    lines = []
    if verdict.moved_to:
        sure = f" ({verdict.confidence:.0%} sure)" if verdict.confidence else ""
        lines.append(f"now {verdict.moved_to}{sure}")
    elif verdict.new is not None:
        lines.append(f"at {verdict.new}")
    if verdict.old is not None and verdict.new is None:
        lines.append(f"was at {verdict.old}")
    return [*lines, *(f"see {place}" for place in verdict.evidence[:3])]


def _has_diff(one: Finding) -> bool:
    """Whether `shims diff` has something to compare: what neither release has shows
    nothing there, nor does a removal probe."""
    is_there = one.verdict.old is not None or one.verdict.new is not None
    return is_there and one.watched.how != "removal_probe"


def _next(checked: Checked) -> str:
    from ..upstream import again

    broken = [
        one.watched.gap
        for one in checked.findings
        if one.verdict.kind == "broken" and _has_diff(one)
    ]
    release = re.fullmatch(r"(\S+) (\d\S*)", checked.release)
    if broken and release:
        return f"Next: shims diff {broken[0]} --to {release[1]}=={release[2]}{again()}"
    return f"Next: shims matrix{again()}"
