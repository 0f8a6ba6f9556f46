"""What calling a function gives."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest

from ascend_shims.engine.nature import Nature, nature


def plain() -> None:
    """Returns at once."""


async def coroutine() -> None:
    """Is awaited."""


def generator() -> Generator[None]:
    yield


async def async_generator() -> AsyncGenerator[None]:
    yield


class Kind:
    async def method(self) -> None:
        """Is awaited, bound and not."""


TABLE = [
    (plain, Nature.PLAIN),
    (coroutine, Nature.COROUTINE),
    (generator, Nature.GENERATOR),
    (async_generator, Nature.ASYNC_GENERATOR),
    (functools.partial(generator), Nature.GENERATOR),
    (functools.partial(plain), Nature.PLAIN),
    (Kind().method, Nature.COROUTINE),
    (Kind.method, Nature.COROUTINE),
    (len, Nature.PLAIN),
    (Kind, Nature.PLAIN),
    # What it stands in front of does not count: it returns at once.
    (functools.wraps(coroutine)(lambda: None), Nature.PLAIN),
]


@pytest.mark.parametrize(("function", "expected"), TABLE)
def test_nature(function: Any, expected: Nature) -> None:
    assert nature(function) is expected


@pytest.mark.skipif(sys.version_info < (3, 12), reason="none can be marked")
def test_one_that_is_marked_is_awaited() -> None:
    def marked() -> None:
        """Returns something that can be awaited."""

    assert nature(inspect.markcoroutinefunction(marked)) is Nature.COROUTINE  # type: ignore[attr-defined, unused-ignore]
