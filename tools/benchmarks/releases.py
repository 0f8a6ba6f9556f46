"""Which releases are asked about, and the words that ask."""

from __future__ import annotations

import functools

from ascend_shims.environment.versions import parse
from ascend_shims.upstream.sources import Sources

__all__ = ["COUNT", "RELEASE", "drift_words", "matrix_words"]

COUNT = 10
"""Releases of a matrix."""

RELEASE = "0.31.0"
"""For `drift`: one that is not locked itself, so that two releases are read, and of
which there is a build for CPUs, so that others can have it installed."""


def drift_words(release: str = RELEASE) -> list[str]:
    return ["drift", "--against", f"vllm=={release}", "--json"]


@functools.cache
def newest() -> tuple[str, ...]:
    """The newest releases, oldest first. Raises `SourceUnavailable`."""
    known = [version for text in Sources().releases("vllm") if (version := parse(text))]
    final = sorted(one for one in set(known) if not one.is_prerelease)
    return tuple(map(str, final[-COUNT:]))


def matrix_words() -> list[str]:
    return ["matrix", "--from", newest()[0], "--json"]
