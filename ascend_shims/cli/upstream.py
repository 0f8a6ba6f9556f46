"""What the commands that read upstream source share: options, sources, registry."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .named import RegistryPath

if TYPE_CHECKING:
    from ..registry import Registry
    from ..upstream.run import Run
    from ..upstream.sources import Sources
    from ..upstream.watched import Role, Watched

__all__ = [
    "FORMATS",
    "LEVELS",
    "again",
    "besides_gaps",
    "index_options",
    "open_sources",
    "own_or_none",
    "registry_of",
    "registry_path",
    "relied_options",
    "run_of",
    "search_option",
    "source_options",
    "watched_of",
]

FORMATS = ("table", "json", "markdown", "github", "sarif", "junit")
"""Of what is found in a release."""

LEVELS = {
    "broken": ("broken",),
    "review": ("broken", "review"),
    "any": ("broken", "review", "fixed-upstream", "compatible", "cosmetic"),
    "never": (),
}
"""What --fail-on takes, and the verdicts that make the exit code 1."""

_F = TypeVar("_F", bound=Callable[..., Any])

_RELIED = (
    click.option(
        "--registry",
        type=RegistryPath(exists=True, path_type=Path),
        help="Another registry, or a folder of the project that has one.",
    ),
    click.option(
        "--watch",
        "watch_files",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        multiple=True,
        help="JSON lines of further symbols that are relied on.",
    ),
)

_INDEX = (
    click.option("--index-url", metavar="URL", help="Package index to read from."),
    click.option(
        "--extra-index-url",
        "extra_index_urls",
        metavar="URL",
        multiple=True,
        help="One more index; repeatable.",
    ),
    click.option(
        "--allow-host",
        "allow_hosts",
        metavar="HOST",
        multiple=True,
        help="A further host that the index may send us to.",
    ),
    click.option("--offline", is_flag=True, help="Use the cache and local files only."),
)

_OPTIONS = (*_INDEX, *_RELIED)


def index_options(function: _F) -> _F:
    """The options of every command that reads upstream source."""
    return _with(_OPTIONS, function)


def source_options(function: _F) -> _F:
    """Those of them that say where releases come from."""
    return _with(_INDEX, function)


def relied_options(function: _F) -> _F:
    """Those of them that say what is relied on."""
    return _with(_RELIED, function)


def _with(options: tuple[Callable[[_F], _F], ...], function: _F) -> _F:
    for option in reversed(options):
        function = option(function)
    return function


def again() -> str:
    """The options of this command that another one, to be run next, needs too."""
    context = click.get_current_context(silent=True)
    given = context.params if context is not None else {}
    words: list[str] = []
    for name, option in (("registry", "--registry"), ("index_url", "--index-url")):
        if given.get(name):
            words += [option, str(given[name])]
    for file in given.get("watch_files") or ():
        words += ["--watch", str(file)]
    if given.get("offline"):
        words.append("--offline")
    return "".join(f" {shlex.quote(word)}" for word in words)


search_option = click.option(
    "--search-all",
    is_flag=True,
    help="Look for what is gone in the whole package, which may mean fetching it.",
)
"""Of the commands that judge releases."""


def registry_path(registry: Path | None) -> Path:
    """The registry that is meant. Raises `ConfigurationError`."""
    from ..registry import packaged
    from .here import own_switches

    switches = own_switches(registry=registry)
    if switches.registry is not None and switches.registry_is_inherited:
        from ..registry.writers import check_own

        check_own(switches.registry)
    return switches.registry or packaged()


def open_sources(
    *,
    index_url: str | None,
    extra_index_urls: tuple[str, ...],
    allow_hosts: tuple[str, ...],
    offline: bool,
) -> Sources:
    """The sources, with what the command line says of the index.

    Tells the person where nothing of them can be kept for the next command.
    """
    from ..upstream.sources import Bar, IndexSettings, Sources
    from .speech import tell

    index = IndexSettings(
        index_url=index_url,
        extra_index_urls=list(extra_index_urls) or None,
        allow_hosts=allow_hosts,
    )
    sources = Sources(index=index, offline=offline, progress=Bar())
    refused = sources.cache.refused()
    if refused:
        tell(
            f"nothing of what is read is kept: {refused}; name another folder with "
            "ASCEND_SHIMS_CACHE [cache-unwritable]"
        )
    return sources


def run_of(
    registry: Path | None,
    watch_files: tuple[Path, ...],
    baseline: str | None,
    *,
    ahead: str | None = None,
    anew: bool = False,
    alone: bool = False,
    **index: Any,
) -> tuple[Run, Path]:
    """Everything a check needs, and the registry's path.

    Args:
        ahead: a source to open while the rest is still being imported.
        anew: a lock that cannot be used is going to be written, and counts as empty.
        alone: without what installed plugins bring.
    """
    from ..upstream.fetching import Releases

    releases = Releases(open_sources(**index))
    for spec in (ahead, baseline):
        if spec is not None:
            releases.begin(spec)

    from ..registry.joined import Joined
    from ..upstream.lock import Lock, LockError, load_lock
    from ..upstream.run import Run, beside

    loaded, path = registry_of(registry, alone=alone)
    watched = _watched(loaded, path, watch_files)
    try:
        lock = load_lock(beside(path))
    except LockError:
        if not anew:
            raise
        lock = Lock()
    if not isinstance(loaded, Joined):
        return Run(releases, lock, watched, baseline, again=again()), path
    from ..upstream.together import Together, found_locks

    locks, notes = found_locks(loaded)
    together = Together(
        releases,
        lock,
        watched,
        baseline,
        again=again(),
        locks=locks,
        notes=tuple(notes),
    )
    return together, path


def watched_of(
    registry: Path | None, watch_files: tuple[Path, ...]
) -> tuple[list[Watched], Path]:
    """Everything that is relied on, and the registry's path."""
    loaded, path = registry_of(registry)
    return _watched(loaded, path, watch_files), path


def _watched(
    loaded: Registry, path: Path, watch_files: tuple[Path, ...]
) -> list[Watched]:
    from ..registry.joined import Joined
    from ..upstream.watched import from_file, from_registry

    if isinstance(loaded, Joined):
        from ..upstream.together import found_watched

        watched = [*from_registry(loaded.base, path), *found_watched(loaded)]
    else:
        watched = from_registry(loaded, path)
    for file in watch_files:
        watched += from_file(file)
    return watched


def registry_of(registry: Path | None, *, alone: bool = False) -> tuple[Registry, Path]:
    """What is meant, and the path of its base.

    Without `--registry` that is what `apply()` takes here, with what installed plugins
    bring; `alone`: without that. A registry that is named is meant alone: somebody
    checks his own. It may name gaps of ours, as it does where it is found beside them.
    """
    from ..registry import RegistryError, load
    from ..registry.found import load_all
    from .here import own_switches

    path = registry_path(registry)
    if registry is not None:
        try:
            return load(path), path
        except RegistryError:
            return load(path, beside=load()), path
    switches = own_switches()
    namespaces = frozenset[str]() if alone else switches.namespaces
    own = own_or_none(path)
    loaded = load_all(own, namespaces=namespaces, allow=switches.allow)
    return loaded, path


def own_or_none(path: Path) -> Path | None:
    """None for the packaged registry, which is held to more than others are."""
    from ..registry import packaged

    return None if path == packaged() else path


def besides_gaps(watched: Iterable[Watched]) -> dict[str, Role]:
    """The names in `watched` that are no gaps, and what they are."""
    known: dict[str, set[Role]] = {}
    for one in watched:
        known.setdefault(one.gap, set()).add(one.role)
    # A watch file may add to what a gap or a companion relies on.
    return {
        name: "companion" if "companion" in roles else "watch"
        for name, roles in known.items()
        if "gap" not in roles
    }


def check_package(package: str, watched: Iterable[Watched]) -> None:
    """Refuse a package of which nothing is relied on: there is nothing to check."""
    from difflib import get_close_matches

    relied = sorted({one.package for one in watched})
    if package in relied:
        return
    near = get_close_matches(package, relied, n=1)
    named = f"; name one of {', '.join(relied)} with --package" if relied else ""
    hint = f"; did you mean {near[0]}?" if near else named
    raise click.BadParameter(f"nothing is relied on in {package!r}{hint}")


def installed_source(spec: str, package: str) -> str:
    """The source that `installed` means for a package that is not vLLM."""
    from ..environment.modules import find_module

    if spec != "installed" or package == "vllm":
        return spec
    found = find_module(package)
    if found is None or found.origin is None:
        raise click.BadParameter(
            f"{package} is not installed here; name a release with --against"
        )
    return str(Path(found.origin).parent.parent)
