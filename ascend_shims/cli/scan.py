"""`shims scan`: every patch and private dependence in somebody's code."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..upstream.collecting import rare_collections
from .speech import say
from .upstream import (
    FORMATS,
    LEVELS,
    again,
    installed_source,
    open_sources,
    search_option,
    source_options,
)

if TYPE_CHECKING:
    from ..scan.found import Scanned
    from ..scan.releases import Compared
    from ..upstream.fetching import Releases

from .named import OneOf

__all__ = ["command"]


@click.command("scan")
@click.argument(
    "paths",
    metavar="PATH…",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
)
@click.option(
    "--upstream",
    "upstreams",
    metavar="PACKAGE",
    multiple=True,
    help="Only what changes or relies on this package; repeatable.",
)
@click.option(
    "--against",
    metavar="SOURCE",
    help="vllm==0.33.0, vllm@latest, a wheel, a directory, git:PATH@REV; by default "
    "what is installed here.",
)
@click.option("--from", "first", metavar="VERSION", help="Every release from this on…")
@click.option("--to", "last", metavar="VERSION", help="…and up to this one.")
@click.option("--baseline", metavar="SOURCE", help="Compare with this release.")
@click.option(
    "--registry-out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a first registry from what is found.",
)
@click.option("--force", is_flag=True, help="Let it take the place of a file.")
@click.option("--format", "form", type=OneOf(FORMATS), default="table")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--fail-on",
    type=OneOf(list(LEVELS)),
    default="broken",
    show_default=True,
    help="Verdicts that make the exit code 1; questions count as review.",
)
@click.option("--all", "everything", is_flag=True, help="What is harmless too.")
@click.option("--tests", is_flag=True, help="Files of tests too.")
@search_option
@source_options
@rare_collections()
def command(
    paths: tuple[Path, ...],
    upstreams: tuple[str, ...],
    against: str | None,
    first: str | None,
    last: str | None,
    baseline: str | None,
    registry_out: Path | None,
    force: bool,
    form: str,
    as_json: bool,
    fail_on: str,
    everything: bool,
    tests: bool,
    search_all: bool,
    **index: Any,
) -> int:
    """Every patch and private dependence in the code beneath PATH, and what a release
    of upstream does to each.

    The code is read as text, and so is upstream: nothing is imported.

    \b
    Examples:
      shims scan my_plugin
      shims scan my_plugin --against vllm==0.33.0    what it breaks
      shims scan my_plugin --registry-out gaps.yaml  a first registry
    """
    from ..scan.questions import ask
    from ..scan.scanning import scan
    from .scanned import Shown, show

    if against is not None and (first or last):
        raise click.BadParameter(
            "--against names one release, --from and --to several: leave out either"
        )
    if registry_out is not None and not force:
        _refuse_to_overwrite(registry_out)
    # Before there are threads: it may start processes.
    scanned = scan(paths, upstreams, tests=tests)
    compared = None
    named = against is not None or first is not None or last is not None
    if named or _is_installed(against):
        compared = _compared(scanned, against, first, last, baseline, search_all, index)
        scanned = compared.scanned
    elif baseline is not None:
        raise click.BadParameter(
            "--baseline is compared with a release: name one with --against"
        )
    local = compared is not None and not named
    questions = ask(scanned, compared, upstream=local or search_all)
    if registry_out is not None:
        _write(registry_out, scanned, first, last)
        say(_next(registry_out, compared), err=True)
    given = [
        *_options("--upstream", *upstreams),
        *_options("--against", against),
        *_options("--from", first),
        *_options("--to", last),
        *_options("--baseline", baseline),
        *(["--tests"] if tests else []),
        *(["--search-all"] if search_all else []),
    ]
    call = f"shims scan {shlex.join([*map(str, paths), *given])}{again()}"
    shown = Shown(
        scanned,
        compared if named else None,
        questions,
        call,
        compared,
        tuple(_registries(paths)),
    )
    show("json" if as_json else form, shown, everything=everything)
    return 1 if shown.kinds & set(LEVELS[fail_on]) else 0


def _registries(paths: Sequence[Path]) -> Iterator[Path]:
    """Those within the folders that are scanned, named as these were."""
    from ..registry.discovery import DiscoveryError, in_folder

    for path in paths:
        folder = path.resolve()
        if not folder.is_dir():
            continue
        try:
            found = in_folder(folder)
        except DiscoveryError:
            # There is none, or it is not told which: scan needs none.
            continue
        # It is looked for upwards, too.
        if found.is_relative_to(folder):
            yield path / found.relative_to(folder)


def _options(name: str, *values: str | None) -> list[str]:
    return [word for value in values if value is not None for word in (name, value)]


def _is_installed(against: str | None) -> bool:
    from ..environment.modules import find_module

    return against is None and find_module("vllm") is not None


def _compared(
    scanned: Scanned,
    against: str | None,
    first: str | None,
    last: str | None,
    baseline: str | None,
    search_all: bool,
    index: dict[str, Any],
) -> Compared:
    from ..scan.releases import compare
    from ..upstream.fetching import Releases
    from ..upstream.run import package_of

    releases = Releases(open_sources(**index))
    if first or last:
        package = package_of(baseline) if baseline else "vllm"
        specs = _range(releases, package, first, last)
        chosen = baseline or specs[0]
    else:
        package = package_of(against) if against else "vllm"
        specs = [installed_source(against or "installed", package)]
        older = _before(releases, specs[0], package) if against else None
        chosen = baseline or older or specs[0]
    # What is installed, unasked, only tells what there is.
    named = against is not None or first is not None
    return compare(
        scanned, releases, specs, chosen, package, search_all=search_all, judge=named
    )


def _range(
    releases: Releases, package: str, first: str | None, last: str | None
) -> list[str]:
    from ..environment.versions import parse
    from ..upstream.baselines import distribution_of

    ends = [None if text is None else parse(text) for text in (first, last)]
    for text, end in zip((first, last), ends, strict=True):
        if text is not None and end is None:
            raise click.BadParameter(f"{text!r} is no version; write it like 0.28.0")
    low, high = ends
    name = distribution_of(package)
    found = [
        raw
        for raw in releases.sources.releases(name)
        if (version := parse(raw)) is not None
        and not version.is_prerelease
        and (low is None or version >= low)
        and (high is None or version <= high)
    ]
    if not found:
        raise click.BadParameter(
            f"{package} has no release from {first or 'its first'} to {last or 'now'}; "
            "name an older one with --from, or a newer one with --to"
        )
    if low is None:
        raise click.BadParameter("--to needs --from, the oldest release to compare")
    return [f"{name}=={raw}" for raw in found]


def _before(releases: Releases, spec: str, package: str) -> str | None:
    """The newest release that is older, as the index has them."""
    from ..environment.versions import parse
    from ..upstream.baselines import distribution_of
    from ..upstream.sources.errors import SourceUnavailable

    version = parse(releases[spec].version)
    if version is None:
        return None
    name = distribution_of(package)
    try:
        every: Sequence[str] = releases.sources.releases(name)
    except SourceUnavailable:
        # Without an index it is compared with itself: what is there, what is not.
        return None
    older = [
        (found, raw)
        for raw in every
        if (found := parse(raw)) is not None
        and found < version
        and not found.is_prerelease
    ]
    return f"{name}=={max(older)[1]}" if older else None


def _refuse_to_overwrite(path: Path) -> None:
    # What is no file, as a pipe, is written to and stays what it is.
    if path.is_symlink() or path.is_file():
        raise click.BadParameter(
            f"{path} is there already, and may hold what a person decided: name "
            f"another file, or say --registry-out {shlex.quote(str(path))} --force"
        )


def _write(path: Path, scanned: Scanned, first: str | None, last: str | None) -> None:
    """Write a draft, whole or not at all, once the loader has taken it."""
    from ..files import real, write_piped, write_whole
    from ..registry import load
    from ..scan.draft import draft

    ends = [f">={first}"] if first else []
    ends += [f"<={last}"] if last else []
    claims = {"vllm": ",".join(ends)} if ends else {}
    text = draft([one for one in scanned.found if one.sure], claims=claims)
    with tempfile.TemporaryDirectory(prefix="ascend-shims-") as folder:
        tried = Path(folder) / "gap_registry.yaml"
        tried.write_text(text, "utf-8")
        load(tried)
    try:
        if path.exists() and not path.is_file():
            write_piped(path, text.encode())
        else:
            write_whole(real(path), text)
    except OSError as error:
        raise click.BadParameter(
            f"{path} cannot be written: {error}; name another file with --registry-out"
        ) from error
    say(f"wrote {path}", err=True)


def _next(path: Path, compared: Compared | None) -> str:
    """The commands that make drift work with a draft: it has no baseline yet."""
    from ..upstream.baselines import distribution_of

    package, version = "vllm", None
    if compared is not None:
        package = compared.package
        version = compared.baseline or compared.versions[0]
    name, file = distribution_of(package), f"--registry {shlex.quote(str(path))}"
    release = f"{name}=={version or 'VERSION'}"
    hint = "" if version else ", the release that the code works with"
    return (
        f"Next: shims lock {release} {file}{again()}{hint}\n"
        f"then: shims drift --against {name}@latest {file}{again()}"
    )
