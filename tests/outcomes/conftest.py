"""The fixture `up`: an upstream with one of each, patched by one gap, not applied."""

from __future__ import annotations

import pytest

from ..engine.conftest import own_process, world  # noqa: F401 - fixtures
from ..engine.world import P, World

__all__ = ["up"]

UP = """
    import functools

    def f(x=1):
        return x

    class C:
        def __init__(self, x=1):
            self.x = x
        def m(self):
            return self.x
        @staticmethod
        def s():
            return 1
        @classmethod
        def k(cls):
            return 1
        @property
        def p(self):
            return self.x

    class Sub(C):
        pass

    @functools.lru_cache
    def cached():
        return 1
"""

TARGETS = ("f", "C.m", "C.s", "C.k", "C.p", "cached")


@pytest.fixture
def up(own_process: World) -> World:  # noqa: F811
    own_process.upstream(UP)
    own_process.gap("one", *(P(f"a:{target}") for target in TARGETS))
    own_process.registry_file()
    return own_process
