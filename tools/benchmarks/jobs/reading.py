"""What a check had to read of an index, and how fast that comes by itself.

Arguments: words for `shims`, how often the bytes are fetched anew.
"""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ascend_shims.cli import main as shims
from ascend_shims.upstream.sources.remote import RemoteBlocks, RemoteFile
from ascend_shims.upstream.sources.zips import Member

from .answering import answer, arguments


class _Watched:
    """Notes the members that are asked for, of each remote file."""

    def __init__(self) -> None:
        self.files: dict[str, RemoteFile] = {}
        self.members: dict[str, dict[str, int]] = defaultdict(dict)

    def __enter__(self) -> _Watched:
        self._stock = RemoteBlocks.get

        def get(blocks: RemoteBlocks, members: Sequence[Member]) -> Any:
            file = blocks._file
            self.files[file.link.url] = file
            mine = self.members[file.link.url]
            mine |= {member.path: member.packed for member in members}
            return self._stock(blocks, members)

        kind: Any = RemoteBlocks
        kind.get = get
        return self

    def __exit__(self, *_: object) -> None:
        kind: Any = RemoteBlocks
        kind.get = self._stock


def main(words: list[str], times: int) -> dict[str, Any]:
    printed = io.StringIO()
    with _Watched() as watched, contextlib.redirect_stdout(printed):
        shims(words)
    needed = {url: sum(sizes.values()) for url, sizes in watched.members.items()}
    floors = []
    for _ in range(times):
        start = time.perf_counter()
        for url, size in needed.items():
            # From the start on: what is at the end may have been kept.
            watched.files[url].fetch(0, size)
        floors.append(time.perf_counter() - start)
    return {
        "bytes": sum(needed.values()),
        "members": sum(map(len, watched.members.values())),
        "seconds": floors,
        "costs": json.loads(printed.getvalue())["costs"],
    }


if __name__ == "__main__":
    answer(main(*arguments()))
