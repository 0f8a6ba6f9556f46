"""`shims report`: everything about gaps and releases on one page to look at."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from ..environment.versions import parse
from ..files import real, write_whole
from ..upstream.collecting import rare_collections
from ..words.counting import counted
from .speech import say
from .upstream import check_package, index_options, registry_of, run_of, search_option

if TYPE_CHECKING:
    from ..page.model import Page

__all__ = ["command"]


def _writable(
    _context: click.Context, _parameter: click.Parameter, given: Path | None
) -> Path | None:
    """A click callback: what cannot be written is said before the long work."""
    if given is None:
        return None
    # Of a link its target is replaced, as a program that opens it would do. One that
    # leads back to itself is no file.
    path = real(given)
    if os.path.lexists(path) and not path.is_file():
        raise click.BadParameter(f"{given} is no file; name one, like report.html")
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}; make it first")
    if not os.access(path.parent, os.W_OK):
        raise click.BadParameter(
            f"{path.parent} may not be written to; name a file somewhere else"
        )
    return path


@click.command("report")
@click.option(
    "--html",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=_writable,
    help="Write the page there; a file that is there is replaced.",
)
@click.option("--from", "first", default="0.27.1", show_default=True, metavar="VERSION")
@click.option("--package", default="vllm", show_default=True)
@click.option("--pre", is_flag=True, help="Pre-releases too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, schema 1.")
@search_option
@index_options
@rare_collections()
def command(
    file: Path | None,
    first: str,
    package: str,
    pre: bool,
    as_json: bool,
    search_all: bool,
    registry: Path | None,
    watch_files: tuple[Path, ...],
    **index: Any,
) -> int:
    """One self-contained page to look at, send and print: gaps x releases, all about
    each gap with upstream's diffs, what changed when, and the running processes.

    \b
    Example:
      shims report --html report.html
    """
    if file is None and not as_json:
        raise click.UsageError("say where the page goes: shims report --html FILE")
    if parse(first) is None:
        raise click.BadParameter(
            f"--from {first!r} is no version; write it like 0.28.0"
        )
    page = _page(first, package, pre, search_all, registry, watch_files, index)
    if file is not None:
        from ..page.fill import filled

        text = filled(page)
        write_whole(file, text)
    if as_json:
        import msgspec

        from .here import print_json

        print_json(msgspec.to_builtins(page))
    elif file is not None:
        say(_said(file, page, len(text.encode())))
    return 0


def _page(
    first: str,
    package: str,
    pre: bool,
    search_all: bool,
    registry: Path | None,
    watch_files: tuple[Path, ...],
    index: dict[str, Any],
) -> Page:
    from ..page.gather import Asked, gather
    from ..processes.client import ask_all
    from ..upstream.baselines import distribution_of
    from .render import summary

    run, path = run_of(registry, watch_files, None, **index)
    run.search_all = search_all
    check_package(package, run.watched)
    releases = run.versions(package, first, prereleases=pre)
    if not releases:
        raise click.BadParameter(
            f"{package} has no release from {first} on; name an older one with --from"
        )
    name = distribution_of(package)
    report, notes = _report(path if registry else None)
    asked = Asked(
        registry=registry_of(registry)[0],
        package=package,
        releases=[(one, f"{name}=={one}") for one in releases],
        report=report,
        answers=ask_all(),
        where=summary(report["environment"]) if report else "",
        toolkit=__version__,
        made=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        notes=notes,
    )
    return gather(run, asked)


def _report(registry: Path | None) -> tuple[dict[str, Any] | None, list[str]]:
    """Where the gaps stand in a new process here; notes say why they do not.

    A registry that may be read but not run has verdicts all the same.
    """
    from ..plan import NotAllowedError
    from ..process import the_process
    from .here import own_plan, own_switches

    try:
        plan = own_plan(own_switches(registry=registry))
    except NotAllowedError as error:
        return None, [f"No states for a new process here: {error}"]
    return the_process().report_on(plan).as_dict(), []


def _said(file: Path, page: Page, size: int) -> str:
    sorts = Counter(one.sort for one in page.entries)
    rows = [counted(sorts["gap"], "1 gap", "{number} gaps")]
    if sorts["companion"]:
        rows.append(counted(sorts["companion"], "1 companion", "{number} companions"))
    if sorts["watch"]:
        rows.append(f"{sorts['watch']} watched")
    *first, last = rows
    gaps = " and ".join([*filter(None, [", ".join(first)]), last])
    releases = counted(len(page.releases), "1 release", "{number} releases")
    found = [one.cells[-1].verdict for one in page.entries]
    newest = page.releases[-1].version
    worst = ", ".join(
        f"{found.count(kind)} {kind}" for kind in ("broken", "review") if kind in found
    )
    return (
        f"{file}: {gaps} x {releases}, {size / 1e6:.1f} MB; "
        f"at {newest} {worst or 'nothing is broken or to review'}"
    )
