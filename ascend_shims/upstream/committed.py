"""A package as it is in one commit, for judges that go through many commits."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property

from .source import SourceError
from .sources.snapshots import Snapshot
from .texts import Texts, module_name

__all__ = ["CommitTexts"]


class _Source:
    """What `Texts` asks of a source."""

    def __init__(self, snapshot: Snapshot, label: str) -> None:
        self.label = label
        self._snapshot = snapshot

    @property
    def identity(self) -> str:
        return self._snapshot.identity

    def paths(self) -> Sequence[str]:
        return tuple(self._snapshot)

    def read(self, path: str) -> bytes:
        entry = self._snapshot.file(path)
        if entry is None:
            raise SourceError("there is no such file")
        return self._snapshot.store.text(entry.oid)


class _Modules(Mapping[str, str]):
    """Modules and their paths; one is looked up without listing all of them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def __getitem__(self, module: str) -> str:
        stem = module.replace(".", "/")
        # As where all are listed: a package hides a module of its name.
        for path in (f"{stem}/__init__.py", f"{stem}.py"):
            if self._snapshot.is_file(path):
                return path
        raise KeyError(module)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(map(module_name, self._snapshot)))

    def __len__(self) -> int:
        return len(list(iter(self)))


class _Packages(Container[str]):
    def __init__(self, modules: Mapping[str, str], snapshot: Snapshot) -> None:
        self._modules = modules
        self._snapshot = snapshot

    def __contains__(self, name: object) -> bool:
        return name in self._modules or self._snapshot.has_files(
            str(name).replace(".", "/")
        )


class CommitTexts(Texts):
    """All texts of one package in one commit."""

    is_indexed = True

    def __init__(self, snapshot: Snapshot, label: str) -> None:
        self._snapshot = snapshot
        super().__init__(_Source(snapshot, label))

    def _listed(self) -> Mapping[str, str]:
        return _Modules(self._snapshot)

    @cached_property
    def packages(self) -> Container[str]:
        return _Packages(self.paths, self._snapshot)

    @cached_property
    def names(self) -> str:
        return self._snapshot.names

    def digest(self, module: str) -> str:
        """git's own name of the content, which takes no reading."""
        path = self.paths.get(module)
        if path is None:
            return ""
        if module not in self._digests:
            try:
                entry = self._snapshot.file(path)
            except SourceError:
                entry = None
            # A link that leads nowhere does so in every commit that has it.
            self._digests[module] = entry.oid if entry is not None else "nowhere"
        return self._digests[module]

    def holding(self, word: str) -> tuple[str, ...]:
        if word not in self._mentions:
            found = ((module_name(path), path) for path in self._snapshot.holding(word))
            self._mentions[word] = tuple(
                name for name, path in found if self.paths.get(name) == path
            )
        return self._mentions[word]
