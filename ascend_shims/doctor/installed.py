"""What is installed, as its metadata says, and which copies of a package there are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Copy", "EntryPoint", "Metadata", "Shadow", "counting", "shadow"]


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One line of a distribution's `entry_points.txt`."""

    group: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """One `.dist-info` or `.egg-info` on the import path."""

    name: str
    version: str
    folder: str
    editable: str | None = None
    """The checkout that it stands for, where it was installed in place."""
    entries: tuple[EntryPoint, ...] = ()
    requires: tuple[str, ...] = ()
    claims: frozenset[str] = frozenset()
    """Of the packages that were asked for, those that it says it has brought."""

    @property
    def normal(self) -> str:
        """The name as it is compared."""
        return re.sub(r"[-_.]+", "-", self.name).lower()

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def counting(installed: Iterable[Metadata]) -> tuple[Metadata, ...]:
    """Those whose entry points are seen: of each name the first on the path."""
    first: dict[str, Metadata] = {}
    for one in installed:
        first.setdefault(one.normal, one)
    return tuple(first.values())


@dataclass(frozen=True, slots=True)
class Copy:
    """A place where a package could be imported from."""

    file: str
    """With links followed, so that two names of one file are one copy."""
    via: Literal["the working directory", "PYTHONPATH", "the environment"]
    on_path: bool = True
    """False for the working directory where this command does not import from it."""

    @property
    def is_installed(self) -> bool:
        return self.via == "the environment"


@dataclass(frozen=True, slots=True)
class Shadow:
    """A copy that stands before the installed one."""

    copy: Copy
    installed: Copy


def shadow(copies: Iterable[Copy]) -> Shadow | None:
    """The copy that is imported, or would be by `python -m`, instead of the installed
    one; None where they are one file."""
    by_place = tuple(copies)
    installed = next((one for one in by_place if one.is_installed), None)
    if installed is None or by_place[0].is_installed:
        return None
    if by_place[0].file == installed.file:
        return None
    return Shadow(by_place[0], installed)
