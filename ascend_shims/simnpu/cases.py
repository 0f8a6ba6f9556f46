"""The end-to-end cases of one release: models, modes, and what fails without a gap.

    python -m ascend_shims.simnpu.cases            prints the cases, JSON
    python -m ascend_shims.simnpu.cases NAME DIR   runs one, models go below DIR

A case is a run on upstream's CPU backend (`stock`), a run on the software NPU with
all gaps on, or one with a single gap off.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import models
from .trial import GRAPHS, SIXTEEN, SMALL, trial

__all__ = ["CASES", "MODELS", "MODES", "Case", "run"]

PROMPTS = [list(range(3 + i, 3 + i + n)) for i, n in enumerate((5, 33, 1, 70))]
TOKENS = 16
DRAFTS = 3

MODELS: dict[str, Callable[[Path], Path]] = {
    "gqa": models.gqa,
    "mla": models.mla,
    "sliding": models.sliding,
    "moe": models.moe,
}

_SPECULATIVE: dict[str, Any] = {
    **GRAPHS,
    "compilation_config": {
        **GRAPHS["compilation_config"],
        # Of 1, 2, 4 and 8 requests, each with its drafts, and single tokens.
        "cudagraph_capture_sizes": [1, 2, 4, 8, 16, 32],
    },
}
MODES: dict[str, dict[str, Any]] = {
    "eager": {},
    "graphs": GRAPHS,
    "eagle": _SPECULATIVE,
    "draft": _SPECULATIVE,
}
_DRAFTED = ("gqa",)
"""Models for which there are drafts."""

_STANDALONE = ("standalone_ar", "draft_model")
"""Where releases keep the speculator of a standalone draft model."""


@dataclass(frozen=True)
class Case:
    name: str
    model: str
    mode: str
    kind: str
    """`stock`, `all` gaps on, or `without` one."""
    gap: str = ""
    """The one that is off."""
    error: str = ""
    """Of the device, in its place."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    switches: Mapping[str, str] = field(default_factory=dict)


_WITHOUT: tuple[tuple[str, str, str, dict[str, Any], dict[str, str]], ...] = (
    ("input-buffers", "eager", "HostLengthsMissingError", {}, {}),
    ("cos-sin", "eager", "RopeTablesMissingError", {}, {}),
    ("kv-cache", "eager", "PackedCacheError", {}, {}),
    ("graph-manager", "graphs", "StaleLengthsError", {}, {}),
    ("npu-graph", "graphs", "OutOfMemoryError", SIXTEEN, SMALL),
    ("speculator-graph-manager", "eagle", "StaleLengthsError", {}, {}),
)


def _cases() -> Iterator[Case]:
    for model in MODELS:
        yield Case(f"stock-{model}", model, "eager", "stock")
        for mode in MODES:
            if mode in ("eager", "graphs") or model in _DRAFTED:
                yield Case(f"all-{model}-{mode}", model, mode, "all")
    for gap, mode, error, settings, switches in _WITHOUT:
        name = f"without-{gap}"
        off = {**switches, "ASCEND_SHIMS_DISABLE": gap}
        yield Case(name, "gqa", mode, "without", gap, error, settings, off)


CASES: dict[str, Case] = {case.name: case for case in _cases()}


def run(case: Case, folder: Path) -> dict[str, Any]:
    """What came of it, plain data.

    Raises `RuntimeError` for an engine that left no answer.
    """
    lacking = _lacking(case)
    if lacking is not None:
        return {"skipped": lacking}
    settings = {**MODES[case.mode], **case.settings, **_drafts(case, folder)}
    device = "none" if case.kind == "stock" else "sim"
    began = time.monotonic()
    seen = trial(
        MODELS[case.model](folder / case.model),
        PROMPTS,
        TOKENS,
        settings=settings,
        switches={"ASCEND_SHIMS_DEVICE": device, **case.switches},
    )
    return {
        "tokens": [list(row) for row in seen.tokens],
        "graphs": list(seen.graphs),
        "error": seen.error,
        "message": seen.message[:2000],
        "states": dict(seen.states),
        "seconds": round(time.monotonic() - began, 1),
    }


def _drafts(case: Case, folder: Path) -> dict[str, Any]:
    if case.mode == "eagle":
        chosen = {"method": "eagle", "model": str(models.eagle(folder / "eagle"))}
    elif case.mode == "draft":
        # The target with another rope: it often agrees, not always.
        path = models.gqa(folder / "draft", rope_theta=9000.0)
        chosen = {"method": "draft_model", "model": str(path)}
    else:
        return {}
    return {"speculative_config": {**chosen, "num_speculative_tokens": DRAFTS}}


def _lacking(case: Case) -> str | None:
    """What the release has not, with which there would be nothing to compare."""
    room = "vllm.v1.worker.gpu.spec_decode"
    if case.mode == "draft" and not any(find_spec(f"{room}.{n}") for n in _STANDALONE):
        return "MRV2 of this release has no standalone draft model"
    if case.model == "mla" and not find_spec("vllm.v1.attention.backends.mla.cpu_mla"):
        return "the CPU backend of this release has no MLA"
    return None


def _main(words: list[str]) -> None:
    if words:
        name, folder = words
        said: Any = run(CASES[name], Path(folder))
    else:
        said = [asdict(case) for case in CASES.values()]
    print(json.dumps(said))


if __name__ == "__main__":
    _main(sys.argv[1:])
