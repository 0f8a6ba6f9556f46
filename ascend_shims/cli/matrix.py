"""`shims matrix`: gaps x releases, and where each verdict changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from ..environment.versions import parse
from ..upstream.collecting import rare_collections
from .upstream import check_package, index_options, run_of, search_option

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
        _print(rows, releases)
    return 0


def _print(rows: Rows, releases: list[str]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from .render import console, table

    out = console()
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
    changed = {gap: _changes(row) for gap, row in rows.items()}
    if any(changed.values()):
        out.print("\nVerdicts change at")
    for gap, said in changed.items():
        if said:
            out.print(Padding(Text(f"{gap:<{width}}  {said}"), (0, 0, 0, 2)))


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


def _changes(row: Mapping[str, str | None]) -> str:
    """The first release of each run of verdicts after the first run."""
    changes, last = [], next(iter(row.values()), None)
    for release, verdict in row.items():
        if verdict != last and verdict is not None:
            changes.append(f"{release} {verdict}")
        last = verdict
    return ", ".join(changes)
