"""A revision of a git clone, read from its objects; the work tree is not touched."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from ..source import SourceError
from .errors import BadSource
from .git import Objects, commit_of, git, prefix_of
from .layout import find_layout, unsafe
from .meter import Stats

__all__ = ["RevisionSource", "revision_source", "revision_version"]

_HOPS = 8
_LINK = "120000"


class _Entry(NamedTuple):
    oid: str
    link: bool


class RevisionSource:
    """The source files of one commit."""

    def __init__(
        self,
        label: str,
        version: str | None,
        entries: Mapping[str, _Entry],
        problems: Mapping[str, str],
        objects: Objects,
    ) -> None:
        self.label = label
        self.version = version
        self.problems = problems
        self.notes: tuple[str, ...] = ()
        self.stats = Stats()
        self._entries = entries
        self._objects = objects

    def paths(self) -> Sequence[str]:
        return tuple(sorted(self._entries))

    def read(self, path: str) -> bytes:
        try:
            return self._read(path)
        except SourceError as error:
            raise SourceError(f"{path} of {self.label}: {error}") from error

    def _read(self, path: str) -> bytes:
        place = path
        for _ in range(_HOPS):
            entry = self._entries.get(place)
            if entry is None:
                linked = "it links to nothing inside the packages"
                raise SourceError(linked if place != path else "there is no such file")
            data = self._objects.get(entry.oid)
            if not entry.link:
                return data
            target = data.decode(errors="replace")
            place = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
        raise SourceError("its links lead in a circle")

    def prefetch(self, paths: Iterable[str]) -> None:
        """Everything is here already."""


def _entries(listing: bytes) -> dict[str, _Entry]:
    found = {}
    for line in listing.split(b"\0"):
        head, tab, name = line.partition(b"\t")
        if not tab or not name.endswith(b".py"):
            continue
        mode, kind, oid = head.decode().split()
        if kind == "blob":
            path = name.decode(errors="surrogateescape")
            found[path] = _Entry(oid, mode == _LINK)
    return found


def revision_version(clone: Path, revision: str, commit: str) -> str | None:
    """The release that a tag's name tells."""
    # `12345678` and `5b1234567` are versions, and short names of commits too.
    names = [] if commit.startswith(revision) else [revision.rpartition("/")[2]]
    tags = git(clone, "tag", "--points-at", commit).decode(errors="replace")
    for name in (*names, *tags.split()):
        try:
            return str(Version(name))
        except InvalidVersion:
            continue
    return None


def revision_source(
    clone: Path, revision: str, packages: Collection[str]
) -> RevisionSource:
    """The packages of a commit, branch or tag.

    Args:
        clone: a work tree, a folder in one, or a bare repository.

    Raises:
        BadSource: no clone, no such revision, no package in it, or no git.
    """
    commit = commit_of(clone, revision)
    prefix = prefix_of(clone)
    listing = git(
        clone, "ls-tree", "-r", "-z", "--full-tree", commit, "--", prefix or "."
    )
    entries = {
        path.removeprefix(prefix): entry for path, entry in _entries(listing).items()
    }
    problems = {path: why for path in entries if (why := unsafe(path))}
    layout = find_layout((p for p in entries if p not in problems), packages)
    if not layout.packages:
        raise BadSource(f"{clone} has no Python package at {revision}")
    kept = {
        inside: entry
        for path, entry in entries.items()
        if path not in problems and (inside := layout.inside(path))
    }
    label = f"{', '.join(layout.packages)} {revision} ({commit[:10]})"
    version = revision_version(clone, revision, commit)
    return RevisionSource(label, version, kept, problems, Objects(clone))
