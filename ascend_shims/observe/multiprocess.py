"""A place on the page that several processes share.

In prometheus_client's multi-process mode a page is made of files that hold numbers, and
no collector is asked but `MultiProcessCollector`. A number in a file is as old as the
write, and stays when its process is killed; ours come with what that collector finds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["MULTIPROCESS", "beside"]

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client's variable: one page of metrics stands for several processes."""


def beside(owner: type, ours: Callable[[], Iterator[Any]]) -> Callable[[], None]:
    """Have a collector's class tell `ours` as well; the result ends that."""
    theirs = vars(owner)["collect"]

    @functools.wraps(theirs)
    def collect(self: Any) -> Iterator[Any]:
        yield from theirs(self)
        yield from ours()

    owner.collect = collect  # type: ignore[attr-defined]

    def end() -> None:
        # Where somebody stands on top of ours, it stays beneath and says nothing.
        if vars(owner).get("collect") is collect:
            owner.collect = theirs  # type: ignore[attr-defined]

    return end
