"""Eight threads import while four apply and revert: for five seconds, or, with
`ASCEND_SHIMS_SOAK=1`, for thirty."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ..fresh import LONG
from .storm import IMPORTING, LEAST, REACHING

SOAK = os.environ.get("ASCEND_SHIMS_SOAK") == "1"
SECONDS = 30 if SOAK else 5


def test_threads_neither_wait_for_ever_nor_lose_or_double_a_layer(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.storm", str(SECONDS), str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=SECONDS + 5 * LONG,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["faults"] == []
    counts = told["done"]
    imports = [counts[f"importing {n}"] for n in range(IMPORTING)]
    rounds = [counts[f"reaching {n}"] for n in range(REACHING)]
    print(f"in {SECONDS} s: imports {imports}, rounds of apply and revert {rounds}")
    assert min(imports) >= LEAST
    assert min(rounds) >= LEAST
