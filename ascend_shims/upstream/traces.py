"""Verdicts, kept with everything that they were read from.

A trace is what judges asked the two releases, the answers, and the verdicts. Where
another release gives the same answers, the verdicts are the same: nothing is parsed,
in this process or, through the cache, in a later one. It does not matter whether the
release is a wheel, a directory or a dirty clone: what was read decides.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Protocol

import msgspec

from .parsed import digest_of
from .texts import Problem
from .tree import Tree
from .verdict import Location, Verdict

__all__ = ["NEW", "OLD", "Kept", "Trace", "Traces", "about", "called", "judging_code"]

OLD, NEW = "\0old\0", "\0new\0"
"""What the releases are called while they are judged: the same trace serves many."""

_MOST = 400
"""Traces of one baseline; those unused for longest go first."""


class Kept(Protocol):
    """Where entries outlive the process."""

    def get(self, kind: str, *key: str) -> bytes | None: ...

    def put(self, kind: str, *key: str, data: bytes) -> bool: ...


class Trace(msgspec.Struct, frozen=True):
    """The verdicts on some things relied on, and what they depend on."""

    about: str
    """Names the things relied on, in their order, and the lock's hints."""
    old: dict[str, str]
    """Questions about the baseline, and answers."""
    new: dict[str, str]
    verdicts: tuple[Verdict, ...]
    problems: tuple[Problem, ...]
    """Files of the release that could not be parsed."""

    def fits(self, old: Tree, new: Tree) -> bool:
        """Whether these releases give the same answers."""
        return all(
            tree.answer(question) == answer
            for tree, answers in ((new, self.new), (old, self.old))
            for question, answer in answers.items()
        )

    def verdicts_for(self, old: str, new: str) -> list[Verdict]:
        """The verdicts, with the releases called by their labels."""
        return [called(verdict, old, new) for verdict in self.verdicts]


def called(verdict: Verdict, old: str, new: str) -> Verdict:
    """A verdict, with the releases called by these labels."""

    def named(text: str) -> str:
        return text.replace(OLD, old).replace(NEW, new)

    def placed(location: Location | None) -> Location | None:
        if location is None:
            return None
        return replace(location, release=named(location.release))

    return replace(
        verdict,
        sentence=named(verdict.sentence),
        old=placed(verdict.old),
        new=placed(verdict.new),
    )


class Traces:
    """The traces of one baseline, those of earlier processes too."""

    def __init__(self, kept: Kept | None, baseline: str) -> None:
        self._kept = kept if judging_code() else None
        self._baseline = baseline
        self._changed = False
        self._traces = self._load()

    def _key(self) -> tuple[str, str]:
        return (judging_code(), self._baseline)

    def _load(self) -> list[Trace]:
        if self._kept is None:
            return []
        data = self._kept.get("verdicts", *self._key())
        if data is None:
            return []
        try:
            return msgspec.msgpack.decode(data, type=list[Trace])
        except msgspec.DecodeError:
            return []

    def find(self, about: str, old: Tree, new: Tree) -> Trace | None:
        """The trace about these things that fits these releases."""
        for trace in self._traces:
            if trace.about == about and trace.fits(old, new):
                self._traces.remove(trace)
                self._traces.insert(0, trace)
                return trace
        return None

    def add(self, trace: Trace) -> None:
        self._traces.insert(0, trace)
        del self._traces[_MOST:]
        self._changed = True

    def save(self) -> None:
        """Keep what was added, beside what other processes added meanwhile."""
        if not self._changed or self._kept is None:
            return
        mine = {msgspec.msgpack.encode(trace): trace for trace in self._traces}
        for trace in self._load():
            mine.setdefault(msgspec.msgpack.encode(trace), trace)
        data = msgspec.msgpack.encode(list(mine.values())[:_MOST])
        self._kept.put("verdicts", *self._key(), data=data)
        self._changed = False


@cache
def judging_code() -> str:
    """Names the code that judges: other code may come to other verdicts.

    What reads sources is left out, it decides nothing. Empty where the code is not
    there as files.
    """
    here = Path(__file__).parent
    files = [path for path in here.rglob("*.py") if path.parent.name != "sources"]
    if not files:
        return ""
    found = hashlib.sha256(repr(sys.version_info[:3]).encode())
    for path in sorted(files):
        text = path.read_bytes()
        found.update(f"{path.relative_to(here).as_posix()} {len(text)}\n".encode())
        found.update(text)
    return found.hexdigest()


def about(things: Sequence[object], hints: Sequence[object]) -> str:
    """Names what is judged: the things relied on, and what the lock says of them."""
    return digest_of(repr((tuple(things), tuple(hints))).encode())
