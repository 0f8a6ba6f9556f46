"""Who brings a registry: the entry points of installed distributions.

Read by hand, as versions are: `importlib.metadata` costs more than all the rest of
applying. One pass over the folders of `sys.path`, of which only the entry points are
opened, and once more only after a folder has changed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

__all__ = ["GROUP", "EntryPoint", "read_entry_points"]

GROUP = "ascend_shims.registries"

_BYTES = 1 << 20
"""As much of a file of entry points as is read: most have some hundred bytes."""

_BLOCK = 1 << 14
"""Room for a megabyte takes longer to make than most of these files to read."""

_READING = os.O_RDONLY | getattr(os, "O_BINARY", 0)

_ENDS = (".dist-info", ".egg-info")


class EntryPoint(msgspec.Struct, frozen=True):
    """One line of a distribution's entry points, whatever it says."""

    name: str
    value: str
    distribution: str
    """Name and version, `acme-npu 1.0`."""
    folder: str
    """The metadata that says so."""


def read_entry_points(path: Sequence[str] | None = None) -> tuple[EntryPoint, ...]:
    """Every entry point of our group, in the order of `sys.path`.

    Of a distribution that is there several times the first counts, since it is what
    would be imported. Metadata that cannot be read say nothing. Never raises.
    """
    found: list[EntryPoint] = []
    seen: set[str] = set()
    for folder in dict.fromkeys(sys.path if path is None else path):
        for name, entries in _in_folder(folder or "."):
            if name not in seen:
                seen.add(name)
                found += entries
    return tuple(found)


def _in_folder(folder: str) -> tuple[tuple[str, tuple[EntryPoint, ...]], ...]:
    """Each distribution of a folder, by its normalized name, with our entries."""
    try:
        place = os.path.abspath(folder)  # noqa: PTH100 - asked for every folder
        return _read(place, os.stat(place).st_mtime_ns)  # noqa: PTH116
    except (OSError, ValueError):
        return ()


@lru_cache(maxsize=128)
def _read(folder: str, _changed: int) -> tuple[tuple[str, tuple[EntryPoint, ...]], ...]:
    with os.scandir(folder) as entries:
        # What an interrupted pip leaves begins with a tilde.
        infos = sorted(
            one.name
            for one in entries
            if one.name.endswith(_ENDS) and not one.name.startswith("~")
        )
    return tuple((_normal(_split(info)[0]), _entries(folder, info)) for info in infos)


def _entries(folder: str, info: str) -> tuple[EntryPoint, ...]:
    file = os.path.join(folder, info, "entry_points.txt")  # noqa: PTH118 - as above
    try:
        content = _content(file)
    except OSError:
        return ()
    if GROUP.encode() not in content:
        return ()
    name, version = _stated(Path(folder, info))
    said = f"{name} {version}" if version else name
    lines = _lines(content.decode("utf-8", errors="replace"))
    return tuple(
        EntryPoint(key, value, said, str(Path(folder, info))) for key, value in lines
    )


def _content(file: str) -> bytes:
    """Without a stream around it: half the time, of two hundred of them."""
    content = b""
    descriptor = os.open(file, _READING)
    try:
        while len(content) < _BYTES and (block := os.read(descriptor, _BLOCK)):
            content += block
        return content
    finally:
        os.close(descriptor)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Names and values in our group."""
    group = ""
    for raw in text.splitlines():
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif group == GROUP:
            name, _, value = line.partition("=")
            yield name.strip(), value.partition("[")[0].strip()


def _stated(info: Path) -> tuple[str, str]:
    """Name and version, as the metadata state them, else as its folder is called."""
    stated: dict[str, str] = {}
    for file in (info / "METADATA", info / "PKG-INFO"):
        try:
            with file.open("rb") as stream:
                lines = stream.read(_BYTES).decode("utf-8", "replace").splitlines()
        except OSError:
            continue
        for line in lines:
            key, colon, value = line.partition(":")
            if not colon:
                break
            stated.setdefault(key.lower(), value.strip())
    name, version = _split(info.name)
    return stated.get("name") or name, stated.get("version") or version


def _split(info: str) -> tuple[str, str]:
    name, _, version = info.rpartition(".")[0].partition("-")
    return name, version


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
