"""A small model on upstream's CPU backend, with all gaps and without."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from .children import ChildError, Ran, Server, rig, run
from .children import job as job_words
from .figures import Pair, in_turns, ratio_of_groups, spread
from .making import Benchmark, Effort, at_least, at_most, row
from .model import Row

__all__ = ["STARTING", "TOKENS"]

_LEAST_SPEED, _MOST_START = 0.99, 1.02

_PROMPTS = [list(range(3 + i, 3 + i + n)) for i, n in enumerate((5, 17, 33, 9))]
_TOKENS = 8
"""For each prompt and turn: a third of a second. What else the machine does changes
within seconds, so that long turns meet it unequally."""

_STOCK = {"VLLM_PLUGINS": "ascend_shims_rig"}
"""What runs Triton's kernels on a CPU is needed by both; the shims are not asked."""
_SHIMS = {"VLLM_PLUGINS": "ascend_shims,ascend_shims_rig"}
"""The same, so that plugins of vLLM's own are imported in neither."""


@contextmanager
def _model() -> Iterator[str]:
    from ascend_shims.simnpu import models

    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield str(models.gqa(Path(folder, "gqa")))


def _environ(shims: bool) -> dict[str, str]:
    return {**rig(), **(_SHIMS if shims else _STOCK)}


def _generated(model: str, pairs: int) -> tuple[list[dict[str, Any]], list[str]]:
    """What a pair of processes says, in turns; and the gaps that were in force."""
    servers = {}
    with ExitStack() as both:
        for shims in (True, False):
            server = Server(
                "generating", model, shims, _PROMPTS, _TOKENS, env=_environ(shims)
            )
            servers[str(shims)] = both.enter_context(server)
        ready = {name: server.told() for name, server in servers.items()}
        told = []
        for order in in_turns(list(servers), pairs):
            told.append({name: servers[name].ask("go") for name in order})
    for one in told:
        if not one["True"]["tokens"] or one["True"]["tokens"] != one["False"]["tokens"]:
            raise ChildError("other tokens with shims than without")
    return told, ready["True"]["gaps"]


def tokens(effort: Effort) -> list[Row]:
    """Raises `ChildError` where the tokens are not the same.

    Two processes live at once and take turns, so that what changes on the machine
    changes for both; there are several such pairs, since the layout of a process in
    memory stays what it was at its start.
    """
    groups: dict[str, list[list[Pair]]] = defaultdict(list)
    made = len(_PROMPTS) * _TOKENS
    gaps: list[str] = []
    with _model() as model:
        for _ in range(effort.times(15, 1)):
            told, gaps = _generated(model, effort.times(14, 3))
            for clock in ("seconds", "processor"):
                rates = [
                    (made / one["True"][clock], made / one["False"][clock])
                    for one in told
                ]
                groups[clock].append(rates)
    found = []
    for clock, name in (("seconds", "tokens"), ("processor", "tokens-processor")):
        flat = [pair for group in groups[clock] for pair in group]
        ratio = ratio_of_groups(groups[clock])
        limits = (at_least(_LEAST_SPEED, "x", ratio.value),) if name == "tokens" else ()
        unit = "tokens/s" if name == "tokens" else "tokens/s of processor"
        found.append(
            Row(
                name=name,
                what=f"small model on MRV2 (CPU), {len(gaps)} gaps on",
                against="stock",
                unit=unit,
                ours=spread([a for a, _ in flat]),
                theirs=spread([b for _, b in flat]),
                ratio=ratio,
                better="more",
                limits=limits,
                note=f"{len(flat)} pairs in {len(groups[clock])} pairs of processes",
            )
        )
    return found


def _start(model: str, shims: bool) -> Ran:
    return run(*job_words("starting", model, shims), env=_environ(shims))


def starting(effort: Effort) -> list[Row]:
    took, used = defaultdict(list), defaultdict(list)
    with _model() as model:
        if not effort.quick:
            # Files of both come from the disk once.
            _start(model, True)
        for order in in_turns(["shims", "stock"], effort.times(20, 1)):
            for name in order:
                done = _start(model, name == "shims")
                took[name].append(done.seconds)
                used[name].append(done.processor)
    what, other = "a process until its engine is ready, all gaps on", "stock"
    made = row("start", what, other, "s", took, "shims", "stock")
    assert made.ratio is not None
    limit = at_most(_MOST_START, "x", made.ratio.value)
    return [
        row("start", what, other, "s", took, "shims", "stock", limit),
        row("start-processor", what, other, "s of processor", used, "shims", "stock"),
    ]


TOKENS = Benchmark("tokens", "Tokens a second", tokens)
STARTING = Benchmark("start", "Engine start-up", starting)
