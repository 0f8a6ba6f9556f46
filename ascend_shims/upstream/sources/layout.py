"""Which of an archive's or a tree's files belong to the packages it carries."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

__all__ = ["Layout", "find_layout", "unsafe"]

_SIDE = frozenset(
    {
        *("benchmark", "benchmarks", "doc", "docs", "example", "examples"),
        *("build", "cmake", "csrc", "dist", "requirements", "script", "scripts"),
        *("test", "testing", "tests", "tool", "tools"),
    }
)
"""Folders of a checkout that may look like packages and are never installed."""


class Layout(NamedTuple):
    prefix: str
    """The import root: empty or ending in `/`."""
    packages: tuple[str, ...]
    """The top-level packages in it; empty: everything counts."""

    def inside(self, path: str) -> str | None:
        """`path` relative to the import root, or None where it does not count."""
        if not path.startswith(self.prefix):
            return None
        relative = path[len(self.prefix) :]
        if self.packages and relative.partition("/")[0] not in self.packages:
            return None
        return relative


def find_layout(paths: Iterable[str], packages: Collection[str] = ()) -> Layout:
    """Where the import root is, from the paths of its `.py` files.

    Args:
        packages: names to look for, wherever the shallowest of them lies. Where
            none is found: all packages at the top or else in `src`, apart from
            tests and the like.
    """
    folders = {
        path.removesuffix("__init__.py")[:-1]
        for path in paths
        if path.endswith("/__init__.py")
    }
    named = [f for f in folders if f.rpartition("/")[2] in packages]
    if named:
        nearest = min(named, key=lambda folder: (folder.count("/"), folder))
        head = nearest.rpartition("/")[0]
        prefix = f"{head}/" if head else ""
        return Layout(
            prefix, tuple(sorted(p for p in packages if prefix + p in folders))
        )
    for prefix in ("", "src/"):
        tops = {
            folder[len(prefix) :]
            for folder in folders
            if folder.startswith(prefix) and "/" not in folder[len(prefix) :]
        } - _SIDE
        if tops:
            return Layout(prefix, tuple(sorted(tops)))
    return Layout("", ())


def unsafe(path: str) -> str | None:
    """Why a name from an archive may not be used as a path; None where it may."""
    if not path or "\0" in path or "\\" in path or not path.isprintable():
        return "its name is not a plain path"
    if path.startswith("/") or path[1:2] == ":":
        return "its name is absolute"
    # By hand: an archive has thousands of names, and pathlib takes its time.
    parts = path.split("/")
    if ".." in parts:
        return "its name leads out of the archive"
    if "" in parts or "." in parts:
        return "its name is not a plain path"
    return None
