"""`shims diff GAP`: upstream's own change of what a gap relies on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .completion import gap_ids
from .named import GapName, gap_named
from .speech import ended, say
from .upstream import besides_gaps, index_options, registry_of, run_of

if TYPE_CHECKING:
    from ..registry import Registry
    from ..upstream.changes import Change
    from ..upstream.check import Checked, Finding
    from ..upstream.threeway import Hunk
    from ..upstream.watched import Watched

__all__ = ["command"]

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_STANDING = {
    "to-port": ("still has the old lines: port it", "yellow"),
    "ported": ("already has this", "green"),
    "by-hand": ("differs here: port it by hand", "magenta"),
}


@click.command("diff")
@click.argument("gap", metavar="GAP", type=GapName(), shell_complete=gap_ids)
@click.option("--from", "first", metavar="SOURCE", help="Default: the lock's baseline.")
@click.option(
    "--to", "last", metavar="SOURCE", default="vllm@latest", show_default=True
)
@click.option("--package", help="Which upstream it is, where SOURCE does not say.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@index_options
def command(
    gap: str,
    first: str | None,
    last: str,
    package: str | None,
    as_json: bool,
    registry: Path | None,
    watch_files: tuple[Path, ...],
    **index: Any,
) -> int:
    """Upstream's own change, between two releases, of what GAP relies on.

    Where the gap replaces or copies a body, each change comes with our lines at that
    place and whether it is still to be ported. Exit 1 if anything changed.

    \b
    Examples:
      shims diff kv-cache --to vllm==0.33.0
      shims diff cos-sin --from vllm==0.28.0 --to vllm==0.32.0
    """
    from ..upstream.changes import changes
    from ..upstream.run import package_of

    run, _ = run_of(registry, watch_files, first, **index)
    known, _ = registry_of(registry)
    mine = [one for one in run.watched if one.gap == gap]
    ids = {g.id for g in known.gaps}
    besides = {n: r for n, r in besides_gaps(run.watched).items() if n not in ids}
    gap_named(gap, sorted(ids | {w.gap for w in run.watched}), besides=besides)
    about = package or package_of(last)
    here = [one for one in mine if one.package == about]
    if not here:
        return _nothing(gap, known, mine, about, as_json)
    run.watched = here
    checked = run.check(last, about)
    found = changes(run.pairs(last, about), checked.findings)
    probes = [f for f in checked.findings if f.watched.how == "removal_probe"]
    if as_json:
        from .here import print_json

        print_json(_json(gap, checked, found, probes))
    else:
        _print(gap, known, checked, found, probes)
    return 1 if found else 0


def _nothing(
    gap: str, registry: Registry, mine: list[Watched], about: str, as_json: bool
) -> int:
    """The gap relies on nothing there."""
    others = sorted({one.package for one in mine})
    if others:
        raise click.BadParameter(
            f"{gap} relies on nothing in {about}, but on {' and '.join(others)}: "
            "name a release of that with --to"
        )
    why = registry[gap].unpatched or "it has no patches"
    said = " ".join(why.split())
    if as_json:
        from .here import print_json

        print_json({"schema": 1, "gap": gap, "changes": [], "unpatched": said})
    else:
        say(f"{gap} relies on nothing upstream: {said}")
    return 0


def _print(
    gap: str,
    registry: Registry,
    checked: Checked,
    found: list[Change],
    probes: list[Finding],
) -> None:
    for probe in probes:
        style = _probe_style(probe)
        say(ended(probe.verdict.sentence), fg=style)
    for change in found:
        _change(change)
    told = [change.finding for change in found]
    silent = [f for f in checked.findings if f not in probes and f not in told]
    gone = [f for f in silent if f.verdict.kind == "broken"]
    for finding in gone:
        say(ended(finding.verdict.sentence), fg="red")
    relied = len(checked.findings) - len(probes)
    if not relied and gap in registry:
        why = " ".join((registry[gap].unpatched or "It has no patches.").split())
        say(f"Nothing to compare, {gap} has no patches: {why}")
    elif not relied:
        say(f"{gap} relies on nothing in {checked.release}.")
    elif not found and not gone:
        say(
            f"Nothing that {gap} relies on differs between {checked.baseline} and "
            f"{checked.release}."
        )


def _probe_style(probe: Finding) -> str | None:
    kinds = {"fixed-upstream": "cyan", "review": "yellow", "broken": "red"}
    return kinds.get(probe.verdict.kind)


def _change(change: Change) -> None:
    verdict = change.finding.verdict
    say()
    say(f"{change.finding.watched.candidates[0]}  ({verdict.how})", bold=True)
    say(f"{verdict.kind}: {ended(verdict.sentence)}")
    if verdict.moved_to:
        say(f"now {verdict.moved_to}")
    if change.ours is None or not change.hunks:
        for line in change.diff:
            click.secho(line, fg=_COLOURS.get(line[:1]))
        return
    click.secho(f"--- {change.old_place}", fg="red")
    click.secho(f"+++ {change.new_place}", fg="green")
    say(f"=== ours: {change.ours.path}:{change.ours.line}", fg="cyan")
    for number, hunk in enumerate(change.hunks, start=1):
        _hunk(number, len(change.hunks), hunk, change)


def _hunk(number: int, count: int, hunk: Hunk, change: Change) -> None:
    assert change.ours is not None
    words, colour = _STANDING[hunk.standing]
    say()
    say(f"@@ {number} of {count}: ours {words} @@", fg=colour)
    for line in hunk.old:
        click.secho(f"-{line}", fg="red")
    for line in hunk.new:
        click.secho(f"+{line}", fg="green")
    for offset, line in enumerate(hunk.ours):
        where = change.ours.line + hunk.line + offset
        click.secho(f"={where:5} {line}", fg="cyan")


def _json(
    gap: str, checked: Checked, found: list[Change], probes: list[Finding]
) -> dict[str, Any]:
    return {
        "schema": 1,
        "gap": gap,
        "from": checked.baseline,
        "to": checked.release,
        "probe": [
            {"verdict": p.verdict.kind, "sentence": p.verdict.sentence} for p in probes
        ],
        "changes": [_change_json(one) for one in found],
    }


def _change_json(change: Change) -> dict[str, Any]:
    verdict = change.finding.verdict
    ours = change.ours
    return {
        "symbol": verdict.symbol,
        "how": verdict.how,
        "verdict": verdict.kind,
        "breakage": verdict.breakage,
        "sentence": verdict.sentence,
        "moved_to": verdict.moved_to,
        "old": {"place": change.old_place, "text": change.old},
        "new": {"place": change.new_place, "text": change.new},
        "diff": list(change.diff),
        "ours": ours
        and {
            "name": ours.name,
            "path": ours.path,
            "line": ours.line,
            "text": ours.text,
        },
        "hunks": [
            {
                "standing": hunk.standing,
                "old": list(hunk.old),
                "new": list(hunk.new),
                "ours": list(hunk.ours),
                "line": ours.line + hunk.line if ours and hunk.ours else None,
            }
            for hunk in change.hunks
        ],
    }
