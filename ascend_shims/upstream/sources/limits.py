"""How much of anything a source accepts, whoever wrote it."""

from __future__ import annotations

__all__ = [
    "CACHE_BYTES",
    "DIRECTORY_BYTES",
    "MEMBER_BYTES",
    "PACK_BYTES",
    "PAGE_BYTES",
    "TAR_BYTES",
]

_MIB = 1024 * 1024

MEMBER_BYTES = 16 * _MIB
"""One source file. The largest of the known upstreams has less than 1 MiB."""

PAGE_BYTES = 64 * _MIB
"""One project's page on an index, unpacked."""

DIRECTORY_BYTES = 8 * _MIB
"""A zip's central directory: some 80,000 members, ten times the largest known."""

PACK_BYTES = 512 * _MIB
"""All source files of one archive together, unpacked."""

TAR_BYTES = 4096 * _MIB
"""All that unpacking one sdist may produce, source or not."""

CACHE_BYTES = 1024 * _MIB
"""All that the cache keeps."""
