"""One rank of several; run as `one_rank.py RANK WORLD FOLDER SCENARIO…`.

Forms a group as upstream does, with layers of gaps around that, and prints by scenario
what came of it.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

import ascend_shims
from ascend_shims.errors import ShimsError
from ascend_shims.patches.rank_agreement import agree

PATIENCE = timedelta(seconds=600)

Carried = dict[str, str]
CARRIED: dict[str, list[Carried | None]] = {
    "file": [{"cos-sin": "v1", "kv-cache": "v1"}] * 3,
    "tcp": [{"cos-sin": "v1", "kv-cache": "v1"}] * 3,
    "versions": [{"cos-sin": "v1"}, {"cos-sin": "v2"}, {"cos-sin": "v1"}],
    "off": [
        {"cos-sin": "v1", "kv-cache": "v1"},
        {"kv-cache": "v1"},
        {"kv-cache": "v1"},
    ],
    "silent": [{"cos-sin": "v1"}, None, {"cos-sin": "v1"}],
    "not asked for": [{"cos-sin": "v1"}, {}, {"cos-sin": "v2"}],
}
"""By scenario: of each rank the gaps in force, or None for one without patches."""


def outcome(rank: int, world: int, folder: Path, scenario: str) -> str:
    carried = CARRIED[scenario][rank]
    os.environ.pop("ASCEND_SHIMS_RANKS", None)
    if scenario == "not asked for":
        os.environ["ASCEND_SHIMS_RANKS"] = "off"
    os.environ["ASCEND_SHIMS_RANKS_PATIENCE"] = "10" if scenario == "silent" else ""

    def upstream(backend: str) -> str:
        where = folder / scenario.replace(" ", "-")
        init = f"file://{where}"
        if scenario == "tcp":
            init = f"tcp://127.0.0.1:{(folder / 'port').read_text()}"
        dist.init_process_group(
            backend, init_method=init, rank=rank, world_size=world, timeout=PATIENCE
        )
        return "joined"

    init: Any = upstream
    for gap, version in (carried or {}).items():
        init = functools.partial(agree, gap, version, init)
    ascend_shims.apply(only=[*(carried or {})])
    try:
        init("gloo")
        if scenario in ("file", "tcp"):
            # Who holds the store is not to take it along before others have read.
            dist.barrier()
    except ShimsError as error:
        return str(error)
    else:
        return "same"
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    _, number, world, folder, *scenarios = sys.argv
    told = {s: outcome(int(number), int(world), Path(folder), s) for s in scenarios}
    print(json.dumps(told))
