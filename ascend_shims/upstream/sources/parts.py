"""A wheel of which it is known beforehand where the files lie that a check reads.

The list of a wheel's files takes more bytes than most checks read of them. A lock says
where those lie that are read of a baseline, so that the list is fetched only when
somebody asks for another file. The wheel is named by its hash: where an index offers
any other, nothing of this holds and nobody goes by it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from ..source import Mark, SourceError
from .errors import SourceUnavailable
from .meter import Stats
from .remote import NoRanges
from .zips import Listing, Member, ZipSource

__all__ = ["Part", "PartSource", "part_of"]


class Part(msgspec.Struct, frozen=True):
    """Where a wheel has some of its files, as a lock writes it."""

    hash: str
    """`sha256=…`, of the wheel."""
    members: Mapping[str, str]
    """By path: offset, offset after it, size packed and unpacked, CRC, method."""
    roots: tuple[str, ...]
    """All top-level packages and modules in it."""
    absent: tuple[str, ...] = ()
    """Modules that one may look for, and that are not in it."""

    def listing(self) -> Listing | None:
        """Those files; None where there are none, or a place is not one."""
        try:
            members = [
                Member(path, *map(int, place.split()))
                for path, place in sorted(self.members.items())
            ]
        except (TypeError, ValueError):
            return None
        return Listing(tuple(members), {}) if members else None


def part_of(source: object, read: Iterable[str], sought: Iterable[str]) -> Part | None:
    """Of a wheel with a hash, where it has the files `read`; None of another source.

    Args:
        sought: modules that one may look for.
    """
    if not isinstance(source, ZipSource) or not source.identity:
        return None
    modules = {_module(path) for path in source.paths()}
    places = {path: msgspec.structs.astuple(source.place(path)) for path in read}
    members = {path: " ".join(map(str, place[1:])) for path, place in places.items()}
    return Part(
        source.identity,
        members,
        tuple(sorted({module.partition(".")[0] for module in modules})),
        tuple(sorted(set(sought) - modules)),
    )


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class PartSource:
    """A wheel whose list of files is fetched when it is needed.

    Args:
        known: the files whose places are known.
        whole: opens all of it.

    Raises:
        SourceError: the server does not give parts of it, or others than were locked.
    """

    is_far = True

    def __init__(
        self, part: Part, known: ZipSource, whole: Callable[[], ZipSource]
    ) -> None:
        self.label, self.version, self.notes = known.label, known.version, known.notes
        self.identity = known.identity
        self.problems: Mapping[str, str] = {}
        self._part = part
        self._known = known
        self._whole = whole
        self._complete: ZipSource | None = None
        self._lock = threading.Lock()
        self._files = {_module(path): path for path in known.paths()}
        # Whether parts can be had at all, and are what was locked.
        known.read(min(known.paths(), key=lambda path: known.place(path).packed))

    @property
    def stats(self) -> Stats:
        return self._known.stats

    def path_of(self, module: str) -> str | None:
        """The file of a module; None where there is none."""
        known = self._files.get(module)
        if known is not None or self._lacks(module):
            return known
        here = module.replace(".", "/")
        files = self._all()
        candidates = (f"{here}/__init__.py", f"{here}.py")
        return next((path for path in candidates if files.mark(path)), None)

    def is_package(self, name: str) -> bool:
        """Whether the name can be imported: a module, or a package around one."""
        inside = f"{name}."
        if name in self._files or any(one.startswith(inside) for one in self._files):
            return True
        if self._lacks(name):
            return False
        modules = map(_module, self._all().paths())
        return any(one == name or one.startswith(inside) for one in modules)

    def is_there(self, path: str) -> bool:
        """Whether it has a file of that path."""
        return self.path_of(_module(path)) == path

    def paths(self) -> Sequence[str]:
        return self._all().paths()

    def mark(self, path: str) -> Mark | None:
        return self._of(path).mark(path)

    def read(self, path: str) -> bytes:
        return self._of(path).read(path)

    def prefetch(self, paths: Iterable[str]) -> None:
        wanted = list(paths)
        known = [path for path in wanted if self._known.mark(path)]
        self._known.prefetch(known)
        rest = [path for path in wanted if path not in known]
        if rest:
            self._all().prefetch(rest)

    def _of(self, path: str) -> ZipSource:
        return self._known if self._known.mark(path) else self._all()

    def _lacks(self, module: str) -> bool:
        """Whether it is known without the list that there is no such module."""
        *outer, _ = parts = module.split(".")
        if parts[0] not in self._part.roots:
            return True
        around = [".".join(parts[:count]) for count in range(1, len(outer) + 1)]
        files = (self._files.get(name, "") for name in around)
        return not set(self._part.absent).isdisjoint([*around, module]) or any(
            file and not file.endswith("/__init__.py") for file in files
        )

    def _all(self) -> ZipSource:
        """With the list of files, or with those that are known if it cannot be had."""
        with self._lock:
            if self._complete is None:
                try:
                    self._complete = self._whole()
                    self.problems = self._complete.problems
                except (SourceUnavailable, SourceError, NoRanges) as error:
                    reason = str(error) or "the server stopped giving parts of the file"
                    self._complete = self._known
                    self.problems = {self.label: f"its list of files: {reason}"}
            return self._complete
