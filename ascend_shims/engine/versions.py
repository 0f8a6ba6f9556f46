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
    roots = {package.partition(".")[0], _TOOLKIT}
    known, waiting, rooms = dict[str, list[bytes]](), [module], set[tuple[str, str]]()
    while waiting:
        name = waiting.pop()
        known[name] = list(_files(package, name))
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
    told = hashlib.sha256()
    for content in _files(root, room):
        told.update(hashlib.sha256(content).digest())
    return told.digest()


def _files(package: str, name: str) -> Iterator[bytes]:
    """The code of a module or package, in the order of the names of its files."""
    return _code_in(_contents(package).get(name, []))


@lru_cache(maxsize=16)
def _contents(package: str) -> dict[str, list[Traversable]]:
    from importlib.resources import files

    return _by_stem(files(package))


def _by_stem(folder: Traversable) -> dict[str, list[Traversable]]:
    """What lies in a folder, in order, by names without what follows a dot."""
    found: dict[str, list[Traversable]] = {}
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        found.setdefault(entry.name.partition(".")[0], []).append(entry)
    return found


def _code_in(entries: list[Traversable]) -> Iterator[bytes]:
    for entry in entries:
        if entry.is_dir():
            for stem, inside in sorted(_by_stem(entry).items()):
                if stem != "__pycache__":
                    yield from _code_in(inside)
        elif entry.name.endswith(_SUFFIXES):
            yield entry.read_bytes()
