"""Every place that a package could be imported from, in the order of the search."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.machinery import BuiltinImporter, FrozenImporter, ModuleSpec, PathFinder
from pathlib import Path

from ...files import real
from ..installed import Copy

__all__ = ["only_here", "read_copies"]


def read_copies(package: str) -> tuple[Copy, ...]:
    """The working directory's comes first, also where this command does not import
    from it: `python -m` does."""
    here = Path.cwd()
    found = []
    if here not in {_place(entry) for entry in sys.path}:
        file = _file(PathFinder.find_spec(package, [str(here)]))
        if file:
            found.append(Copy(file, "the working directory", on_path=False))
    return (*found, *_on_path(package, here))


def only_here() -> str | None:
    """The working directory, where nothing but the start of this Python has put it on
    the path."""
    here = Path.cwd()
    named = {_place(e) for e in os.environ.get("PYTHONPATH", "").split(os.pathsep) if e}
    places = [_place(entry) for entry in sys.path]
    lasting = here in named or here in places[1:]
    return str(here) if places[:1] == [here] and not lasting else None


def _on_path(package: str, here: Path) -> Iterator[Copy]:
    named = {_place(e) for e in os.environ.get("PYTHONPATH", "").split(os.pathsep) if e}
    for entry in sys.path:
        file = _file(PathFinder.find_spec(package, [entry]))
        if file is None:
            continue
        place = _place(entry)
        if place in named:
            yield Copy(file, "PYTHONPATH")
        elif place == here:
            yield Copy(file, "the working directory")
        else:
            yield Copy(file, "the environment")
    for finder in sys.meta_path:
        # What is installed in place has a finder of its own.
        if finder in (PathFinder, BuiltinImporter, FrozenImporter):
            continue
        find = getattr(finder, "find_spec", None)
        file = _file(find(package, None)) if find else None
        if file:
            yield Copy(file, "the environment")


def _place(entry: str) -> Path:
    return real(Path(entry or "."))


def _file(spec: ModuleSpec | None) -> str | None:
    """None also for a folder without `__init__.py`, which stands before nothing."""
    if spec is None or not spec.has_location or not spec.origin:
        return None
    return os.path.realpath(spec.origin)
