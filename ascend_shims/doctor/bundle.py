"""A support bundle: one archive with what a ticket needs, and nothing that it must not.

It is there whole or not at all, and for its owner alone.
"""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigurationError
from ..files import beside, write_new

__all__ = ["BundleError", "check_target", "pack", "write_bundle"]

_FOLDER = "shims-report"


class BundleError(ConfigurationError):
    """A bundle cannot be written where it was asked for."""


def pack(documents: Mapping[str, Any]) -> bytes:
    """A `.tar.gz` with one file of JSON for each document; a text stays one."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, document in documents.items():
            is_text = isinstance(document, str)
            text = document if is_text else json.dumps(document, indent=2) + "\n"
            data = text.encode()
            # Neither user nor time: the same content is the same archive.
            member = tarfile.TarInfo(f"{_FOLDER}/{name}")
            member.size, member.mode = len(data), 0o600
            tar.addfile(member, io.BytesIO(data))
    return gzip.compress(archive.getvalue(), mtime=0)


def check_target(path: Path, *, force: bool) -> None:
    """Raise `BundleError` where a bundle cannot be written to `path`."""
    if path.is_dir():
        raise BundleError(
            f"{path} is a directory; name a file in it: --report "
            f"{path / 'shims-report.tar.gz'}"
        )
    if not path.name.endswith((".tar.gz", ".tgz")):
        raise BundleError(
            f"{path} would be a tar.gz of another name; name it {path.stem}.tar.gz"
        )
    if not path.parent.is_dir():
        raise BundleError(
            f"there is no directory {path.parent}; make it, or name another file"
        )
    if os.path.lexists(path) and not force:
        raise BundleError(f"{path} is there already; name another file, or add --force")


def write_bundle(path: Path, data: bytes, *, force: bool) -> None:
    """Put `data` at `path`. Raises `BundleError`, also where it has come to be there
    meanwhile."""
    check_target(path, force=force)
    try:
        with beside(path) as made:
            # For its owner alone, whatever the umask.
            write_new(made, data, 0o600)
            _place(made, path, force=force)
    except OSError as error:
        raise BundleError(f"{path} cannot be written: {error.strerror}") from error


def _place(made: Path, path: Path, *, force: bool) -> None:
    if force:
        made.replace(path)
        return
    try:
        # Unlike a rename, this replaces nothing.
        os.link(made, path)
    except FileExistsError:
        check_target(path, force=False)
        raise
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        # A file system without such links.
        check_target(path, force=False)
        made.replace(path)
