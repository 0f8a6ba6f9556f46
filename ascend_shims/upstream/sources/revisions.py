"""A revision of a git clone, read from its objects; the work tree is not touched."""

from __future__ import annotations

import os
import posixpath
import subprocess
import threading
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from ..source import SourceError
from .errors import BadSource
from .layout import find_layout, unsafe
from .meter import Stats
from .zips import too_large

__all__ = ["RevisionSource", "revision_source"]

_SECONDS = 60
_HOPS = 8
_LINK = "120000"
_SAFE = (
    # A partial clone would fetch what it lacks, from wherever it came.
    "-c",
    "protocol.allow=never",
    "-c",
    "core.fsmonitor=false",
)


def _environment() -> dict[str, str]:
    # Inside a hook git's own variables name another repository.
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    return {
        **kept,
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
    }


def _command(clone: Path, *arguments: str) -> list[str]:
    return ["git", *_SAFE, "-C", str(clone), "--no-pager", *arguments]


def _git(clone: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(
            _command(clone, *arguments),
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except FileNotFoundError as error:
        raise BadSource("git revisions need the git program on PATH") from error
    except subprocess.TimeoutExpired as error:
        raise BadSource(f"git did not answer within {_SECONDS} s") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise BadSource(f"git in {clone}: {said[0] if said else 'failed'}")
    return done.stdout


class _Entry(NamedTuple):
    oid: str
    link: bool


class _Objects:
    """One `git cat-file --batch`, asked for one object after the other."""

    def __init__(self, clone: Path) -> None:
        self._clone = clone
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            process = subprocess.Popen(
                _command(self._clone, "cat-file", "--batch"),
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            weakref.finalize(self, _end, process)
            self._process = process
        return self._process

    def get(self, oid: str) -> bytes:
        with self._lock:
            process = self._running()
            if process.stdin is None or process.stdout is None:
                raise SourceError("git gave no pipes")
            try:
                process.stdin.write(f"{oid}\n".encode())
                process.stdin.flush()
                answer = process.stdout.readline().split()
                if len(answer) != 3 or not answer[2].isdigit():
                    raise SourceError("the clone lacks this object")
                size = int(answer[2])
                reason = too_large(size)
                if reason:
                    # Its bytes are on the way; the next object gets a new process.
                    self._process = None
                    process.kill()
                    raise SourceError(reason)
                data = process.stdout.read(size + 1)[:-1]
            except OSError as error:
                raise SourceError(f"git ended: {error}") from error
        if len(data) != size:
            raise SourceError("git ended early")
        return data


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class RevisionSource:
    """The source files of one commit."""

    def __init__(
        self,
        label: str,
        version: str | None,
        entries: Mapping[str, _Entry],
        problems: Mapping[str, str],
        objects: _Objects,
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


def _version(clone: Path, revision: str, commit: str) -> str | None:
    """The release that a tag's name tells."""
    names = [revision.rpartition("/")[2]]
    tags = _git(clone, "tag", "--points-at", commit).decode(errors="replace")
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
    if not clone.is_dir():
        raise BadSource(f"{clone} is not a directory; write git:PATH@REVISION")
    named = f"{revision}^{{commit}}"
    try:
        found = _git(clone, "rev-parse", "--verify", "--end-of-options", named)
    except BadSource as error:
        if "needed a single revision" not in str(error).lower():
            raise
        raise BadSource(
            f"{clone} has no revision {revision}; a shallow clone has only those it "
            "fetched"
        ) from None
    # With --end-of-options some releases of git print that line as well.
    commit = found.decode().split()[-1]
    prefix = _git(clone, "rev-parse", "--show-prefix").decode().rstrip("\n")
    listing = _git(
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
    version = _version(clone, revision, commit)
    return RevisionSource(label, version, kept, problems, _Objects(clone))
