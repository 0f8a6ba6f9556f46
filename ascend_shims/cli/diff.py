"""`shims diff GAP`: upstream's own change of what a gap relies on."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .upstream import index_options, run_of

if TYPE_CHECKING:
    from ..upstream.tree import Tree
    from ..upstream.watched import Watched

__all__ = ["command"]

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@click.command("diff")
@click.argument("gap", metavar="GAP")
@click.option("--from", "first", metavar="SOURCE", help="Default: the lock's baseline.")
@click.option(
    "--to", "last", metavar="SOURCE", default="vllm@latest", show_default=True
)
@index_options
def command(
    gap: str,
    first: str | None,
    last: str,
    registry: Path | None,
    watch_files: tuple[Path, ...],
    **index: Any,
) -> int:
    """Upstream's own change, between two releases, of what GAP relies on."""
    from ..upstream.run import package_of

    run, _ = run_of(registry, watch_files, first, **index)
    mine = [one for one in run.watched if one.gap == gap]
    if not mine:
        known = sorted({one.gap for one in run.watched})
        near = difflib.get_close_matches(gap, known, n=1)
        hint = (
            f"; did you mean {near[0]}?" if near else f"; there are {', '.join(known)}"
        )
        raise click.BadParameter(f"no gap called {gap!r} relies on anything{hint}")
    run.watched = mine
    pairs = run.pairs(last, package_of(last))
    changed = [_show(one, old, new) for one, old, new in pairs]
    if not any(changed):
        click.echo(f"Nothing that {gap} relies on differs in {last}.")
    return 1 if any(changed) else 0


def _show(one: Watched, old: Tree, new: Tree) -> bool:
    from ..upstream.facts.symbol import find

    before = next((s for c in one.candidates if (s := find(old, c))), None)
    after = next((s for c in one.candidates if (s := find(new, c))), None)
    texts = [s.source.decode(errors="replace") if s else "" for s in (before, after)]
    if texts[0] == texts[1]:
        return False
    was, now = (
        f"{tree.label}: {s.path}:{s.line}" if s else f"{tree.label}: not there"
        for tree, s in ((old, before), (new, after))
    )
    click.secho(f"{one.candidates[0]}  ({one.how})", bold=True)
    lines = difflib.unified_diff(
        texts[0].splitlines(), texts[1].splitlines(), was, now, lineterm=""
    )
    for line in lines:
        click.secho(line, fg=_COLOURS.get(line[:1]))
    click.echo()
    return True
