"""The version of a gap: what it says of itself and what it runs, as twelve digits.

Where an entry of the registry, a patch or what patches share is edited, whoever kept
something under the old version sees that it is another one now. Nothing is imported
besides the packages that hold the patches.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import all_suffixes
from typing import TYPE_CHECKING

import msgspec

from ..registry.model import Gap

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["version_of"]

_SUFFIXES = tuple(all_suffixes())
_TOOLKIT = __name__.partition(".")[0]


def version_of(gap: Gap, package: str) -> str:
    """Twelve hexadecimal digits of `gap`, whose module lies in `package`.

    They are of its entry, of its module, of other patches that the module imports,
    and of the rooms, beside the patches or of this toolkit, that these import from,
    each as a whole. Code is read once a process: what is edited later is not what
    runs here.
    """
    entry = msgspec.json.encode(gap, order="sorted")
    return hashlib.sha256(entry + _code(package, gap.module)).hexdigest()[:12]


@lru_cache(maxsize=256)
def _code(package: str, module: str) -> bytes:
    from importlib.resources import files

    roots = {package.partition(".")[0], _TOOLKIT}
    folder = files(package)
    known, waiting, rooms = dict[str, list[bytes]](), [module], set[tuple[str, str]]()
    while waiting:
        name = waiting.pop()
        known[name] = list(_files(folder, name))
        text = b"\n".join(known[name]).decode(errors="replace")
        waiting += sorted(_beneath(package, text) - {*known, *waiting})
        rooms.update((root, room) for root in roots for room in _beneath(root, text))
    told = hashlib.sha256()
    for _, contents in sorted(known.items()):
        for content in contents:
            told.update(hashlib.sha256(content).digest())
    for root, room in sorted(rooms):
        if f"{root}.{room}" != package:
            told.update(_room(root, room))
    return told.digest()


def _beneath(package: str, text: str) -> set[str]:
    """The names that stand behind `package` and a dot.

    The pattern begins with what is searched for, which is ten times as fast as one
    that begins with the edge of a word: a name too many costs nothing.
    """
    return set(re.findall(rf"{re.escape(package)}\.(\w+)", text))


@lru_cache(maxsize=64)
def _room(root: str, room: str) -> bytes:
    from importlib.resources import files

    told = hashlib.sha256()
    for content in _files(files(root), room):
        told.update(hashlib.sha256(content).digest())
    return told.digest()


def _files(folder: Traversable, name: str) -> Iterator[bytes]:
    """The code of a module or package, in the order of the names of its files."""
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name.partition(".")[0] != name:
            continue
        if entry.is_dir():
            inside = {one.name.partition(".")[0] for one in entry.iterdir()}
            for one in sorted(inside - {"__pycache__"}):
                yield from _files(entry, one)
        elif entry.name.endswith(_SUFFIXES):
            yield entry.read_bytes()
