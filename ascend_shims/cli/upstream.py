"""What the commands that read upstream source share: options, sources, registry."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ..upstream.run import Run
    from ..upstream.sources import Sources

__all__ = ["index_options", "open_sources", "registry_path", "run_of"]

_F = TypeVar("_F", bound=Callable[..., Any])

_OPTIONS = (
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
    click.option(
        "--registry",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Another registry.",
    ),
    click.option(
        "--watch",
        "watch_files",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        multiple=True,
        help="JSON lines of further symbols that are relied on.",
    ),
)


def index_options(function: _F) -> _F:
    """The options of every command that reads upstream source."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def registry_path(registry: Path | None) -> Path:
    """The registry that is meant."""
    from ..registry import packaged
    from .here import own_switches

    return registry or own_switches().registry or packaged()


def open_sources(
    *,
    index_url: str | None,
    extra_index_urls: tuple[str, ...],
    allow_hosts: tuple[str, ...],
    offline: bool,
) -> Sources:
    """The sources, with what the command line says of the index."""
    from rich.console import Console

    from ..upstream.sources import Bar, IndexSettings, Sources

    index = IndexSettings(
        index_url=index_url,
        extra_index_urls=list(extra_index_urls) or None,
        allow_hosts=allow_hosts,
    )
    bar = Bar(Console(stderr=True))
    return Sources(index=index, offline=offline, progress=bar)


def run_of(
    registry: Path | None,
    watch_files: tuple[Path, ...],
    baseline: str | None,
    **index: Any,
) -> tuple[Run, Path]:
    """Everything a check needs, and the registry's path."""
    from ..registry import load
    from ..upstream.lock import load_lock
    from ..upstream.run import Run, beside
    from ..upstream.watched import from_file, from_registry

    path = registry_path(registry)
    loaded = load(registry) if registry else load(own_or_none(path))
    watched = from_registry(loaded, path)
    for file in watch_files:
        watched += from_file(file)
    run = Run(open_sources(**index), load_lock(beside(path)), watched, baseline)
    return run, path


def own_or_none(path: Path) -> Path | None:
    """None for the packaged registry, which is held to more than others are."""
    from ..registry import packaged

    return None if path == packaged() else path
