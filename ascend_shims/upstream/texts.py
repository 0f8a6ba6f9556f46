"""The files of one release as text, each read at most once.

What cannot be read is a `Problem` of the release, never an exception: one bad file
must not hide the verdicts on all others.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from ascend_shims.upstream.corpus import Corpus, has_word
from ascend_shims.upstream.facts.record import Record
from ascend_shims.upstream.parsed import digest_of
from ascend_shims.upstream.source import Mark, Source, SourceError

__all__ = ["Problem", "Texts", "module_name"]

_LARGEST = 4 << 20
"""Bytes. Larger files are generated tables or an attack, and are not parsed."""


@dataclass(frozen=True)
class Problem:
    """A file that could not be used, and why."""

    path: str
    reason: str


def module_name(path: str) -> str:
    """`vllm/v1/__init__.py` -> `vllm.v1`."""
    parts = path.removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


class Texts:
    """All texts of one release, shared by every `Tree` of it."""

    is_indexed = False
    """Whether it is known at little cost which files hold a word."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.label = source.label
        self.paths: Mapping[str, str] = self._listed()
        self.problems: dict[str, Problem] = {}
        """By path; what was met so far, and no file that nobody asked for."""
        self.unread: set[str] = set()
        """Paths that could not be read this time, and may be the next."""
        self._texts: dict[str, bytes] = {}
        self._digests: dict[str, str] = {}
        self._mentions: dict[str, tuple[str, ...]] = {}

    def _listed(self) -> Mapping[str, str]:
        return {module_name(path): path for path in self._source.paths()}

    @property
    def identity(self) -> str | None:
        """Names the content of all files together, where that is known unread."""
        found: str | None = getattr(self._source, "identity", None)
        return found

    @property
    def records(self) -> Mapping[str, Record]:
        """Facts by symbol, where there is no text but a lock."""
        found: Mapping[str, Record] = getattr(self._source, "records", {})
        return found

    @cached_property
    def names(self) -> str:
        """Names the list of all files."""
        return digest_of("\n".join(self.paths.values()).encode())

    @property
    def is_far(self) -> bool:
        """Whether reading everything means fetching everything."""
        return bool(getattr(self._source, "is_far", False))

    def mark(self, module: str) -> Mark | None:
        """What is known of a module's content without reading it."""
        path = self.paths.get(module)
        mark = getattr(self._source, "mark", None)
        found: Mark | None = mark(path) if mark is not None and path else None
        return found

    @cached_property
    def packages(self) -> Container[str]:
        """Names that can be imported: modules, and every package around one."""
        found = set(self.paths)
        for name in self.paths:
            while (name := name.rpartition(".")[0]) and name not in found:
                found.add(name)
        return frozenset(found)

    def prefetch(self, modules: Iterable[str]) -> None:
        """Bring those of these modules here together that were not read before."""
        if "_corpus" not in self.__dict__:
            unread = [name for name in modules if name not in self._texts]
            self._prefetch([self.paths[n] for n in unread if n in self.paths])

    def _prefetch(self, paths: list[str]) -> None:
        prefetch = getattr(self._source, "prefetch", None)
        if prefetch is not None and paths:
            prefetch(paths)

    def text(self, module: str) -> bytes:
        """The bytes of a module; empty where there is none or it is unreadable."""
        if "_corpus" in self.__dict__:
            return self._corpus.text(module)
        if module not in self._texts:
            self._texts[module] = self._read(module)
        return self._texts[module]

    def digest(self, module: str) -> str:
        """Names the content of a module and its place; empty where there is none."""
        path = self.paths.get(module)
        if path is None:
            return ""
        if module not in self._digests:
            text = self.text(module)
            self._digests[module] = "" if path in self.unread else digest_of(text)
        return self._digests[module]

    def _read(self, module: str) -> bytes:
        path = self.paths.get(module)
        if path is None:
            return b""
        if module in self._texts:
            return self._texts.pop(module)
        try:
            text = self._source.read(path)
        except SourceError as error:
            self.problems[path] = Problem(path, str(error))
            self.unread.add(path)
            return b""
        if len(text) > _LARGEST:
            reason = f"{len(text)} bytes are more than are read of one file"
            self.problems[path] = Problem(path, reason)
            self.unread.add(path)
            return b""
        return text

    def holding(self, word: str) -> tuple[str, ...]:
        """Every module of the release that has the word as a whole word."""
        if word not in self._mentions:
            self._mentions[word] = tuple(self._corpus.holding(word.encode()))
        return self._mentions[word]

    def holding_among(self, word: str, modules: Iterable[str]) -> list[str]:
        """Those of the modules that have the word as a whole word."""
        needle = word.encode()
        modules = list(modules)
        self.prefetch(modules)
        return [name for name in modules if has_word(self.text(name), needle)]

    @cached_property
    def _corpus(self) -> Corpus:
        # A remote source reads all of it in a few requests, or each file in one.
        self._prefetch(list(self.paths.values()))
        return Corpus([(name, self._read(name)) for name in self.paths])
