"""The git program, asked about a clone's objects and for nothing else.

Nothing is checked out, written, fetched or run that the clone configures.
"""

from __future__ import annotations

import os
import subprocess
import threading
import weakref
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from ..source import SourceError
from .errors import BadSource
from .zips import too_large

__all__ = ["MissingObject", "Objects", "commit_of", "git", "prefix_of"]

_SECONDS = 60
_AT_ONCE = 100
"""Requests that are written before their answers are read: they fit into a pipe."""

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


def git(clone: Path, *arguments: str) -> bytes:
    """What git prints. Raises `BadSource`."""
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


class MissingObject(SourceError):
    """An object is not in the clone: it is a partial or a damaged one."""


class Objects:
    """One `git cat-file --batch`, which stays as long as somebody asks."""

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
        """One object's content. Raises `MissingObject` or `SourceError`."""
        with self._lock:
            process = self._running()
            self._ask(process, [oid])
            return self._answer(process)

    def many(self, oids: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Contents, asked for by the hundred; ends early at one that cannot be had,
        for `get` to tell why."""
        left = iter(oids)
        while chunk := list(islice(left, _AT_ONCE)):
            with self._lock:
                process = self._running()
                self._ask(process, chunk)
                found = []
                for oid in chunk:
                    try:
                        found.append((oid, self._answer(process)))
                    except SourceError:
                        # Further answers are on the way; the next one who asks gets
                        # a new process.
                        self._end()
                        break
            yield from found
            if len(found) < len(chunk):
                return

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _ask(self, process: subprocess.Popen[bytes], oids: list[str]) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write("".join(f"{oid}\n" for oid in oids).encode())
            process.stdin.flush()
        except OSError as error:
            raise SourceError(f"git ended: {error}") from error

    def _answer(self, process: subprocess.Popen[bytes]) -> bytes:
        assert process.stdout is not None
        try:
            answer = process.stdout.readline().split()
            if len(answer) != 3 or not answer[2].isdigit():
                raise MissingObject("the clone lacks this object")
            size = int(answer[2])
            reason = too_large(size)
            if reason:
                # Its bytes are on the way; the next object gets a new process.
                self._end()
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


def commit_of(clone: Path, revision: str) -> str:
    """The full name of the commit that a branch, a tag or a short name means.

    Raises:
        BadSource: no clone, no such revision, or no git.
    """
    if not clone.is_dir():
        raise BadSource(f"{clone} is not a directory; write git:PATH@REVISION")
    named = f"{revision}^{{commit}}"
    try:
        found = git(clone, "rev-parse", "--verify", "--end-of-options", named)
    except BadSource as error:
        if "needed a single revision" not in str(error).lower():
            raise
        raise BadSource(
            f"{clone} has no revision {revision}; a shallow clone has only those it "
            "fetched"
        ) from None
    # With --end-of-options some releases of git print that line as well.
    return found.decode().split()[-1]


def prefix_of(clone: Path) -> str:
    """Where in its repository a folder lies: empty or ending in `/`."""
    return git(clone, "rev-parse", "--show-prefix").decode().rstrip("\n")
