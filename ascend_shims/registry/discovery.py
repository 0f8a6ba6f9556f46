"""The registry that a project has, found from a place inside the project.

Where a command is started makes no difference, and nothing outside the project's
repository is looked at: a folder that others can write to, further up, could name
any file there is. What is found is read as data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError
from .problems import nearest, shown

__all__ = ["DiscoveryError", "discover", "discover_or_none", "in_folder"]

_NAMES = ("gap_registry.yaml", "gap_registry.yml")
_TABLE = "ascend-shims"
_BYTES = 1 << 20
_DEEP = 4
"""Levels below a project's folder at which its packages lie, `src` counted."""
_MOST = 50_000
"""Files and folders that are looked at there: a project has some thousands."""
_NOT_CODE = ("build", "dist", "docs", "node_modules", "test", "tests")
_SAY = "name its file, or the folder of its project"


class DiscoveryError(ConfigurationError):
    """No registry is found from there, or what names one is wrong."""


def discover(start: Path) -> Path:
    """The registry of the project around a file or folder.

    In the folder itself, then in each one above it, up to the root of the repository
    (where `.git` is): what `[tool.ascend-shims] registry` in `pyproject.toml` names,
    else `gap_registry.yaml`. Without a repository in that folder alone; never in the
    user's home or in `/` because something below them was named.

    Raises `DiscoveryError`.
    """
    found = discover_or_none(start)
    if found is not None:
        return found
    folder = _folder(start)
    root = _repository(folder)
    around = f" nor above it in {root}" if root not in (None, folder) else ""
    raise DiscoveryError(
        f"no registry in {folder}{around}: put a {_NAMES[0]} there, or write "
        f'[tool.{_TABLE}] registry = "FILE" in its pyproject.toml'
    )


def in_folder(folder: Path) -> Path:
    """The registry of a project whose folder somebody named.

    Where `discover()` finds none, the only one in a package below: that is where
    `shims new-gap` begins one; not in all that a machine has. Raises `DiscoveryError`.
    """
    found = discover_or_none(folder)
    if found is not None:
        return found
    top = _folder(folder)
    if top.parent == top:
        raise DiscoveryError(
            f"no registry in {top}, and none is looked for below; {_SAY}"
        )
    below = sorted(_below(top))
    if len(below) > 1:
        listed = ", ".join(str(one.relative_to(top)) for one in below)
        raise DiscoveryError(
            f"there are several registries in {folder}: {listed}; name one of them"
        )
    return below[0] if below else discover(folder)


def _below(folder: Path) -> Iterator[Path]:
    top, seen = len(folder.parts), 0
    for here, names, files in os.walk(folder):
        place = Path(here)
        if "pyvenv.cfg" in files or len(place.parts) - top >= _DEEP:
            names.clear()
        names[:] = [
            name for name in names if not name.startswith(".") and name not in _NOT_CODE
        ]
        seen += len(names) + len(files)
        if seen > _MOST:
            raise DiscoveryError(
                f"more than {_MOST:,} files are in {folder}, too many to look for a "
                f"registry among them; {_SAY}"
            )
        yield from (place / name for name in _NAMES if name in files)


def discover_or_none(start: Path) -> Path | None:
    """The same; None where there is no registry.

    Raises `DiscoveryError` where what names one is wrong.
    """
    folder = _folder(start)
    root = _repository(folder)
    for one in _upwards(folder, root):
        named = _named(one / "pyproject.toml", root or one)
        if named is not None:
            return named
        for name in _NAMES:
            if (one / name).is_file():
                return one / name
    return None


def _folder(start: Path) -> Path:
    try:
        place = start.resolve(strict=True)
    # A loop of links is a RuntimeError before Python 3.13.
    except (OSError, RuntimeError) as error:
        raise DiscoveryError(f"{start} cannot be looked into: {error}") from None
    return place if place.is_dir() else place.parent


def _repository(folder: Path) -> Path | None:
    found = (one for one in (folder, *folder.parents) if (one / ".git").exists())
    return next(found, None)


def _upwards(folder: Path, root: Path | None) -> Iterator[Path]:
    yield folder
    if root is None:
        return
    for one in folder.parents:
        if not one.is_relative_to(root) or one in _too_high():
            return
        yield one


def _too_high() -> set[Path]:
    try:
        home = {Path.home().resolve()}
    except RuntimeError:
        home = set()
    return home | {Path("/")}


def _named(file: Path, root: Path) -> Path | None:
    """The registry that a project file names, if it does."""
    table = _table(file)
    if table is None:
        return None
    for key in table:
        if key != "registry":
            meant = " did you mean `registry`?" if nearest(key, ["registry"]) else ""
            raise DiscoveryError(
                f"{file}: [tool.{_TABLE}] has no `{shown(key)}`;{meant or ' remove it'}"
            )
    said = table.get("registry")
    if not isinstance(said, str) or not said:
        raise DiscoveryError(
            f'{file}: write [tool.{_TABLE}] registry = "gap_registry.yaml"'
        )
    try:
        target = (file.parent / said).resolve()
        is_there = target.is_file()
    except (OSError, RuntimeError, ValueError):
        is_there = False
    if not is_there:
        raise DiscoveryError(f"{file}: there is no registry {shown(said)}")
    if not target.is_relative_to(root):
        raise DiscoveryError(
            f"{file}: {shown(said)} is not in {root}; name it with --registry"
        )
    return target


def _table(file: Path) -> dict[str, Any] | None:
    """Our table of a project file; None where it has none."""
    if not file.is_file():
        return None
    try:
        with file.open("rb") as stream:
            content = stream.read(_BYTES + 1)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DiscoveryError(f"{file} cannot be read: {error}") from None
    if len(content) > _BYTES:
        raise DiscoveryError(f"{file} has more than {_BYTES} bytes")
    if _TABLE not in text:
        return None
    try:
        import tomllib
    except ModuleNotFoundError:
        raise DiscoveryError(
            f"{file}: Python 3.11 or newer is needed to read it; name the registry "
            "with --registry FILE"
        ) from None
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise DiscoveryError(f"{file}: {error}") from None
    tool = data.get("tool")
    table = tool.get(_TABLE) if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise DiscoveryError(f"{file}: [tool.{_TABLE}] is no table")
    return table
