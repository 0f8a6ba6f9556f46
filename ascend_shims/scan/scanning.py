"""From folders to everything found in them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from ..upstream.collecting import rare_collections
from .files import Files, SkipError, Source, collect, parse
from .found import Scanned, Skipped
from .raw import FileFacts, Setting
from .reader import read_file
from .together import put_together

__all__ = ["UPSTREAMS", "scan"]

UPSTREAMS = ("vllm",)
"""Packages whose classes and private names are looked for, where none is named."""

_FEW = 150
"""Files for which starting another process costs more than it saves."""
_AT_ONCE = 8


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
        NothingToScanError: there is no file.
    """
    files = collect(paths, tests=tests)
    setting = _setting(files, tuple(upstreams))
    facts: list[FileFacts] = []
    skipped = list(files.skipped)
    for one in _read(files.sources, setting, processes):
        if isinstance(one, Skipped):
            skipped.append(one)
        else:
            facts.append(one)
    found, imports = put_together(facts, setting)
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


def _read(
    sources: Sequence[Source], setting: Setting, processes: int | None
) -> list[FileFacts | Skipped]:
    count = processes or min(_AT_ONCE, os.cpu_count() or 1)
    work = partial(_one, setting=setting)
    if count < 2 or len(sources) < _FEW:
        with rare_collections():
            return [work(source) for source in sources]
    with ProcessPoolExecutor(count, initializer=_begin) as pool:
        return list(pool.map(work, sources, chunksize=16))


def _begin() -> None:
    import gc

    gc.set_threshold(500_000)


def _one(source: Source, setting: Setting) -> FileFacts | Skipped:
    try:
        text, tree = parse(source)
        return read_file(source, text, tree, setting)
    except SkipError as error:
        return Skipped(source.path, str(error))
    except RecursionError:
        return Skipped(source.path, "nests too deeply")
