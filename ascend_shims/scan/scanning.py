"""From folders to everything found in them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from ..upstream.collecting import rare_collections
from .files import Files, NothingToScanError, SkipError, Source, collect, parse
from .found import Scanned, Skipped
from .library import Library, on_disk
from .raw import FileFacts, Setting
from .reader import read_file
from .together import put_together

__all__ = ["UPSTREAMS", "scan"]

UPSTREAMS = ("vllm",)
"""Packages whose classes and private names are looked for, where none is named."""

_FEW = 150
"""Files for which starting another process costs more than it saves."""
_AT_ONCE = 8
_MOST_ASIDE = 1000


def scan(
    paths: Iterable[Path],
    upstreams: Sequence[str] = (),
    *,
    tests: bool = False,
    processes: int | None = None,
) -> Scanned:
    """Scan the Python files beneath `paths`.

    Args:
        upstreams: packages that are of interest; without any, patches of every
            package outside the scanned code, and what else is relied on of vLLM.
        tests: files of tests as well.
        processes: how many to use; as many as there are processors by default.

    Raises:
        NothingToScanError: there is no file, or none that can be read.
    """
    named = [Path(one) for one in paths]
    files = collect(named, tests=tests)
    setting = _setting(files, tuple(upstreams))
    facts: list[FileFacts] = []
    skipped = list(files.skipped)
    for one in _read(files, setting, processes):
        if isinstance(one, Skipped):
            skipped.append(one)
        else:
            facts.append(one)
    if not facts and skipped:
        # A wrong path must not look like code without a finding.
        first = min(skipped, key=lambda one: one.path)
        raise NothingToScanError(f"{first.path} cannot be scanned: {first.reason}")
    aside = _aside(facts, setting, files)
    found, imports = put_together(facts, setting, aside)
    return Scanned(
        tuple(found),
        tuple(sorted(skipped, key=lambda s: s.path)),
        len(facts),
        files.tests,
        imports,
    )


def _setting(files: Files, upstreams: tuple[str, ...]) -> Setting:
    chosen = upstreams or UPSTREAMS
    tops: dict[str, bool] = {}
    for source in files.sources:
        top, _, rest = source.module.partition(".")
        tops[top] = tops.get(top, False) or bool(rest) or source.is_package
    # A script beside the package may be called like somebody's package.
    alike = {*chosen, "torch", "torch_npu", "triton", "transformers", "sys"}
    own = {top for top, is_package in tops.items() if is_package or top not in alike}
    return Setting(frozenset(own), chosen, bool(upstreams))


def _aside(
    facts: Sequence[FileFacts], setting: Setting, files: Files
) -> list[FileFacts]:
    """Other modules of the package that those scanned import, and what these import.

    A part of a package is scanned, and names lead through the rest of it.
    """
    known = {one.source.module for one in facts}
    library = _library(files, setting)
    found: list[FileFacts] = []
    waiting = list(facts)
    while waiting and len(found) < _MOST_ASIDE:
        for module, _ in waiting.pop().wanted:
            source = None if module in known else on_disk(module, files.tops)
            known.add(module)
            if source is not None:
                one = _one(source, setting, library)
                if isinstance(one, FileFacts):
                    found.append(one)
                    waiting.append(one)
    return found


def _library(files: Files, setting: Setting) -> Library:
    return Library(setting, {one.module: one for one in files.sources}, files.tops)


def _read(
    files: Files, setting: Setting, processes: int | None
) -> list[FileFacts | Skipped]:
    sources = files.sources
    count = processes or min(_AT_ONCE, os.cpu_count() or 1)
    if count < 2 or len(sources) < _FEW:
        library = _library(files, setting)
        with rare_collections():
            return [_one(source, setting, library) for source in sources]
    begin = partial(_begin, files, setting)
    with ProcessPoolExecutor(count, initializer=begin) as pool:
        return list(pool.map(_with_what_began, sources, chunksize=16))


_BEGUN: list[tuple[Setting, Library]] = []
"""Of a process that reads files for another."""


def _begin(files: Files, setting: Setting) -> None:
    import gc

    gc.set_threshold(500_000)
    _BEGUN[:] = [(setting, _library(files, setting))]


def _with_what_began(source: Source) -> FileFacts | Skipped:
    return _one(source, *_BEGUN[0])


def _one(source: Source, setting: Setting, library: Library) -> FileFacts | Skipped:
    try:
        text, tree = parse(source)
        return read_file(source, text, tree, setting, library)
    except SkipError as error:
        return Skipped(source.path, str(error))
    except RecursionError:
        return Skipped(source.path, "nests too deeply")
