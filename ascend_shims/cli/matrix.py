"""`shims matrix`: gaps x releases, and where each verdict changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ..environment.versions import parse
from ..upstream.collecting import rare_collections
from ..words.counting import counted
from .upstream import (
    again,
    besides_gaps,
    check_package,
    index_options,
    run_of,
    search_option,
)

__all__ = ["command"]

Rows = Mapping[str, Mapping[str, str | None]]

_LETTERS = {
    "identical": ("=", "dim"),
    "cosmetic": ("≈", "dim"),
    "compatible": ("~", "green"),
    "fixed-upstream": ("F", "cyan"),
    "review": ("?", "yellow"),
    "broken": ("X", "bold red"),
}

_LEGEND = (
    "\n= same   ≈ only written otherwise   ~ changed, contract intact   ? review\n"
    "X broken   F fixed upstream   · not for it, or nothing relied on"
)


@click.command("matrix")
@click.option("--from", "first", default="0.27.1", show_default=True, metavar="VERSION")
@click.option("--package", default="vllm", show_default=True)
@click.option("--pre", is_flag=True, help="Pre-releases too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@search_option
@index_options
@rare_collections()
def command(
    first: str,
    package: str,
    pre: bool,
    as_json: bool,
    search_all: bool,
    registry: Path | None,
    watch_files: tuple[Path, ...],
    **index: Any,
) -> int:
    """Gaps x releases: the verdict in each, and the first release at which it
    changes.

    \b
    Examples:
      shims matrix --from 0.31.0
      shims matrix --package torch_npu --from 2.13.0
    """
    if parse(first) is None:
        raise click.BadParameter(
            f"--from {first!r} is no version; write it like 0.28.0"
        )
    from ..upstream.baselines import distribution_of

    run, _ = run_of(registry, watch_files, None, **index)
    run.search_all = search_all
    check_package(package, run.watched)
    releases = run.versions(package, first, prereleases=pre)
    if not releases:
        raise click.BadParameter(
            f"{package} has no release from {first} on; name an older one with --from"
        )
    name = distribution_of(package)
    checked = run.check_all([f"{name}=={release}" for release in releases], package)
    gaps = list(dict.fromkeys(one.gap for one in run.watched if one.package == package))
    rows = {
        gap: {r: c.worst_of(gap) for r, c in zip(releases, checked, strict=True)}
        for gap in gaps
    }
    if as_json:
        from .here import print_json

        stats = run.sources.stats
        print_json(
            {
                "schema": 1,
                "package": package,
                "releases": releases,
                "gaps": rows,
                "costs": {
                    "bytes": stats.bytes,
                    "requests": stats.requests,
                    "cached": stats.cached,
                    "seconds": round(sum(c.costs["seconds"] for c in checked), 3),
                },
            }
        )
    else:
        # With more than one, where gaps differ in the releases that they claim.
        labels = [one for c in checked for one in c.baseline.split(" and ")]
        baselines = [one for one in dict.fromkeys(labels) if one != "nothing"]
        roles = besides_gaps(run.watched)
        companions = [gap for gap in gaps if roles.get(gap) == "companion"]
        _print(rows, releases, baselines, companions)
        _print_next(rows, releases, package)
    return 0


def _print(
    rows: Rows, releases: list[str], baselines: Sequence[str], companions: Sequence[str]
) -> None:
    from rich.text import Text

    from .render import console, table

    out = console()
    if baselines:
        out.print(
            f"Compared with what is locked: {', '.join(baselines)}\n", style="dim"
        )
    width = max(map(len, rows), default=0)
    # Ten releases fit 80 columns only without what they have in common.
    alike = all(one.startswith("0.") for one in releases)
    fits = len(list(_fitting(releases, "", out.width - width))) == 1
    prefix = "0." if alike and not fits else ""
    for some in _fitting(releases, prefix, out.width - width):
        made = table("GAP", *(one.removeprefix(prefix) for one in some))
        made.padding = (0, 1, 0, 0)
        for gap, row in rows.items():
            cells = []
            for release in some:
                letter, style = _LETTERS.get(row[release] or "", ("·", "dim"))
                cells.append(Text(letter, style=style))
            made.add_row(f"{gap:<{width}}", *cells)
        out.print(made)
    out.print(_LEGEND, style="dim")
    if companions:
        names = ", ".join(companions)
        said = counted(
            len(companions),
            f"1 of them is the companion of a gap: {names}",
            f"{{number}} of them are companions of gaps: {names}",
        )
        out.print(said, style="dim")
    changed = {gap: _changes(row) for gap, row in rows.items()}
    if any(changed.values()):
        out.print("\nVerdicts change at")
    for gap, some_changes in changed.items():
        if some_changes:
            head = f"  {gap:<{width}}  "
            for line in _filled(some_changes, out.width - len(head)):
                out.print(Text(head + line), soft_wrap=True)
                head = " " * len(head)


def _print_next(rows: Rows, releases: list[str], package: str) -> None:
    """What tells more of the newest release at which something is to be looked at."""
    from ..upstream.baselines import distribution_of
    from .render import console

    name = distribution_of(package)
    for release in reversed(releases):
        found = {row[release] for row in rows.values()}
        if found & {"broken", "review"}:
            why = "what is broken, and how" if "broken" in found else "what to review"
            call = f"shims drift --against {name}=={release}{again()}"
            break
    else:
        why = "all of it as one page"
        about = "" if package == "vllm" else f" --package {package}"
        call = f"shims report --html report.html{about}{again()}"
    told = f"\nNext: {call}   ({why})"
    console().print(told, style="dim", soft_wrap=True, markup=False)


def _filled(changes: Sequence[str], room: int) -> Iterator[str]:
    """The changes in lines: a release and its verdict stay side by side."""
    line = ""
    for one in changes:
        longer = f"{line}, {one}" if line else one
        if line and len(longer) + 1 > room:
            yield f"{line},"
            longer = one
        line = longer
    yield line


def _fitting(releases: list[str], prefix: str, room: int) -> Iterator[list[str]]:
    """The releases in as many tables as the terminal needs, one beneath the other."""
    some: list[str] = []
    left = room
    for release in releases:
        # Each column has a space before it, and the last one another behind.
        taken = len(release.removeprefix(prefix)) + 1
        if some and taken >= left:
            yield some
            some, left = [], room
        some.append(release)
        left -= taken
    yield some


def _changes(row: Mapping[str, str | None]) -> list[str]:
    """The first release of each run of verdicts after the first run."""
    changes, last = [], next(iter(row.values()), None)
    for release, verdict in row.items():
        if verdict != last and verdict is not None:
            changes.append(f"{release} {verdict}")
        last = verdict
    return changes
