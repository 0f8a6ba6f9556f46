"""Where upstream source text comes from: indexes, archives, folders, git clones."""

from .errors import SourceUnavailable
from .meter import Stats
from .opening import OpenedSource, Sources, open_source
from .progress import Bar, Progress
from .settings import IndexSettings

__all__ = [
    "Bar",
    "IndexSettings",
    "OpenedSource",
    "Progress",
    "SourceUnavailable",
    "Sources",
    "Stats",
    "open_source",
]
