"""Every subset of the gaps, on upstream's own objects: applied, and taken back."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from ascend_shims.registry import load
from ascend_shims.simnpu.trial import trial

RunReal = Callable[..., Any]
Slot = tuple[str, str]

SOAK = os.environ.get("ASCEND_SHIMS_SOAK") == "1"
GAPS = 12
ENV = {"ASCEND_SHIMS_DEVICE": "sim"}
PROMPTS = [list(range(3 + i, 3 + i + n)) for i, n in enumerate((5, 33, 70))]


def gray(bits: int) -> list[int]:
    """All subsets, each with one member more or less than the one before."""
    return [number ^ (number >> 1) for number in range(1 << bits)]


def walk(subsets: list[int]) -> dict[str, Any]:
    """Reach each subset after the other; what was changed that should not have been."""
    import vllm.v1.worker.cpu_worker
    import vllm.v1.worker.gpu.model_runner
    import vllm.v1.worker.gpu.spec_decode  # noqa: F401

    from ascend_shims.engine.engine import Engine
    from ascend_shims.environment import read_environment
    from ascend_shims.plan import make_plan
    from ascend_shims.switches import read_switches

    registry = load(None)
    ids = [gap.id for gap in registry.gaps]
    environment = read_environment(["vllm", "torch_npu"], assume={}, device="sim")
    engine = Engine("a test")

    def reach(wanted: Iterable[str]) -> set[str]:
        only = ",".join(wanted)
        chosen = {"ASCEND_SHIMS_ONLY": only} if only else {"ASCEND_SHIMS": "off"}
        switches = read_switches({**chosen, "ASCEND_SHIMS_DEVICE": "sim"})
        plan = make_plan(registry, environment, switches)
        engine.reach(plan)
        states = {p.gap.id: engine.standing(p).state.value for p in plan.wanted}
        wrong = {g: s for g, s in states.items() if s not in ("applied", "partial")}
        assert not wrong, wrong
        return set(states)

    slots = _slots(registry)
    pristine = {slot: _raw(slot) for slot in slots}

    def changed() -> set[Slot]:
        return {slot for slot in slots if _raw(slot) is not pristine[slot]}

    of_gap: dict[str, set[Slot]] = {}
    for gap in registry.gaps:
        needed = {*gap.needs.gaps, *gap.needs.patched}
        reach([*needed, gap.id])
        of_gap[gap.id] = changed()
    reach([])
    told: dict[str, Any] = {"gaps": len(ids), "slots": len(slots), "wrong": []}
    told["touched"] = sorted(gap for gap, found in of_gap.items() if found)
    told["admitted"] = set()
    for subset in subsets:
        held = reach([gap for place, gap in enumerate(ids) if subset >> place & 1])
        told["admitted"].add(tuple(sorted(held)))
        expected: set[Slot] = set().union(*(of_gap[gap] for gap in held))
        if changed() != expected:
            told["wrong"].append([subset, sorted(changed() ^ expected)])
    reach([])
    told["left"] = sorted(changed())
    told["admitted"] = len(told["admitted"])
    return told


def _slots(registry: Any) -> list[Slot]:
    """Places, `module:Owner` and name, that some patch of some release is for."""
    found = {}
    for gap in registry.gaps:
        for patch in gap.patches:
            for target in patch.candidates:
                module, _, qualname = target.partition(":")
                owner, _, name = qualname.rpartition(".")
                if module in sys.modules and _owner((f"{module}:{owner}", name)):
                    found[f"{module}:{owner}", name] = None
    return list(found)


def _owner(slot: Slot) -> Any:
    module, _, qualname = slot[0].partition(":")
    owner: Any = sys.modules[module]
    for part in filter(None, qualname.split(".")):
        owner = vars(owner).get(part)
        if owner is None:
            return None
    return owner


def _raw(slot: Slot) -> Any:
    return vars(_owner(slot)).get(slot[1])


@pytest.mark.parametrize("subsets", ["all" if SOAK else "some"])
def test_each_changes_its_slots_and_no_other(subsets: str, run_real: RunReal) -> None:
    """All 4,096 with `ASCEND_SHIMS_SOAK=1`, else a sample, all, and none."""
    path = gray(GAPS)
    if subsets == "some":
        path = [*random.Random(1).sample(path, 24), (1 << GAPS) - 1, 0]
    told = run_real(walk, path, env=ENV, timeout=7200)
    assert told["gaps"] == GAPS
    assert told["slots"] > 40
    assert len(told["touched"]) >= 10
    assert told["wrong"] == []
    assert told["left"] == []
    assert told["admitted"] >= (1_000 if subsets == "all" else 15)


SAMPLE = [number | 1 for number in random.Random(2).sample(range(1 << GAPS), 12)]
"""Each has the first gap: to ask for none is to make no choice."""


@pytest.mark.parametrize("subset", SAMPLE if SOAK else SAMPLE[:2])
def test_tokens_are_stocks_whichever_are_on(subset: int, model_gqa: Path) -> None:
    """With upstream's own operators, which need none of the gaps."""
    ids = [gap.id for gap in load(None).gaps]
    only = [gap for place, gap in enumerate(ids) if subset >> place & 1]
    own = {"attention_backend": "CPU_ATTN"}
    none = {"ASCEND_SHIMS_DEVICE": "none"}
    stock = trial(model_gqa, PROMPTS, 8, switches=none)
    some = {"ASCEND_SHIMS_ONLY": ",".join(only)}
    seen = trial(model_gqa, PROMPTS, 8, settings=own, switches=some)
    assert (seen.error, seen.message) == (None, "")
    assert seen.tokens == stock.tokens
    assert [len(row) for row in seen.tokens] == [8] * len(PROMPTS)
    on = {gap for gap, state in seen.states.items() if state == "applied"}
    assert on <= set(only)
    assert len(on) >= len(only) / 2
