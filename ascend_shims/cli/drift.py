"""`shims drift`: which gaps an upstream release breaks, and how."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..upstream.collecting import rare_collections
from .completion import gap_ids
from .named import OneOf, gaps_named
from .upstream import (
    FORMATS,
    LEVELS,
    besides_gaps,
    check_package,
    index_options,
    installed_source,
    run_of,
    search_option,
)

if TYPE_CHECKING:
    from ..upstream.watched import Watched

__all__ = ["command"]


@click.command("drift", context_settings={"allow_extra_args": True})
@click.option(
    "--against",
    metavar="SOURCE",
    default="installed",
    show_default=True,
    help="vllm==0.33.0, vllm@latest, a wheel, a directory, git:PATH@REV.",
)
@click.option("--baseline", metavar="SOURCE", help="Compare with this, not the lock's.")
@click.option("--package", help="Which upstream it is, where SOURCE does not say.")
@click.option("--format", "form", type=OneOf(FORMATS), help="Default: table.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--fail-on",
    type=OneOf(list(LEVELS)),
    default="broken",
    show_default=True,
    help="Verdicts that make the exit code 1.",
)
@click.option(
    "--gap",
    "gaps",
    metavar="GAP",
    multiple=True,
    shell_complete=gap_ids,
    help="Only these gaps.",
)
@click.option("--all", "everything", is_flag=True, help="Harmless verdicts too.")
@search_option
@index_options
@rare_collections()
def command(
    against: str,
    baseline: str | None,
    package: str | None,
    form: str | None,
    as_json: bool,
    fail_on: str,
    gaps: tuple[str, ...],
    everything: bool,
    search_all: bool,
    registry: Path | None,
    watch_files: tuple[Path, ...],
    **index: Any,
) -> int:
    """Which gaps an upstream release breaks, how, and where the thing went.

    Reads source text alone, a few modules of it: nothing is imported, and of a
    released wheel only what is needed is fetched.

    \b
    Examples:
      shims drift --against vllm@latest
      shims drift --against git:vllm@main --fail-on review     a clone's revision
      shims drift --against vllm==0.33.0 --gap kv-cache --all
    """
    from .formats import render

    for stray in click.get_current_context().args:
        raise click.UsageError(f"name a release by --against {stray}")
    if as_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} are two: name one of them")
    if baseline is not None and not baseline.strip():
        raise click.BadParameter("--baseline '' names no source; leave it out")
    run, _ = run_of(registry, watch_files, baseline, ahead=against, **index)
    run.search_all = search_all
    from ..upstream.run import named_package, package_of

    name = (package or package_of(against)).replace("-", "_").lower()
    about = named_package(against)
    if about != name and any(one.package == about for one in run.watched):
        raise click.UsageError(
            f"{against} is a release of {about}, and not of {name}: leave out "
            "--package, or name another release"
        )
    check_package(name, run.watched)
    if gaps:
        _refuse_elsewhere(gaps, run.watched, name)
        known = sorted({one.gap for one in run.watched if one.package == name})
        chosen = gaps_named(
            gaps,
            known,
            unknown=_relies_on_nothing,
            besides=besides_gaps(run.watched),
        )
        run.watched = [one for one in run.watched if one.gap in chosen]
    checked = run.check(installed_source(against, name), name)
    run.save()
    render("json" if as_json else form or "table", checked, everything=everything)
    kinds = {finding.verdict.kind for finding in checked.findings}
    return 1 if kinds & set(LEVELS[fail_on]) else 0


def _refuse_elsewhere(
    gaps: Iterable[str], watched: Iterable[Watched], package: str
) -> None:
    """Refuse what relies on other packages alone."""
    relied: dict[str, set[str]] = {}
    for one in watched:
        relied.setdefault(one.gap, set()).add(one.package)
    for gap in gaps:
        others = relied.get(gap, {package})
        if package not in others:
            raise click.BadParameter(
                f"{gap} relies on nothing in {package}, but on "
                f"{' and '.join(sorted(others))}: name a release of that with "
                "--against",
                param_hint="'--gap'",
            )


def _relies_on_nothing(name: str) -> str:
    return f"no gap called {name!r} relies on anything"
