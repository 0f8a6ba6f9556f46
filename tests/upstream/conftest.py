from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import dedent

import pytest

from ascend_shims.upstream.source import SourceError
from ascend_shims.upstream.tree import Tree


class Texts:
    """A release made of strings; a bare string is the module `up.m`."""

    def __init__(self, files: str | Mapping[str, str], label: str) -> None:
        if isinstance(files, str):
            files = {"up/m.py": files}
        self._files = {"up/__init__.py": "", **files}
        self.label = label

    def paths(self) -> list[str]:
        return sorted(self._files)

    def read(self, path: str) -> bytes:
        try:
            return dedent(self._files[path]).encode()
        except KeyError:
            raise SourceError(f"no {path}") from None


TreeOf = Callable[..., Tree]


@pytest.fixture
def tree_of() -> TreeOf:
    def make(files: str | Mapping[str, str], label: str = "up 1.0") -> Tree:
        return Tree(Texts(files, label))

    return make
