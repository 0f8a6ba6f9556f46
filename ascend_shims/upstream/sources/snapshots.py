"""Every commit of a clone as a set of Python files, for whoever goes through many.

Neighbouring commits share nearly all of their folders, and git names a folder by
what is in it. So whatever was found out about a folder once (which files it has,
which of them hold a word) is true of every commit that has it.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..corpus import has_word
from ..source import SourceError
from .errors import BadSource
from .git import MissingObject, Objects
from .layout import find_layout, unsafe

__all__ = ["Commit", "Entry", "Snapshot", "Store"]

_HOPS = 8
_TEXT_BYTES = 96 << 20
"""Of file texts kept: three times all of the largest known upstream."""

_FOLDER, _LINK, _FILES = "40000", "120000", ("100644", "100755", "100664")


class Entry(NamedTuple):
    """What a folder has under one name."""

    mode: str
    oid: str


class Commit(NamedTuple):
    """What a commit says of itself."""

    oid: str
    tree: str
    author: str
    authored: str
    """As git writes it: seconds since 1970 and the zone, `1700000000 +0100`."""
    committed: str
    subject: str


class Store:
    """A clone's folders and texts, each read once."""

    def __init__(self, clone: Path) -> None:
        self.clone = clone
        self.objects = Objects(clone)
        self._folders: dict[str, dict[str, Entry]] = {}
        self._files: dict[str, tuple[str, ...]] = {}
        self._links: dict[str, tuple[str, ...]] = {}
        self._names: dict[str, str] = {}
        self._holders: dict[str, dict[str, tuple[str, ...]]] = {}
        self._held: dict[str, dict[str, bool]] = {}
        self._texts: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0

    # Objects ---------------------------------------------------------------------

    def _get(self, oid: str, what: str) -> bytes:
        try:
            return self.objects.get(oid)
        except MissingObject:
            raise BadSource(
                f"{self.clone} lacks {what} {oid[:12]}: it is a partial or a damaged "
                "clone, and nothing is fetched from here; make a full one with "
                "`git clone --mirror URL`"
            ) from None

    def commit(self, oid: str) -> Commit:
        """Raises `BadSource` where it is not there."""
        head, _, message = self._get(oid, "commit").partition(b"\n\n")
        said: dict[str, str] = {}
        for line in head.decode(errors="replace").split("\n"):
            key, _, value = line.partition(" ")
            said.setdefault(key, value)
        author, authored = _signed(said.get("author", ""))
        committed = _signed(said.get("committer", ""))[1]
        lines = message.decode(errors="replace").strip().splitlines()
        subject = lines[0] if lines else ""
        return Commit(oid, said["tree"], author, authored, committed, subject)

    def folder(self, oid: str) -> Mapping[str, Entry]:
        """What a folder has, in git's order. Raises `BadSource`."""
        known = self._folders.get(oid)
        if known is None:
            known = self._folders[oid] = dict(_entries(self._get(oid, "folder"), oid))
        return known

    def text(self, oid: str) -> bytes:
        """A file's content.

        Raises:
            SourceError: it is too large to be read.
            BadSource: the clone lacks it.
        """
        known = self._texts.get(oid)
        if known is not None:
            self._texts.move_to_end(oid)
            return known
        return self._keep(oid, self._get(oid, "file"))

    def _keep(self, oid: str, text: bytes) -> bytes:
        self._texts[oid] = text
        self._size += len(text)
        while self._size > _TEXT_BYTES and len(self._texts) > 1:
            _, dropped = self._texts.popitem(last=False)
            self._size -= len(dropped)
        return text

    # Folders as a whole ----------------------------------------------------------

    def files(self, oid: str) -> tuple[str, ...]:
        """All Python files beneath a folder, relative to it, sorted."""
        if oid not in self._files:
            found: list[str] = []
            for name, entry in self.folder(oid).items():
                if entry.mode == _FOLDER:
                    found += (f"{name}/{path}" for path in self.files(entry.oid))
                elif _is_source(name, entry):
                    found.append(name)
            self._files[oid] = tuple(found)
        return self._files[oid]

    def links(self, oid: str) -> tuple[str, ...]:
        """Those of the files that are symbolic links."""
        if oid not in self._links:
            found: list[str] = []
            for name, entry in self.folder(oid).items():
                if entry.mode == _FOLDER:
                    found += (f"{name}/{path}" for path in self.links(entry.oid))
                elif _is_source(name, entry) and entry.mode == _LINK:
                    found.append(name)
            self._links[oid] = tuple(found)
        return self._links[oid]

    def names(self, oid: str) -> str:
        """Names the list of all files beneath a folder."""
        if oid not in self._names:
            listed = "\n".join(self.files(oid)).encode(errors="surrogateescape")
            self._names[oid] = hashlib.blake2b(listed, digest_size=16).hexdigest()
        return self._names[oid]

    def holders(self, oid: str, word: str) -> tuple[str, ...]:
        """The files, links apart, whose text has the whole word."""
        known = self._holders.setdefault(word, {})
        if oid not in known:
            held = self._held.setdefault(word, {})
            if not held:
                # Later on there are only the few files that a commit changed.
                self._bring(oid)
            known[oid] = self._search(oid, word.encode(), known, held)
        return known[oid]

    def _search(
        self,
        oid: str,
        word: bytes,
        known: dict[str, tuple[str, ...]],
        held: dict[str, bool],
    ) -> tuple[str, ...]:
        found: list[str] = []
        for name, entry in self.folder(oid).items():
            if entry.mode == _FOLDER:
                if entry.oid not in known:
                    known[entry.oid] = self._search(entry.oid, word, known, held)
                found += (f"{name}/{path}" for path in known[entry.oid])
            elif _is_source(name, entry) and entry.mode != _LINK:
                if entry.oid not in held:
                    held[entry.oid] = self._holds(entry.oid, word)
                if held[entry.oid]:
                    found.append(name)
        return tuple(found)

    def _holds(self, oid: str, word: bytes) -> bool:
        try:
            return has_word(self.text(oid), word)
        except SourceError:
            return False

    def _bring(self, oid: str) -> None:
        """Read all files beneath a folder, with few questions to git."""
        wanted = dict.fromkeys(
            one for one in self._blobs(oid) if one not in self._texts
        )
        for one, text in self.objects.many(wanted):
            self._keep(one, text)

    def _blobs(self, oid: str) -> Iterator[str]:
        for name, entry in self.folder(oid).items():
            if entry.mode == _FOLDER:
                yield from self._blobs(entry.oid)
            elif _is_source(name, entry) and entry.mode != _LINK:
                yield entry.oid


class Snapshot:
    """One package as it is in one commit.

    Args:
        prefix: where in the repository to look, empty or ending in `/`.
    """

    def __init__(self, store: Store, tree: str, package: str, prefix: str = "") -> None:
        self.store = store
        self.package = package
        self.root = _package(store, tree, package, prefix)

    @property
    def identity(self) -> str:
        """Names its content: two commits of the same have the same package."""
        return self.root or ""

    @property
    def names(self) -> str:
        return self.store.names(self.root) if self.root else ""

    def __iter__(self) -> Iterator[str]:
        for path in self.store.files(self.root) if self.root else ():
            yield f"{self.package}/{path}"

    def entry(self, path: str) -> Entry | None:
        """What lies at a path relative to the import root."""
        first, *rest = path.split("/")
        if first != self.package or self.root is None:
            return None
        found = Entry(_FOLDER, self.root)
        for name in rest:
            if found.mode != _FOLDER:
                return None
            inside = self.store.folder(found.oid).get(name)
            if inside is None:
                return None
            found = inside
        return found

    def is_file(self, path: str) -> bool:
        """Whether a Python file of that path is there, or a link of that name."""
        entry = self.entry(path)
        return entry is not None and _is_source(posixpath.basename(path), entry)

    def file(self, path: str) -> Entry | None:
        """The file of that path, links followed as long as they stay inside.

        Raises `SourceError` where they lead nowhere.
        """
        place = path
        for _ in range(_HOPS):
            entry = self.entry(place)
            if entry is None or not _is_source(posixpath.basename(place), entry):
                if place == path:
                    return None
                raise SourceError("it links to nothing inside the packages")
            if entry.mode != _LINK:
                return entry
            target = self.store.text(entry.oid).decode(errors="replace")
            place = posixpath.normpath(posixpath.join(posixpath.dirname(place), target))
        raise SourceError("its links lead in a circle")

    def has_files(self, path: str) -> bool:
        """Whether there is a folder with Python files anywhere beneath it."""
        entry = self.entry(path)
        if entry is None or entry.mode != _FOLDER:
            return False
        return bool(self.store.files(entry.oid))

    def holding(self, word: str) -> Sequence[str]:
        """Paths of the files that have the whole word, sorted."""
        if self.root is None:
            return ()
        found = [f"{self.package}/{p}" for p in self.store.holders(self.root, word)]
        linked = [
            path
            for path in (f"{self.package}/{p}" for p in self.store.links(self.root))
            if self._link_holds(path, word.encode())
        ]
        return sorted([*found, *linked]) if linked else found

    def _link_holds(self, path: str, word: bytes) -> bool:
        try:
            entry = self.file(path)
            return entry is not None and has_word(self.store.text(entry.oid), word)
        except SourceError:
            return False


def _is_source(name: str, entry: Entry) -> bool:
    return name.endswith(".py") and (entry.mode in _FILES or entry.mode == _LINK)


def _package(store: Store, tree: str, package: str, prefix: str) -> str | None:
    """The folder of a package in a commit; None where there is none."""
    root = Entry(_FOLDER, tree)
    for name in prefix.split("/")[:-1]:
        found = store.folder(root.oid).get(name)
        if found is None or found.mode != _FOLDER:
            return None
        root = found
    # At the top of the repository no other place can be nearer.
    top = store.folder(root.oid).get(package)
    if top is not None and top.mode == _FOLDER:
        init = store.folder(top.oid).get("__init__.py")
        if init is not None and _is_source("__init__.py", init):
            return top.oid
    layout = find_layout(store.files(root.oid), (package,))
    if package not in layout.packages:
        return None
    place = root
    for name in f"{layout.prefix}{package}".split("/"):
        place = store.folder(place.oid)[name]
    return place.oid


def _entries(data: bytes, oid: str) -> Iterator[tuple[str, Entry]]:
    """A folder as git stores it: mode, name, and a name of the content in bytes."""
    size = len(oid) // 2
    at = 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        name = data[space + 1 : end].decode(errors="surrogateescape")
        mode = data[at:space].decode()
        at = end + 1 + size
        if unsafe(name) is None:
            yield name, Entry(mode, data[end + 1 : at].hex())


def _signed(line: str) -> tuple[str, str]:
    """`Name <mail> 1700000000 +0100` as who and when."""
    who, _, when = line.rpartition("> ")
    return (f"{who}>", when) if who else (line, "")
