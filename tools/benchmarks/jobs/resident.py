"""How many MB of memory a process holds.

Arguments: whether gaps are applied; none of upstream is loaded, so all of them wait.
"""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path

from .answering import answer, arguments


def main(engine: bool) -> float:
    if engine:
        import ascend_shims

        report = ascend_shims.apply()
        waiting = [gap for gap in report.gaps if gap.state.value == "pending"]
        if not waiting or "torch" in sys.modules:
            states = [(gap.id, gap.state.value) for gap in report.gaps]
            raise RuntimeError(f"nothing waits, or torch was imported: {states}")
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (held,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
    return int(held) * 1024 / 1e6


if __name__ == "__main__":
    answer(main(*arguments()))
