"""Opening a registry that a variable of the environment names, if it is the user's own.

Whoever can write the file, or put another one in its place, decides what is patched in
every process that inherits the variable. Another one can be put in its place by who can
write to any folder on the way to it, or turn a link there. So each of these, from the
root on, must belong to this user or to root, and nobody else may write to it. In a
folder like `/tmp` everybody may write, and rename only what is his own: that will do
further up, where what comes next is looked at as well.

What is checked is what is read: each step is taken from the folder that was opened and
looked at, and never by a path again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import NoReturn

from .problems import Problem, RegistryError

__all__ = ["check_own", "open_own", "problem_of"]

_LINKS = 40
"""As many as the kernel follows."""

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""To look at something, link or not. Of a folder nothing more is needed than that it
may be passed."""


def open_own(path: Path) -> int:
    """A descriptor of the file. Raises `RegistryError`, and `OSError` where it cannot
    be opened."""
    with contextlib.ExitStack() as opened:
        return _Way(opened).open(path.absolute())


class _Way:
    """The way from the root to a file, one step after the other."""

    def __init__(self, opened: contextlib.ExitStack) -> None:
        self._opened = opened
        self._links = 0
        self._here, self._folder = Path("/"), -1
        self._enter(Path("/"), self._keep(os.open("/", _LOOK)))

    def open(self, path: Path) -> int:
        """What is at the end of the way, opened to be read."""
        waiting = [*reversed(path.parts[1:])]
        while waiting:
            name = waiting.pop()
            step = self._step(name, is_last=not waiting)
            mode = os.fstat(step).st_mode
            if stat.S_ISLNK(mode):
                self._follow(Path(os.readlink("", dir_fd=step)), waiting)
            elif waiting:
                self._enter(
                    self._here.parent if name == ".." else self._here / name, step
                )
            else:
                return self._end(name)
        # The root itself, or a path that ends with dots.
        return os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)

    def _step(self, name: str, *, is_last: bool) -> int:
        if not is_last:
            # Asked for a folder, the kernel mounts what is mounted when it is needed.
            with contextlib.suppress(NotADirectoryError):
                flags = _LOOK | os.O_DIRECTORY
                return self._keep(os.open(name, flags, dir_fd=self._folder))
        return self._keep(os.open(name, _LOOK, dir_fd=self._folder))

    def _keep(self, descriptor: int) -> int:
        self._opened.callback(os.close, descriptor)
        return descriptor

    def _enter(self, here: Path, folder: int) -> None:
        _check(here, os.fstat(folder), is_passed=True)
        self._here, self._folder = here, folder

    def _follow(self, target: Path, waiting: list[str]) -> None:
        # Here it could be turned, also where only its owner can take it away: put
        # back once it is gone.
        _check(self._here, os.fstat(self._folder))
        self._links += 1
        if self._links > _LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(self._here))
        if target.is_absolute():
            self._enter(Path("/"), self._keep(os.open("/", _LOOK)))
        waiting += reversed(target.parts[1:] if target.is_absolute() else target.parts)

    def _end(self, name: str) -> int:
        _check(self._here, os.fstat(self._folder))
        # A pipe would keep who opens it waiting, and a link was not there just now.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
        file = os.open(name, flags, dir_fd=self._folder)
        try:
            _check(self._here / name, os.fstat(file))
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


def _check(path: Path, found: os.stat_result, *, is_passed: bool = False) -> None:
    """Refuse what others can change. `is_passed`: a folder in which only the name that
    comes next counts, and nobody but its owner can take that away if it is sticky."""
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in (0, os.geteuid()):
        _refuse(
            path,
            f"belongs to the user {found.st_uid}, who can change it",
            f"use a copy of your own, or `chown {os.geteuid()} {path}`",
        )
    if is_passed and mode & stat.S_ISVTX:
        return
    if mode & stat.S_IWOTH:
        _refuse(
            path,
            f"can be written by everybody (mode {mode:04o})",
            f"`chmod o-w {path}`, or move the registry elsewhere",
        )
    owners = (found.st_uid, os.geteuid())
    if mode & stat.S_IWGRP and not any(_is_private(found.st_gid, o) for o in owners):
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
