"""What was read once, kept on disk.

Entries are immutable: a key says which content it stands for, so two processes
that write the same entry write the same bytes, and whichever rename comes last
changes nothing. Each entry carries its own digest, so that a damaged one counts
as absent.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...files import beside, make_folder
from .limits import CACHE_BYTES

__all__ = ["Cache", "cache_directory"]

_MAGIC = b"ascend-shims 1 "
_HEADER = len(_MAGIC) + 64 + 1
_TEMPORARY = "tmp-"
_ABANDONED_SECONDS = 3600
_USED_SECONDS = 86400


def cache_directory(environ: Mapping[str, str]) -> Path | None:
    """Where the cache lies: `ASCEND_SHIMS_CACHE`, else XDG's place.

    None where the variable says `off` or the user has no home.
    """
    chosen = environ.get("ASCEND_SHIMS_CACHE", "").strip()
    if chosen:
        return None if chosen.lower() == "off" else Path(chosen).expanduser()
    base = environ.get("XDG_CACHE_HOME", "")
    if base.startswith("/"):
        return Path(base) / "ascend-shims"
    home = environ.get("HOME", "")
    return Path(home) / ".cache" / "ascend-shims" if home.startswith("/") else None


class Cache:
    """A folder of entries; every fault of the disk reads as "not there".

    Args:
        root: the folder, created when needed. None: keeps nothing.
        limit: bytes to keep; the entries unused for longest go first.
    """

    def __init__(self, root: Path | None, limit: int = CACHE_BYTES) -> None:
        # A folder of our own inside the user's, since trimming deletes.
        self.root = root / "sources" if root else None
        self._limit = limit
        self._lock = threading.Lock()
        self._untrimmed: int | None = None

    def _path(self, kind: str, key: tuple[str, ...]) -> Path | None:
        if self.root is None:
            return None
        name = hashlib.sha256("\0".join(key).encode()).hexdigest()
        return self.root / kind / name[:2] / name[2:]

    def get(self, kind: str, *key: str) -> bytes | None:
        """The entry's bytes, or None where it is absent or damaged."""
        path = self._path(kind, key)
        if path is None:
            return None
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        data = raw[_HEADER:]
        digest = hashlib.sha256(data).hexdigest().encode()
        if raw[:_HEADER] != _MAGIC + digest + b"\n":
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _USED_SECONDS:
                os.utime(path)
        return data

    def put(self, kind: str, *key: str, data: bytes) -> bool:
        """Keep an entry. False where that was not possible."""
        path = self._path(kind, key)
        if path is None:
            return False
        digest = hashlib.sha256(data).hexdigest().encode()
        try:
            make_folder(path.parent)
            with beside(path, prefix=_TEMPORARY) as temporary:
                temporary.touch(0o600, exist_ok=False)
                temporary.write_bytes(_MAGIC + digest + b"\n" + data)
                temporary.replace(path)
        except OSError:
            return False
        self._written(len(data) + _HEADER)
        return True

    def refused(self) -> str | None:
        """Why nothing can be kept; None where it can, or is not to be.

        Tries, and leaves nothing behind.
        """
        if self.root is None:
            return None
        # What is missing of the folder is made in the first one that is there.
        there = next(p for p in (self.root, *self.root.parents) if os.path.lexists(p))
        try:
            with tempfile.TemporaryFile(dir=there):
                return None
        except OSError as error:
            return f"{self.root.parent} cannot be written ({error.strerror})"

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """An empty file of our own that is gone afterwards, unless renamed."""
        try:
            if self.root is not None:
                make_folder(self.root)
            handle, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=self.root)
        except OSError:
            handle, name = tempfile.mkstemp(prefix=f"ascend-shims-{_TEMPORARY}")
        os.close(handle)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    def _written(self, size: int) -> None:
        with self._lock:
            # Looking at every entry costs, so it happens at the first write of a
            # process and then once for each sixteenth of the limit.
            due = self._untrimmed is None or self._untrimmed > self._limit // 16
            self._untrimmed = 0 if due else (self._untrimmed or 0) + size
        if due:
            self.trim()

    def trim(self) -> None:
        """Bring the folder below its limit, and clear what a killed process left."""
        if self.root is None:
            return
        now = time.time()
        entries = []
        for path in self.root.rglob("*"):
            with contextlib.suppress(OSError):
                status = path.lstat()
                if path.is_dir() and not path.is_symlink():
                    continue
                if path.name.startswith(_TEMPORARY):
                    if now - status.st_mtime > _ABANDONED_SECONDS:
                        path.unlink()
                    continue
                entries.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        if total <= self._limit:
            return
        for _, size, path in sorted(entries, key=lambda entry: entry[0]):
            with contextlib.suppress(OSError):
                path.unlink()
            total -= size
            if total <= self._limit * 3 // 4:
                return
