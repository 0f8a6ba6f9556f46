"""Opening a registry that a variable of the environment names, if it is the user's own.

Whoever can write the file, or put another one in its place, decides what is patched in
every process that inherits the variable. So the file and its folder must belong to this
user or to root, and nobody else may write to them. What is checked is what is read: the
folder is opened, the file in it, and both are looked at through their descriptors.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from .problems import Problem, RegistryError

__all__ = ["check_own", "open_own", "problem_of"]

_LINKS = 40
"""As many as the kernel follows."""


def open_own(path: Path) -> int:
    """A descriptor of the file. Raises `RegistryError`, and `OSError` where it cannot
    be opened."""
    for folder in _folders_of_links(path):
        _check(folder, folder.stat())
    real = Path(os.path.realpath(path, strict=True))
    flags = os.O_RDONLY | os.O_CLOEXEC
    above = os.open(real.parent, flags | os.O_DIRECTORY)
    try:
        _check(real.parent, os.fstat(above))
        # A pipe would keep who opens it waiting, and a link was not there just now.
        flags |= os.O_NONBLOCK | os.O_NOFOLLOW
        file = os.open(real.name, flags, dir_fd=above)
    finally:
        os.close(above)
    try:
        _check(real, os.fstat(file))
    except BaseException:
        os.close(file)
        raise
    return file


def check_own(path: Path) -> None:
    """Raise `RegistryError` where others can change the file.

    One that cannot be opened is told of by who reads it.
    """
    with contextlib.suppress(OSError):
        os.close(open_own(path))


def problem_of(path: Path) -> str | None:
    """What keeps a file from being used where the environment names it, if anything."""
    try:
        check_own(path)
    except RegistryError as error:
        return str(error)
    return None


def _folders_of_links(path: Path) -> Iterator[Path]:
    """Where the links lie that lead to the file: there, each could be turned."""
    for _ in range(_LINKS):
        if not path.is_symlink():
            return
        yield Path(os.path.realpath(path.parent))
        path = path.parent / path.readlink()


def _check(path: Path, found: os.stat_result) -> None:
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in (0, os.geteuid()):
        _refuse(
            path,
            f"belongs to the user {found.st_uid}, who can change it",
            f"use a copy of your own, or `chown {os.geteuid()} {path}`",
        )
    if mode & stat.S_IWOTH:
        _refuse(
            path,
            f"can be written by everybody (mode {mode:04o})",
            f"`chmod o-w {path}`, or move the registry elsewhere",
        )
    if mode & stat.S_IWGRP and not _is_private(found.st_gid, found.st_uid):
        _refuse(
            path,
            f"can be written by the group {found.st_gid} (mode {mode:04o})",
            f"`chmod g-w {path}`, or move the registry elsewhere",
        )


def _is_private(group: int, user: int) -> bool:
    """Whether nobody but its owner is in a group, as with a group for each user."""
    import grp
    import pwd

    try:
        entry, owner = grp.getgrgid(group), pwd.getpwuid(user)
    except KeyError:
        return False
    others = {one.pw_name for one in pwd.getpwall() if one.pw_gid == group}
    return (
        owner.pw_gid == group
        and entry.gr_name == owner.pw_name
        and {*entry.gr_mem, *others} <= {owner.pw_name}
    )


def _refuse(path: Path, message: str, fix: str) -> NoReturn:
    message += "; ASCEND_SHIMS_REGISTRY names only what others cannot change"
    raise RegistryError([Problem(str(path), None, None, message, fix)])
