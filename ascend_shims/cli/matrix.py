"""`shims matrix`: gaps x releases, and where each verdict changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..environment.versions import parse
from .upstream import index_options, run_of

__all__ = ["command"]

Rows = Mapping[str, Mapping[str, str | None]]

_LETTERS = {
    "identical": ("=", "dim"),
    "cosmetic": ("=", "dim"),
    "compatible": ("~", "green"),
    "fixed-upstream": ("F", "cyan"),
    "review": ("?", "yellow"),
    "broken": ("X", "bold red"),
}


@click.command("matrix")
@click.option("--from", "first", default="0.27.1", show_default=True, metavar="VERSION")
@click.option("--package", default="vllm", show_default=True)
@click.option("--pre", is_flag=True, help="Pre-releases too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@index_options
def command(
    first: str,
    package: str,
    pre: bool,
    as_json: bool,
    registry: Path | None,
    watch_files: tuple[Path, ...],
    **index: Any,
) -> int:
    """Gaps x releases: the verdict in each, and the first release at which it
    changes.
    """
    from concurrent.futures import ThreadPoolExecutor

    from ..upstream.run import distribution_of

    if parse(first) is None:
        raise click.BadParameter(
            f"--from {first!r} is no version; write it like 0.28.0"
        )
    run, _ = run_of(registry, watch_files, None, **index)
    relied = sorted({one.package for one in run.watched})
    if package not in relied:
        raise click.BadParameter(
            f"nothing is relied on in {package!r}; name one of {', '.join(relied)} "
            "with --package"
        )
    releases = run.releases(package, first, prereleases=pre)
    if not releases:
        raise click.BadParameter(f"{package} has no release from {first} on")
    name = distribution_of(package)
    # The network is what takes time: fetch side by side, judge one by one.
    with ThreadPoolExecutor(max_workers=6) as pool:
        list(pool.map(lambda r: run.prefetch(f"{name}=={r}", package), releases))
    checked = [run.check(f"{name}=={release}", package) for release in releases]
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
                "costs": {"bytes": stats.bytes, "requests": stats.requests},
            }
        )
    else:
        _print(rows, releases)
    return 0


def _print(rows: Rows, releases: list[str]) -> None:
    from rich.text import Text

    from .render import console, table

    out = console()
    made = table("GAP", *releases, "CHANGES AT")
    for gap, row in rows.items():
        cells = []
        for verdict in row.values():
            letter, style = _LETTERS.get(verdict or "", ("·", "dim"))
            cells.append(Text(letter, style=style))
        made.add_row(gap, *cells, _changes(row))
    out.print(made)
    out.print(
        "\n= same   ~ changed, contract intact   ? review   X broken   · not for it",
        style="dim",
    )


def _changes(row: Mapping[str, str | None]) -> str:
    """The first release of each run of verdicts after the first run."""
    changes, last = [], next(iter(row.values()), None)
    for release, verdict in row.items():
        if verdict != last and verdict is not None:
            changes.append(f"{release} {verdict}")
        last = verdict
    return ", ".join(changes)
