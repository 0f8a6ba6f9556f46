"""`shims lock`: write the facts of baseline releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..words.counting import counted
from .speech import say
from .upstream import check_package, index_options, run_of

if TYPE_CHECKING:
    from ..upstream.lock import Baseline
    from ..upstream.sources import OpenedSource
    from ..upstream.watched import Watched

__all__ = ["command"]


@click.command("lock")
@click.argument("releases", metavar="SOURCE…", nargs=-1)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if it would change.")
@index_options
def command(
    releases: tuple[str, ...],
    check: bool,
    registry: Path | None,
    watch_files: tuple[Path, ...],
    **index: Any,
) -> int:
    """Write the facts of baseline releases to the lock beside the registry.

    Without SOURCE the baselines that the lock has are written anew. Lock the
    releases on which you have seen your patches work: drift compares with them.

    \b
    Examples:
      shims lock vllm==0.28.0 vllm==0.32.0 --registry .
      shims lock --check --registry .        is it up to date?
    """
    from ..upstream.baselines import distribution_of
    from ..upstream.keeping import keep
    from ..upstream.lock import Lock, make_baseline, save_lock
    from ..upstream.run import NoBaselineError, beside, package_of

    run, path = run_of(
        registry, watch_files, None, anew=bool(releases), alone=True, **index
    )
    if registry is None:
        _refuse_ours(path)
    target = beside(path)
    specs = list(releases) or [
        f"{distribution_of(package)}=={version}"
        for package, _, version in (n.partition("==") for n in run.lock.baselines)
    ]
    if not specs:
        raise NoBaselineError(
            "there is no lock yet; name a release, as in `shims lock vllm==0.32.0`"
        )
    baselines = dict(run.lock.baselines)
    is_missed = False
    for spec in specs:
        if "==" in spec or "@" in spec:
            check_package(package_of(spec), run.watched)
        source = run.sources.open(spec)
        if source.version is None:
            raise NoBaselineError(
                f"{source.label} does not say which release it is; lock a release, "
                "as in `shims lock vllm==0.32.0`"
            )
        package = next(iter(source.paths())).partition("/")[0]
        check_package(package, run.watched)
        paths = [p for p in source.paths() if p.startswith(f"{package}/")]
        files = counted(len(paths), "1 file", "{number} files")
        say(f"{source.label}: reading {files} …", err=True)
        source.prefetch(paths)
        watched = [one for one in run.watched if one.package == package]
        claimed = [one for one in watched if one.is_claimed(source.version)]
        if not claimed:
            ranges = " and ".join(sorted({one.said_ranges for one in watched}))
            raise NoBaselineError(
                f"no gap is for {source.label}, and nothing to be locked of it: they "
                f"are for {ranges}; name such a release"
            )
        facts = make_baseline(claimed, source)
        baselines[f"{package}=={source.version}"] = facts
        if not getattr(source, "is_far", False):
            # No index may ever have it, and what lies here may be changed.
            keep(run.sources.cache, facts.tree, source)
        is_missed |= _tell(source, facts, claimed)
    if check:
        same = baselines == run.lock.baselines
        say("up to date" if same else f"{target.name} is out of date")
        return 0 if same else 1
    save_lock(Lock(baselines), target)
    say(f"written: {target}", err=True)
    return 1 if is_missed else 0


def _refuse_ours(path: Path) -> None:
    """Who works elsewhere has a registry of his own, and means that."""
    from ..registry import packaged

    if path == packaged() and not Path.cwd().is_relative_to(path.resolve().parent):
        raise click.UsageError(
            "the lock of ascend-shims' own registry is written where it is developed; "
            "name yours with --registry FILE"
        )


def _tell(source: OpenedSource, facts: Baseline, claimed: list[Watched]) -> bool:
    """Say what was written down, and what there is nothing to write about; whether a
    gap is among that: what is only watched may well have gone."""
    from ..upstream.near import nearest_symbol
    from ..upstream.texts import Texts
    from ..upstream.tree import Tree

    is_missed = False
    count = len(facts.symbols)
    label = source.label
    told = counted(count, f"{label}: 1 symbol", f"{label}: {count} symbols")
    say(told, err=True)
    for one in claimed:
        names = [reliance.symbol for reliance in one.reliances()]
        if not names or not facts.symbols.keys().isdisjoint(names):
            continue
        near = nearest_symbol(Tree(Texts(source)), names[-1])
        hint = f"; did you mean {near}?" if near else ""
        missing = f"{source.label} has no {' or '.join(names)}"
        say(f"{missing}, which {one.gap} relies on{hint}", err=True, fg="yellow")
        is_missed |= one.role != "watch"
    return is_missed
