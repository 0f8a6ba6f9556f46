"""Runs `shims` and says how many MB of memory that took at its most.

Arguments: words for `shims`; none: nothing is run.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from .answering import answer, arguments


def main(words: list[str]) -> float:
    if words:
        from ascend_shims.cli import main as shims

        with contextlib.redirect_stdout(io.StringIO()):
            shims(words)
    # Asked of the process itself: what its parent is told counts the parent's, too.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(peak) * 1024 / 1e6


if __name__ == "__main__":
    answer(main(arguments()))
