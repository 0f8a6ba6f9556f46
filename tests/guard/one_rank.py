"""One rank of a test of several; run as `one_rank.py RANK FOLDER SCENARIO…`.

Prints a JSON object: of each scenario, how many steps began, and how the run ended.
The first exchange of a step stands for the collectives that upstream itself runs in it.
"""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from conftest import Rig

from ascend_shims.guard import watch as watching
from ascend_shims.guard.default import DefaultGuard
from ascend_shims.guard.protocol import GuardStopped
from ascend_shims.guard.ranks import Ranks
from ascend_shims.guard.source import SettingsSource

STEPS = 12
PATIENCE = timedelta(seconds=60)
"""For the other rank, which may be starting yet on a machine that is busy."""


def main(rank: int, folder: Path, scenario: str) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/rendezvous",
        rank=rank,
        world_size=2,
        timeout=PATIENCE,
    )
    group = dist.new_group(backend="gloo", timeout=PATIENCE)
    pipeline = scenario == "pipeline"
    ranks = Ranks(group, stages_behind=1 - rank if pipeline else 0)
    rig = Rig(folder)
    action = "report" if scenario == "report" else "stop"
    source = SettingsSource()
    source.settings = rig.settings({"nonfinite-logits": {"action": action}})
    guard = DefaultGuard(source, ranks=lambda: ranks)
    steps = 0

    def body() -> None:
        """A collective of upstream's own, that a rank must not meet alone."""
        nonlocal steps
        if not watching.watch_of(runner).inside:
            return
        steps += 1
        if not pipeline:
            dist.all_reduce(torch.tensor([steps]))
        elif rank == 0:
            sent.append(dist.isend(torch.tensor([steps]), dst=1))

    def hidden(rows: int) -> torch.Tensor:
        bad = rank == 1 and watching.watch_of(runner).counts.engine == 3
        return torch.full((rows, 4), torch.nan if bad else 0.0)

    sent: list[Any] = []
    runner = rig.runner(guard, hidden=hidden, body=body)
    told: dict[str, Any] = {"stopped": None}
    for number in range(STEPS):
        try:
            if scenario == "idle" and rank == 0 and number % 2:
                # A rank without work: upstream calls it with nothing to do, and
                # then has it keep up with the others.
                runner.body = lambda: None
                rig.step(runner)
                runner.body = body
                rig.idle(runner)
                continue
            if pipeline and rank == 1:
                # A stage waits for the one before it even to begin.
                dist.recv(torch.zeros(1, dtype=torch.int64), src=0)
            rig.step(runner, "a")
        except GuardStopped as order:
            told["stopped"] = str(order)
            break
    for work in sent:
        work.wait()
    dist.destroy_process_group()
    told["steps"] = steps
    told["lines"] = [line for line in rig.lines() if line["rank"] == rank]
    return told


if __name__ == "__main__":
    number, top = int(sys.argv[1]), Path(sys.argv[2])
    print(json.dumps({name: main(number, top / name, name) for name in sys.argv[3:]}))
