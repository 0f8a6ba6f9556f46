"""Why a source as a whole cannot be used.

What concerns one file of a source is a `SourceError`, raised by `read`; the rest
of that source stays readable.
"""

from __future__ import annotations

from ...errors import ConfigurationError

__all__ = [
    "AccessRefused",
    "BadSource",
    "HostRefused",
    "IndexUnreachable",
    "NoSuchRelease",
    "NotCached",
    "SourceUnavailable",
]


class SourceUnavailable(ConfigurationError):
    """Nothing can be read from this source."""


class BadSource(SourceUnavailable):
    """The text names no source, or what it names is not one."""


class NoSuchRelease(SourceUnavailable):
    """No configured index offers what was asked for."""


class IndexUnreachable(SourceUnavailable):
    """An index or a file's host does not answer, or not with what was asked."""


class AccessRefused(SourceUnavailable):
    """A server wants credentials, or does not accept those given."""


class HostRefused(SourceUnavailable):
    """Going on would contact a host that nobody configured."""


class NotCached(SourceUnavailable):
    """Offline, and the cache does not hold it."""
