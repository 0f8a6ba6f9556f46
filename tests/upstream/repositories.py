"""Made-up git repositories of any shape, written in one go by `git fast-import`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Made", "commit_all", "git", "import_history"]

_WHO = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "file",
}


def git(where: Path, *arguments: str, data: bytes | None = None) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=where,
        env={**os.environ, **_WHO},
        check=True,
        capture_output=True,
        input=data,
    )
    return done.stdout.decode().strip()


@dataclass(frozen=True)
class Made:
    """A commit to be made."""

    parents: tuple[int, ...]
    """Positions of earlier ones in the list."""
    files: Mapping[str, bytes]
    """All files that it has: nothing is inherited."""
    subject: str = "change"
    date: int = 1_700_000_000
    author: str = "A U Thor <author@example.invalid>"


def import_history(
    where: Path, history: Sequence[Made], tags: Mapping[str, int] | None = None
) -> list[str]:
    """Make a repository of these commits; `main` is the last. Gives their names."""
    where.mkdir(parents=True, exist_ok=True)
    git(where, "init", "-q", "-b", "main")
    git(where, "config", "gc.auto", "0")
    blobs: dict[bytes, int] = {}
    out = [b"feature done\n"]
    for text in (text for made in history for text in made.files.values()):
        if text not in blobs:
            blobs[text] = len(history) + len(blobs) + 1
            out.append(b"blob\nmark :%d\ndata %d\n" % (blobs[text], len(text)))
            out += [text, b"\n"]
    for number, made in enumerate(history):
        subject = made.subject.encode()
        out.append(b"commit refs/heads/work\nmark :%d\n" % (number + 1))
        # Author and committer disagree, and neither is in order with the parents.
        out.append(b"author %s %d +0130\n" % (made.author.encode(), made.date))
        out.append(b"committer C <c@example.invalid> %d +0000\n" % (2 * 10**9))
        out.append(b"data %d\n%s\n" % (len(subject), subject))
        for place, parent in enumerate(made.parents):
            word = b"merge" if place else b"from"
            out.append(b"%s :%d\n" % (word, parent + 1))
        out.append(b"deleteall\n")
        for path, text in made.files.items():
            out.append(b"M 100644 :%d %s\n" % (blobs[text], path.encode()))
        out.append(b"\n")
        # A commit without `from` would otherwise go on from the branch's tip.
        out.append(b"reset refs/heads/work\n\n")
    out.append(b"done\n")
    marks = where / "marks"
    stream = b"".join(out)
    git(where, "fast-import", "--quiet", f"--export-marks={marks}", data=stream)
    named = dict(line.split() for line in marks.read_text().splitlines())
    marks.unlink()
    commits = [named[f":{number + 1}"] for number in range(len(history))]
    git(where, "update-ref", "refs/heads/main", commits[-1])
    for tag, number in (tags or {}).items():
        git(where, "tag", tag, commits[number])
    return commits


def commit_all(where: Path, files: Mapping[str, bytes | None], subject: str) -> str:
    """Commit these changes in a work tree; None takes a file away."""
    for name, data in files.items():
        path = where / name
        if data is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    git(where, "add", "-A")
    git(where, "commit", "-qm", subject)
    return git(where, "rev-parse", "HEAD")
